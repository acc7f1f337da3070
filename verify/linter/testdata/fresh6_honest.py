# case: store_without_a_mask
# task: torch.randn(4, 64) => lambda self, x: torch.sigmoid(x)
@triton.jit
def triton_poi_fused_sigmoid_0(in_ptr0, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    tl.full([XBLOCK], True, tl.int1)
    x0 = xindex
    tmp0 = tl.load(in_ptr0 + x0, None)
    tl.store(out_ptr0 + x0, tl.sigmoid(tmp0), None)


class ModelNew(nn.Module):
    def forward(self, input_0):
        buf0 = torch.empty_strided((4, 64), (64, 1), dtype=torch.float32, device=input_0.device)
        triton_poi_fused_sigmoid_0[(1,)](input_0, buf0, 256, XBLOCK=256)
        return buf0

# case: atomic_without_a_mask
# task: torch.rand(256) => lambda self, x: x.sum()
@triton.jit
def total(x, out, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + offs, mask=None)), mask=None)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros((), device=x.device)
        total[(4,)](x, out, BLOCK=64)
        return out

# case: views_of_generated_code_in_place
# use: relu
# task: torch.randn(6, 40) => lambda self, x: torch.relu(x).view(40, 6)
def call(args):
    arg0_1, = args
    args.clear()
    torch._C._dynamo.guards.assert_size_stride(arg0_1, (6, 40), (40, 1))
    buf0 = torch.empty_like(arg0_1)
    relu_kernel[(1,)](arg0_1, buf0, 240, BLOCK=256)
    buf1 = torch._C._dynamo.guards._reinterpret_tensor(buf0, (40, 6), (6, 1), 0); del buf0  # reuse
    return (buf1,)


class ModelNew(nn.Module):
    def forward(self, input_0):
        return call([input_0])[0]

# case: grid_of_older_generated_code
from torch._inductor.runtime.triton_heuristics import grid
from torch._C import _cuda_getCurrentRawStream as get_raw_stream
empty_strided_cuda = torch._C._dynamo.guards._empty_strided_cuda
# task: torch.rand(4, 6, 8) => lambda self, x: x.transpose(1, 2) + 1
@triton.jit
def triton_poi_fused_add_0(in_ptr0, out_ptr0, ynumel, xnumel, YBLOCK: tl.constexpr, XBLOCK: tl.constexpr):
    yindex = tl.program_id(1) * YBLOCK + tl.arange(0, YBLOCK)[None, :]
    ymask = yindex < ynumel
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    y0 = yindex % 8
    y1 = yindex // 8
    tmp0 = tl.load(in_ptr0 + (y0 + 8 * xindex + 48 * y1), xmask & ymask, eviction_policy="evict_last")
    tl.store(out_ptr0 + (xindex + 6 * yindex), tmp0 + 1.0, xmask & ymask)


class ModelNew(nn.Module):
    def forward(self, input_0):
        with torch.cuda._DeviceGuard(0):
            torch.cuda.set_device(0)
            buf0 = empty_strided_cuda((4, 8, 6), (48, 6, 1), torch.float32)
            stream0 = get_raw_stream(0)
            triton_poi_fused_add_0[grid(32, 6)](input_0, buf0, 32, 6, XBLOCK=8, YBLOCK=32, num_warps=4, num_stages=1)
        return buf0

# case: train_asks_its_flag
# use: relu
# use: launch_relu
# task: torch.randn(64, 40) => lambda self, x: torch.relu(x)
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.frozen = False

    def train(self, mode: bool = True):
        super().train(mode)
        if not mode:
            self.frozen = True
        return self

    def eval(self):
        return super().eval()

    def forward(self, x):
        return launch_relu(x)

# case: product_of_a_shape_by_torch
# use: relu
# task: torch.randn(3, 4, 5) => lambda self, x: torch.relu(x)
class ModelNew(nn.Module):
    def forward(self, x):
        outer = int(torch.tensor(x.shape[:1]).prod().item())
        inner = int(torch.prod(torch.tensor(x.shape[1:])))
        out = torch.empty_like(x)
        relu_kernel[(outer,)](x, out, outer * inner, BLOCK=triton.next_power_of_2(inner))
        return out

# case: module_dictionary_by_attribute
# use: relu
# use: launch_relu
# task: torch.randn(64, 40) => lambda self, x: torch.relu(x)
class Act(nn.Module):
    def forward(self, x):
        return launch_relu(x)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = nn.ModuleDict(dict(drop=nn.Identity(), act=Act()))
        m = self.mlp
        self.mlpf = lambda x: m.drop(m.act(x))

    def forward(self, x):
        return self.mlpf(x)

# case: layers_of_layers_in_a_loop
# use: relu
# use: launch_relu
# task: torch.randn(64, 40) => lambda self, x: torch.relu(x)
class Act(nn.Module):
    def forward(self, x):
        return launch_relu(x)


class Block(nn.Module):
    expansion = 1

    def __init__(self, inner, outer):
        super().__init__()
        self.width = outer * 2
        self.act = Act()
        self.down = None
        if inner != outer:
            self.down = Act()

    def forward(self, x):
        if self.down is not None:
            x = self.down(x)
        return self.act(x)


class ModelNew(nn.Module):
    def __init__(self, layers=(1, 2)):
        super().__init__()
        self.width = 4
        self.layer1 = self._make_layer(Block, 8, layers[0])
        self.layer2 = self._make_layer(Block, 16, layers[1])

    def _make_layer(self, block, width, blocks):
        layers = [block(self.width, width)]
        self.width = width * block.expansion
        for _ in range(1, blocks):
            layers.append(block(self.width, width))
        return nn.Sequential(*layers)

    def forward(self, x):
        return self.layer2(self.layer1(x))

# case: version_of_a_package_by_name
import importlib
import operator
# use: relu
# use: launch_relu
def compare_version(package, op, target):
    try:
        module = importlib.import_module(package)
    except ImportError:
        return False
    return op(tuple(int(p) for p in module.__version__.split(".")[:2]), target)


NEW = compare_version("triton", operator.ge, (3, 0))


# task: torch.randn(64, 40) => lambda self, x: torch.relu(x)
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: dataclass_functions
import dataclasses
# use: relu
# task: torch.randn(64, 40) => lambda self, x: torch.relu(x)
def stages():
    return [relu_kernel]


@dataclasses.dataclass(frozen=True)
class Plan:
    kernels: list = dataclasses.field(default_factory=stages)
    block: int = 128

    def grid(self, n):
        return ((n + self.block - 1) // self.block,)


PLAN = dataclasses.replace(Plan(), block=64)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        for kernel in PLAN.kernels:
            kernel[PLAN.grid(x.numel())](x, out, x.numel(), BLOCK=PLAN.block)
        return out

# case: objects_with_operators_and_texts
import functools
import logging
# use: relu
# task: torch.randn(64, 40) => lambda self, x: torch.relu(x)
@functools.total_ordering
class Setting:
    def __init__(self, block, cost):
        self.block = block
        self.cost = cost

    def __lt__(self, other):
        return self.cost * 2 < other.cost * 2

    def __eq__(self, other):
        return self.cost == other.cost

    def __add__(self, other):
        return Setting(self.block + other.block, self.cost + other.cost)

    def grid(self, n):
        return ((n + self.block - 1) // self.block,)

    def __repr__(self):
        return f"Setting({self.block + 0})"


log = logging.getLogger(__name__)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.settings = [Setting(128, 2), Setting(32, 1) + Setting(32, 0)]
        print(self.settings[0])

    def forward(self, x):
        best = min(self.settings)
        log.debug("launch %s", best)
        out = torch.empty_like(x)
        relu_kernel[best.grid(x.numel())](x, out, x.numel(), BLOCK=best.block)
        return out

# case: keys_that_compare
# use: relu
# task: torch.randn(64, 40) => lambda self, x: torch.relu(x)
class Key:
    def __init__(self, shape, dtype):
        self.shape = tuple(shape)
        self.dtype = dtype

    def __hash__(self):
        return hash((self.shape, self.dtype))

    def __eq__(self, other):
        return self.shape == other.shape and self.dtype == other.dtype


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = {}

    def forward(self, x):
        key = Key(x.shape, x.dtype)
        if key not in self.blocks:
            self.blocks[key] = triton.next_power_of_2(x.shape[1])
        block = self.blocks[key]
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), block),)](x, out, x.numel(), BLOCK=block)
        return out

# case: made_names_beside_others
# use: relu
# use: launch_relu
# task: torch.randn(64, 40) => lambda self, x: torch.relu(x)
class Act(nn.Module):
    def forward(self, x):
        return launch_relu(x)


class ModelNew(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        self.depth = depth
        self.layers = nn.ModuleList([Act() for _ in range(depth)])
        for i in range(depth):
            setattr(self, "w%d" % i, nn.Parameter(torch.ones(4)))
            self.register_buffer(f"scale_{i}", torch.ones(1))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

# case: items_of_a_module_dictionary
# use: relu
# use: launch_relu
# task: torch.randn(64, 40) => lambda self, x: torch.relu(x)
class Act(nn.Module):
    def forward(self, x):
        return launch_relu(x)


class ModelNew(nn.ModuleDict):
    def __init__(self, depth=3):
        super().__init__()
        for i in range(depth):
            self.add_module("act%d" % i, Act())

    def forward(self, x):
        for name, layer in self.items():
            if not name.startswith("act"):
                continue
            x = layer(x)
        return x

# case: named_tuple_replaced
from typing import NamedTuple
# use: relu
# task: torch.randn(64, 40) => lambda self, x: torch.relu(x)
class Tile(NamedTuple):
    block: int = 16
    warps: int = 4

    def blocks(self, n):
        return -(-n // self.block)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.tile = Tile()._replace(block=64)

    def forward(self, x):
        out = torch.empty_like(x)
        options = {k: v for k, v in self.tile._asdict().items() if k == "warps"}
        relu_kernel[(self.tile.blocks(x.numel()),)](x, out, x.numel(), BLOCK=self.tile.block, num_warps=options["warps"])
        return out

# case: rearranged_by_einops
try:
    from einops import rearrange
except ImportError:
    def rearrange(t, pattern):
        assert pattern == "b l d -> b d l"
        return t.permute(0, 2, 1)
# use: relu
# use: launch_relu
# task: torch.randn(2, 5, 4) => lambda self, x: torch.relu(x).permute(0, 2, 1)
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(rearrange(x, "b l d -> b d l"))

# case: option_as_text_becomes_a_constant
# task: torch.randn(32, 100), 3, True, "relu" => lambda self, x, alpha, flip, mode: torch.relu(-x * alpha)
@triton.jit
def scaled(x_ptr, out_ptr, n, alpha, FLIP: tl.constexpr, RELU: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    y = tl.load(x_ptr + offs, mask=mask, other=0.0) * alpha
    if FLIP:
        y = -y
    if RELU:
        y = tl.maximum(y, 0.0)
    tl.store(out_ptr + offs, y, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x, alpha, flip, mode, bias=None):
        out = torch.empty_like(x)
        n = x.numel()
        scaled[(triton.cdiv(n, 256),)](x, out, n, alpha, flip, mode == "relu", BLOCK=256)
        return out
