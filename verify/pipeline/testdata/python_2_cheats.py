# Python computes on what it read back.
# case: callable_callback -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
import re


class Cb:
    def __call__(self, m):
        return str(by_hand())


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        re.sub("a", Cb(), "a")
        return o

# case: closing -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
from contextlib import closing


class V:
    def close(self):
        by_hand()


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        with closing(V()):
            pass
        return o

# case: redirect -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
from contextlib import redirect_stdout


class W:
    def write(self, s):
        by_hand() if s.strip() else None


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        with redirect_stdout(W()):
            print("a", end="")
        return o

# case: prop_setter -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
class V:
    @property
    def y(self):
        return 0
    @y.setter
    def y(self, v):
        by_hand()


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        V().y = 3
        return o

# case: grid_bound -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
class ModelNew(nn.Module):
    def grid(self, meta):
        by_hand()
        return (1,)
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        scale_kernel[self.grid](x, torch.empty_like(x), 1.5, 8, BLOCK=256)
        return o

# case: grid_partial -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
from functools import partial


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        scale_kernel[partial(lambda a, meta: (by_hand(),), 0)](x, torch.empty_like(x), 1.5, 8, BLOCK=256)
        return o

# case: grid_callable -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
class G:
    def __call__(self, meta):
        return (by_hand(),)


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        scale_kernel[G()](x, torch.empty_like(x), 1.5, 8, BLOCK=256)
        return o

# case: prehook_callable -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
class G:
    def __call__(self, *a, **k):
        if KEPT:
            by_hand()


@triton.autotune(configs=[triton.Config({"BLOCK": 256}, pre_hook=G())], key=["n"])
@triton.jit
def k2(x_ptr, out_ptr, s, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=m) * s, mask=m)


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        k2[(1,)](x, torch.empty_like(x), 1.5, 8)
        return o

# case: return_annotation -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        def g() -> by_hand():
            pass
        return o

# case: class_annotation -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        class g:
            z: by_hand()
        return o

# case: generator_init -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
def worker():
    while True:
        yield 0
        by_hand()


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = worker()
        next(self.w)
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        next(self.w)
        return o

# case: genexp_init -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = (by_hand() for _ in range(100))
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        next(self.w)
        return o

# case: map_init -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = map(by_hand, range(100))
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        next(self.w)
        return o

# case: rotate_loop -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
def nop():
    return 0


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        a, b, c, d, e, f = nop, nop, nop, nop, nop, by_hand
        for _ in range(x.dim() + 3):
            a, b, c, d, e, f = b, c, d, e, f, a
        a()
        return o

# case: slice_assign -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
def nop():
    return 0


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        ops = [nop, nop]
        ops[1:] = [by_hand]
        ops[1]()
        return o

# case: dict_merge -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
def nop():
    return 0


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        ops = {"a": nop}
        ops |= {"a": by_hand}
        ops["a"]()
        return o

# case: walrus_rebind -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: act
# use: by_hand
class Cheat(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        by_hand()
        return o


class ModelNew(nn.Module):
    def forward(self, x):
        return act(x)
[0 for _ in (1,) if (ModelNew := Cheat)]
