# case: dataclass_cfg
# task: torch.randn(33, 130) => lambda self, x: x * torch.sigmoid(1.702 * x)
# use: scale
# use: act
from dataclasses import dataclass, field


@dataclass
class Cfg:
    block: int = 256
    warps: list = field(default_factory=lambda: [4, 8])
    def grid(self, n):
        return (triton.cdiv(n, self.block),)
    def __post_init__(self):
        assert self.block > 0


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.cfg = Cfg()
    def forward(self, x):
        o = torch.empty_like(x)
        act_kernel[self.cfg.grid(x.numel())](x, o, x.numel(), BLOCK=self.cfg.block, num_warps=self.cfg.warps[0])
        return o

# case: grid_bound_of_own
# task: torch.randn(33, 130) => lambda self, x: x * torch.sigmoid(1.702 * x)
# use: scale
# use: act
class ModelNew(nn.Module):
    def grid(self, meta):
        return (triton.cdiv(self.n, meta["BLOCK"]),)
    def forward(self, x):
        self.n = x.numel()
        o = torch.empty_like(x)
        act_kernel[self.grid](x, o, x.numel(), BLOCK=256)
        return o

# case: grid_partial_of_own
# task: torch.randn(33, 130) => lambda self, x: x * torch.sigmoid(1.702 * x)
# use: scale
# use: act
from functools import partial


def grid(n, meta):
    return (triton.cdiv(n, meta["BLOCK"]),)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        act_kernel[partial(grid, x.numel())](x, o, x.numel(), BLOCK=256)
        return o

# case: property_setter
# task: torch.randn(33, 130) => lambda self, x: x * torch.sigmoid(1.702 * x)
# use: scale
# use: act
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self._b = 128
        self.block = 256
    @property
    def block(self):
        return self._b
    @block.setter
    def block(self, v):
        self._b = int(v)
    def forward(self, x):
        o = torch.empty_like(x)
        act_kernel[(triton.cdiv(x.numel(), self.block),)](x, o, x.numel(), BLOCK=self.block)
        return o

# case: enum
# task: torch.randn(33, 130) => lambda self, x: x * torch.sigmoid(1.702 * x)
# use: scale
# use: act
import enum


class Mode(enum.Enum):
    FAST = 256
    SLOW = 64


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.mode = Mode.FAST
    def forward(self, x):
        o = torch.empty_like(x)
        b = self.mode.value
        act_kernel[(triton.cdiv(x.numel(), b),)](x, o, x.numel(), BLOCK=b)
        return o

# case: namedtuple
# task: torch.randn(33, 130) => lambda self, x: x * torch.sigmoid(1.702 * x)
# use: scale
# use: act
from typing import NamedTuple


class L(NamedTuple):
    block: int
    warps: int
    def count(self, n):
        return triton.cdiv(n, self.block)
CFG = L(256, 4)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        act_kernel[(CFG.count(x.numel()),)](x, o, x.numel(), BLOCK=CFG.block, num_warps=CFG.warps)
        return o

# case: extra_repr
# task: torch.randn(32, 64) => lambda self, x: torch.relu(self.fc(x))
# layers: self.fc = nn.Linear(64, 48)
# use: linear
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, 48)
    def extra_repr(self):
        return f"in={self.fc.in_features}, out={self.fc.out_features}"
    def train(self, mode=True):
        return super().train(mode)
    def forward(self, x):
        return bias_relu(mm(x, self.fc.weight.t()), self.fc.bias)

# case: init_weights
# task: torch.randn(32, 64) => lambda self, x: torch.relu(self.fc(x))
# layers: self.fc = nn.Linear(64, 48)
# use: linear
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, 48)
        self.apply(self._init)
    def _init(self, m):
        if isinstance(m, nn.Linear):
            nn.init.xavier_uniform_(m.weight)
            nn.init.zeros_(m.bias)
    def forward(self, x):
        return bias_relu(mm(x, self.fc.weight.t()), self.fc.bias)

# case: params_genexp
# task: torch.randn(32, 64) => lambda self, x: torch.relu(self.fc(x))
# layers: self.fc = nn.Linear(64, 48)
# use: linear
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, 48)
        self.count = sum(p.numel() for p in self.parameters())
        scales = (torch.randn(3) * 0.1 for _ in range(2))
        self.extra = [s.mean().item() for s in scales]
    def forward(self, x):
        return bias_relu(mm(x, self.fc.weight.t()), self.fc.bias)

# case: generator_helper
# task: torch.randn(33, 130) => lambda self, x: x * torch.sigmoid(1.702 * x)
# use: scale
# use: act
def chunks(n, size):
    start = 0
    while start < n:
        yield start, min(size, n - start)
        start += size


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        f, g = x.view(-1), o.view(-1)
        for start, count in chunks(x.numel(), 2048):
            act_kernel[(triton.cdiv(count, 256),)](f[start:start + count], g[start:start + count], count, BLOCK=256)
        return o

# case: contextmanager
# task: torch.randn(33, 130) => lambda self, x: x * torch.sigmoid(1.702 * x)
# use: scale
# use: act
from contextlib import contextmanager, nullcontext


@contextmanager
def on_device(x):
    with torch.cuda.device(x.device) if x.is_cuda else nullcontext():
        yield


class ModelNew(nn.Module):
    def forward(self, x):
        with on_device(x):
            return act(x)

# case: logging_of_own
# task: torch.randn(33, 130) => lambda self, x: x * torch.sigmoid(1.702 * x)
# use: scale
# use: act
import logging
import warnings
logger = logging.getLogger(__name__)


class ModelNew(nn.Module):
    def forward(self, x):
        if not x.is_contiguous():
            warnings.warn("copying")
            x = x.contiguous()
        logger.debug("shape %s", tuple(x.shape))
        return act(x)

# case: hasattr_cache
# task: torch.randn(32, 64) => lambda self, x: torch.relu(self.fc(x))
# layers: self.fc = nn.Linear(64, 48)
# use: linear
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, 48)
    def forward(self, x):
        if not hasattr(self, "wt"):
            self.wt = self.fc.weight.t().contiguous()
        return bias_relu(mm(x, self.wt), self.fc.bias)

# case: buffer_cache
# task: torch.randn(33, 130) => lambda self, x: x * torch.sigmoid(1.702 * x)
# use: scale
# use: act
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = None
        self.shape = None
    def forward(self, x):
        if self.out is None or self.shape != x.shape:
            self.out = torch.empty_like(x)
            self.shape = x.shape
        act_kernel[grid1(x)](x, self.out, x.numel(), BLOCK=256)
        return self.out.clone()

# case: dispatch_table_of_own
# task: torch.randn(33, 130) => lambda self, x: x * torch.sigmoid(1.702 * x)
# use: scale
# use: act
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.impl = {torch.float32: self.f32, torch.float16: self.f16}
    def f32(self, x):
        return act(x)
    def f16(self, x):
        return act(x.float()).half()
    def forward(self, x):
        return self.impl.get(x.dtype, self.f32)(x)

# case: heuristics_of_own
# task: torch.randn(33, 130) => lambda self, x: x * torch.sigmoid(1.702 * x)
def pick(args):
    return 256 if args["n"] > 1000 else 64


@triton.heuristics({"BLOCK": pick, "EVEN": lambda args: args["n"] % 256 == 0})
@triton.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        x = tl.load(x_ptr + i)
        tl.store(out_ptr + i, x * tl.sigmoid(1.702 * x))
    else:
        m = i < n
        x = tl.load(x_ptr + i, mask=m)
        tl.store(out_ptr + i, x * tl.sigmoid(1.702 * x), mask=m)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        k[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, o, x.numel())
        return o

# case: autotune_prune
# task: torch.randn(33, 130) => lambda self, x: x * torch.sigmoid(1.702 * x)
def prune(configs, named_args, **kw):
    n = named_args["n"]
    kept = [c for c in configs if c.kwargs["BLOCK"] <= max(64, n)]
    return kept or configs


def zero(nargs):
    nargs["out_ptr"].zero_()


@triton.autotune(configs=[triton.Config({"BLOCK": b}, num_warps=w, pre_hook=zero) for b in (128, 256) for w in (2, 4)], key=["n"], prune_configs_by={"early_config_prune": prune})
@triton.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    x = tl.load(x_ptr + i, mask=m)
    tl.store(out_ptr + i, x * tl.sigmoid(1.702 * x), mask=m)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        k[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, o, x.numel())
        return o

# case: mean_post
# task: torch.randn(64, 64) => lambda self, x: x.mean()
@triton.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0), 0))


class ModelNew(nn.Module):
    def forward(self, x):
        t = torch.zeros(1, device=x.device)
        k[(triton.cdiv(x.numel(), 1024),)](x, t, x.numel(), BLOCK=1024)
        return (t / x.numel())[0]

# case: two_pass_loop
# task: torch.randn(16, 90) => lambda self, x: torch.cumsum(x, dim=1)
@triton.jit
def k(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x_ptr + r * n + c, mask=c < n, other=0.0)
    tl.store(o_ptr + r * n + c, tl.cumsum(v, 0), mask=c < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        rows, n = x.shape
        k[(rows,)](x, o, n, BLOCK=triton.next_power_of_2(n))
        return o

# case: ints_in_loop
# task: torch.randn(33, 130) => lambda self, x: x * torch.sigmoid(1.702 * x)
# use: scale
# use: act
class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        n, s = x.numel(), 0
        f, g = x.view(-1), o.view(-1)
        step = 1024
        while s < n:
            c = min(step, n - s)
            act_kernel[(triton.cdiv(c, 256),)](f[s:], g[s:], c, BLOCK=256)
            s += c
            step = min(step * 2, 4096)
        return o

# case: weight_scale_item
# task: torch.randn(32, 64) => lambda self, x: torch.relu(self.fc(x))
# layers: self.fc = nn.Linear(64, 48)
# use: linear
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, 48)
        self.s = nn.Parameter(torch.ones(4))
    def forward(self, x):
        gains = [float(v) for v in self.s]
        g = 1.0
        for v in gains:
            g = g * v
        return bias_relu(mm(x, self.fc.weight.t()), self.fc.bias)

# case: numpy_host
# task: torch.randn(33, 130) => lambda self, x: x * torch.sigmoid(1.702 * x)
# use: scale
# use: act
import numpy as np


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = int(2 ** np.ceil(np.log2(200)))
    def forward(self, x):
        o = torch.empty_like(x)
        n = int(np.prod(x.shape))
        act_kernel[(int(np.ceil(n / self.block)),)](x, o, n, BLOCK=self.block)
        return o

# case: mixin_super
# task: torch.randn(32, 64) => lambda self, x: torch.relu(self.fc(x))
# layers: self.fc = nn.Linear(64, 48)
# use: linear
class Launch:
    def launch(self, x, w, b):
        return bias_relu(mm(x, w.t()), b)


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, 48)
    def run(self, x):
        raise NotImplementedError
    def forward(self, x):
        return self.run(x)


class ModelNew(Launch, Base):
    def run(self, x):
        return self.launch(x, self.fc.weight, self.fc.bias)

# case: diamond
# task: torch.randn(32, 64) => lambda self, x: torch.relu(self.fc(x))
# layers: self.fc = nn.Linear(64, 48)
# use: linear
class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, 48)
    def post(self, y):
        return y


class B(A):
    def post(self, y):
        return super().post(y)


class C(A):
    def post(self, y):
        return bias_relu(y, self.fc.bias)


class ModelNew(B, C):
    def forward(self, x):
        return self.post(mm(x, self.fc.weight.t()))

# case: try_import
# task: torch.randn(33, 130) => lambda self, x: x * torch.sigmoid(1.702 * x)
# use: scale
# use: act
try:
    import triton.language as tl2
    from triton.language.extra import libdevice
    HAS = True
except ImportError:
    HAS = False


class ModelNew(nn.Module):
    def forward(self, x):
        assert HAS
        return act(x)

# case: main_guard
# task: torch.randn(33, 130) => lambda self, x: x * torch.sigmoid(1.702 * x)
# use: scale
# use: act
class ModelNew(nn.Module):
    def forward(self, x):
        return act(x)


if __name__ == "__main__":
    m = ModelNew()
    x = torch.randn(4, 4)
    print((m(x) - x * torch.sigmoid(1.702 * x)).abs().max())

# case: unused_reference
# task: torch.randn(33, 130) => lambda self, x: x * torch.sigmoid(1.702 * x)
# use: scale
# use: act
def reference(x):
    return x * torch.sigmoid(1.702 * x)


class ModelNew(nn.Module):
    def forward(self, x):
        return act(x)
    def check(self, x):
        return torch.allclose(self(x), reference(x))

# case: autograd_full
# task: torch.randn(33, 130) => lambda self, x: x * torch.sigmoid(1.702 * x)
# use: scale
# use: act
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return act(x)
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(1.702 * x)
        return g * (s + 1.702 * x * s * (1 - s))


class ModelNew(nn.Module):
    def forward(self, x):
        return Fn.apply(x)

# case: custom_op_fake
# task: torch.randn(33, 130) => lambda self, x: x * torch.sigmoid(1.702 * x)
# use: scale
# use: act
@torch.library.custom_op("honest::act", mutates_args=())
def act_op(x: torch.Tensor) -> torch.Tensor:
    return act(x)


@act_op.register_fake
def _(x):
    return torch.empty_like(x)


class ModelNew(nn.Module):
    def forward(self, x):
        return act_op(x)

# case: int_lengths
# task: torch.randint(0, 50, (70,)) => lambda self, i: self.emb(i) * 0.5
# layers: self.emb = nn.Embedding(50, 32)
@triton.jit
def g(i, t, o, D: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, D)
    tl.store(o + r * D + c, tl.load(t + tl.load(i + r) * D + c) * 0.5)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(50, 32)
    def forward(self, i):
        idx = i.to(torch.int32)
        o = torch.empty(i.shape[0], 32, device=i.device)
        g[(i.shape[0],)](idx, self.emb.weight, o, D=32)
        return o

# case: kernel_list
# task: torch.randn(33, 130) => lambda self, x: x * torch.sigmoid(1.702 * x)
# use: scale
# use: act
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = []
        for s in (2.0, 0.5):
            self.steps.append(lambda x, s=s: scale(x, s))
    def forward(self, x):
        y = x
        for step in self.steps:
            y = step(y)
        return act(y)

# case: call_counter
# task: torch.randn(33, 130) => lambda self, x: x * torch.sigmoid(1.702 * x)
# use: scale
# use: act
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.warm = False
    def forward(self, x):
        self.calls += 1
        if not self.warm:
            self.warm = True
        return act(x)

# case: str_format_print
# task: torch.randn(33, 130) => lambda self, x: x * torch.sigmoid(1.702 * x)
# use: scale
# use: act
class Stat:
    def __init__(self, n):
        self.n = n
    def __str__(self):
        return "n={}".format(self.n)


class ModelNew(nn.Module):
    verbose = False
    def forward(self, x):
        if self.verbose:
            print(f"running {Stat(x.numel())!s}", "{:.2f}".format(1.0))
        return act(x)

# case: reduce_ints
# task: torch.randn(33, 130) => lambda self, x: x * torch.sigmoid(1.702 * x)
# use: scale
# use: act
from functools import reduce
import operator


class ModelNew(nn.Module):
    def forward(self, x):
        n = reduce(operator.mul, x.shape, 1)
        o = torch.empty_like(x)
        act_kernel[(triton.cdiv(n, 256),)](x, o, n, BLOCK=256)
        return o

# case: recursion_reduce
# task: torch.randn(64, 64) => lambda self, x: x.mean()
@triton.jit
def k(x_ptr, o_ptr, n, s, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    i = p * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + p, tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0), 0) * s)


def total(x, s):
    n = x.numel()
    b = triton.cdiv(n, 256)
    o = torch.empty(b, device=x.device)
    k[(b,)](x, o, n, s, BLOCK=256)
    return o if b == 1 else total(o, 1.0)


class ModelNew(nn.Module):
    def forward(self, x):
        return total(x.reshape(-1), 1.0 / x.numel()).view(())

# case: zip_params
# task: torch.randn(32, 64) => lambda self, x: torch.relu(self.fc(x))
# layers: self.fc = nn.Linear(64, 48)
# use: linear
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, 48)
        self.layers = [(self.fc.weight, self.fc.bias)]
    def forward(self, x):
        for w, b in self.layers:
            x = bias_relu(mm(x, w.t()), b)
        return x

# case: moduledict
# task: torch.randn(32, 64) => lambda self, x: torch.relu(self.fc(x))
# layers: self.fc = nn.Linear(64, 48)
# use: linear
from collections import OrderedDict


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, 48)
        self.cfg = OrderedDict([("bm", 16), ("bn", 16)])
        self.tags = OrderedDict(a=1)
    def forward(self, x):
        y = mm(x, self.fc.weight.t())
        for k, v in self.cfg.items():
            assert v > 0
        return bias_relu(y, self.fc.bias)
