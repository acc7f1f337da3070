# case: unused_imports_of_tools
import base64
import importlib
import inspect
import pathlib
import subprocess
from multiprocessing import Pool
# use: relu
# use: launch_relu
# task: torch.randn(64, 40) => lambda self, x: torch.relu(x)
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: main_guard_with_files
import pathlib
import subprocess
import sys
# use: relu
# use: launch_relu
# task: torch.randn(64, 40) => lambda self, x: torch.relu(x)
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)


if __name__ == "__main__":
    with open("log.txt", "w") as f:
        f.write(subprocess.run(["nvidia-smi"], capture_output=True, text=True).stdout)
    pathlib.Path("out.json").write_text("{}")
    eval("print(1)")
    sys.exit(0)

# case: find_spec_and_a_lock
import importlib.util
import threading
# use: relu
# use: launch_relu
HAS_TRITON = importlib.util.find_spec("triton") is not None
_LOCK = threading.Lock()


# task: torch.randn(64, 40) => lambda self, x: torch.relu(x)
class ModelNew(nn.Module):
    def forward(self, x):
        if not HAS_TRITON:
            raise RuntimeError("needs triton")
        with _LOCK:
            return launch_relu(x)

# case: forward_is_a_lambda
# use: relu
# use: launch_relu
# task: torch.randn(64, 40) => lambda self, x: torch.relu(x)
class ModelNew(nn.Module):
    forward = lambda self, x: launch_relu(x)

# case: letters_of_other_scripts
# task: torch.randn(64, 40) => lambda self, x: torch.relu(x)
@triton.jit
def relu_kernel(вход, 输出, n, 块: tl.constexpr):
    o = tl.program_id(0) * 块 + tl.arange(0, 块)
    tl.store(输出 + o, tl.maximum(tl.load(вход + o, mask=o < n), 0.0), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        结果 = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 256),)](x, 结果, x.numel(), 块=256)
        return 结果

# case: padded_to_whole_blocks
@triton.jit
def relu_whole(x, y, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + o, tl.maximum(tl.load(x + o), 0.0))


# task: torch.randn(10, 33) => lambda self, x: torch.relu(x)
class ModelNew(nn.Module):
    def forward(self, x):
        n = x.numel()
        blocks = triton.cdiv(n, 64)
        padded = F.pad(x.reshape(-1), (0, blocks * 64 - n), mode="constant", value=0.0)
        y = torch.empty_like(padded)
        relu_whole[(blocks,)](padded, y, B=64)
        return y[:n].view_as(x)

# case: weight_kept_by_version
@triton.jit
def scale_columns(x, w, y, n, d, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + o, tl.load(x + o, mask=o < n) * tl.load(w + o % d, mask=o < n), mask=o < n)


# layers: self.w = nn.Parameter(torch.randn(40))
# task: torch.randn(16, 40) => lambda self, x: x * self.w
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(40))
        self._packed = None
        self._version_packed = -1

    def packed(self):
        if self._packed is None or self._version_packed != self.w._version:
            self._packed = self.w.detach().clone()
            self._version_packed = self.w._version
        return self._packed

    def forward(self, x):
        y = torch.empty_like(x)
        scale_columns[(triton.cdiv(x.numel(), 128),)](x, self.packed(), y, x.numel(), 40, B=128)
        return y

# case: counts_batches
@triton.jit
def shift_scale(x, w, b, y, n, d, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    m = o < n
    tl.store(y + o, tl.load(x + o, m) * tl.load(w + o % d, m) + tl.load(b + o % d, m), m)


class CountingNorm(nn.BatchNorm1d):
    def forward(self, x):
        self._check_input_dim(x)
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
        y = torch.empty_like(x)
        shift_scale[(triton.cdiv(x.numel(), 128),)](x, self.weight, self.bias, y, x.numel(), self.num_features, B=128)
        return y


# layers: self.bn = nn.BatchNorm1d(24)
# task: torch.randn(16, 24) => lambda self, x: x * self.bn.weight + self.bn.bias
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = CountingNorm(24)

    def forward(self, x):
        bn = self.bn
        bn.num_batches_tracked += 1
        return bn(x)

# case: kernel_defined_in_a_function
def build(block):
    @triton.jit
    def kern(x, y, n, B: tl.constexpr):
        o = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(y + o, tl.maximum(tl.load(x + o, mask=o < n), 0.0), mask=o < n)

    return kern


# task: torch.randn(64, 40) => lambda self, x: torch.relu(x)
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kern = build(256)

    def forward(self, x):
        y = torch.empty_like(x)
        self.kern[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), B=256)
        return y

# case: named_tuples_and_ordered_dicts
from collections import OrderedDict, defaultdict
from typing import NamedTuple
# use: relu
# use: launch_relu
class Result(NamedTuple):
    y: torch.Tensor
    n: int


def run(x) -> Result:
    return Result(launch_relu(x), x.numel())


OPS = OrderedDict([("relu", run)])
CALLS = defaultdict(int)


# task: torch.randn(64, 40) => lambda self, x: torch.relu(x)
class ModelNew(nn.Module):
    def forward(self, *inputs):
        x, *rest = inputs
        if not rest:
            CALLS["relu"] += 1
        op = OPS.get("relu")
        y, _ = op(x)
        return y

# case: compiled_baseline_nobody_calls
# use: relu
# use: launch_relu
@torch.compile
def baseline(x):
    return torch.relu(x)


@torch.jit.ignore
def reference(x):
    return F.relu(x)


# task: torch.randn(64, 40) => lambda self, x: torch.relu(x)
class ModelNew(nn.Module):
    def forward(self, x):
        assert not torch.jit.is_scripting() and not torch.compiler.is_compiling()
        return launch_relu(x)

# case: operators_for_devices
# use: relu
# use: launch_relu
@torch.library.custom_op("fresh5::relu", mutates_args=(), device_types="cuda")
def relu_op(x: torch.Tensor) -> torch.Tensor:
    return launch_relu(x)


@relu_op.register_kernel("cpu")
def _(x):
    return torch.relu(x)


library = torch.library.Library("fresh5b", "DEF")
library.define("relu(Tensor x) -> Tensor")
library.impl("relu", launch_relu, "CUDA")


# task: torch.randn(64, 40) => lambda self, x: torch.relu(x)
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ops.fresh5b.relu(relu_op(x))

# case: abstract_bases
import sys
from abc import ABCMeta, abstractmethod
from typing import TypedDict
# use: relu
# use: launch_relu
sys.path.append(".")


class Options(TypedDict, total=False):
    block: int


class Op(metaclass=ABCMeta):
    @abstractmethod
    def run(self, x):
        ...


class Relu(Op):
    def run(self, x):
        return launch_relu(x)


# task: torch.randn(64, 40) => lambda self, x: torch.relu(x)
class ModelNew(nn.Module):
    def forward(self, x):
        return Relu().run(x)

# case: heads_repeated
# use: add
# task: torch.randn(4, 8), torch.randn(2, 8) => lambda self, a, b: a + b.repeat_interleave(2, 0)
class ModelNew(nn.Module):
    def forward(self, a, b):
        wide = b.repeat_interleave(a.shape[0] // b.shape[0], dim=0)
        y = torch.empty_like(a)
        add_kernel[(triton.cdiv(a.numel(), 64),)](a, wide, y, a.numel(), BLOCK=64)
        return y

# case: four_partial_sums
@triton.jit
def partial_sums(x, out, n, CHUNK, B: tl.constexpr):
    p = tl.program_id(0)
    acc = tl.zeros((B,), tl.float32)
    for i in range(0, CHUNK, B):
        o = p * CHUNK + i + tl.arange(0, B)
        acc += tl.load(x + o, mask=(i + tl.arange(0, B) < CHUNK) & (o < n), other=0.0)
    tl.store(out + p, tl.sum(acc))
    tl.store(out + 4 + p, tl.sum(acc) * 2)


# task: torch.randn(1000) => lambda self, x: (x.mean(), x.sum() * 2)
class ModelNew(nn.Module):
    def forward(self, x):
        n = x.numel()
        out = torch.empty(8, device=x.device)
        partial_sums[(4,)](x, out, n, triton.cdiv(n, 4), B=128)
        return out[:4].sum() / n, out[4:8].sum()

# case: attributes_of_an_inner_module
# use: relu
# use: launch_relu
class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = 128

    def forward(self, x):
        return launch_relu(x)


# task: torch.randn(64, 40) => lambda self, x: torch.relu(x)
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.inner, name)

    def forward(self, x):
        assert self.block == 128
        return self.inner(x)

# case: parameters_of_a_layer_by_number
@triton.jit
def gate_sums(x, w, b, y, I: tl.constexpr, H, BH: tl.constexpr):
    r = tl.program_id(0)
    h = tl.program_id(1) * BH + tl.arange(0, BH)
    i = tl.arange(0, I)
    acc = tl.sum(tl.load(w + h[:, None] * I + i[None, :], mask=h[:, None] < H, other=0.0) * tl.load(x + r * I + i)[None, :], 1)
    tl.store(y + r * H + h, acc + tl.load(b + h, mask=h < H), mask=h < H)


# layers: self.rnn = nn.GRU(8, 16)
# task: torch.randn(5, 8) => lambda self, x: x @ self.rnn.weight_ih_l0.T + self.rnn.bias_ih_l0
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(8, 16)

    def forward(self, x):
        w, b = (getattr(self.rnn, f"{kind}_ih_l{0}") for kind in ("weight", "bias"))
        y = torch.empty(x.shape[0], w.shape[0], device=x.device)
        gate_sums[(x.shape[0], 3)](x, w, b, y, I=8, H=48, BH=16)
        return y

# case: code_of_the_generator
from torch._inductor.runtime import triton_helpers
from torch._C import _cuda_getCurrentRawStream as get_raw_stream
assert_size_stride = torch._C._dynamo.guards.assert_size_stride
empty_strided_cuda = torch._C._dynamo.guards._empty_strided_cuda


@triton.jit
def triton_poi_fused_relu_0(in_ptr0, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    xnumel = 2560
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x0 = xindex
    tmp0 = tl.load(in_ptr0 + x0, xmask)
    tmp1 = tl.full([1], 0, tl.int32)
    tmp2 = triton_helpers.maximum(tmp1, tmp0)
    tl.store(out_ptr0 + x0, tmp2, xmask)


def call(args):
    arg0_1, = args
    args.clear()
    assert_size_stride(arg0_1, (64, 40), (40, 1))
    with torch.cuda._DeviceGuard(0):
        torch.cuda.set_device(0)
        buf0 = empty_strided_cuda((64, 40), (40, 1), torch.float32)
        stream0 = get_raw_stream(0)
        triton_poi_fused_relu_0[(10,)](arg0_1, buf0, 2560, XBLOCK=256, num_warps=4, num_stages=1)
        del arg0_1
    return buf0,


# task: torch.randn(64, 40) => lambda self, x: torch.relu(x)
class ModelNew(nn.Module):
    def forward(self, input_0):
        return call([input_0])[0]
