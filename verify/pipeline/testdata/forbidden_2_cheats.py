# Modules, files, frames and processes stand in for kernels.
# case: async_coroutine -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
# use: relu
# use: launch_relu
import asyncio


async def work(x):
    return x.softmax(-1)  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(asyncio.run(work(x)))

# case: del_hook_side_effect -> runtime_compute aten::erf
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class Box:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __del__(self):
        self.y.copy_(self.x.erf())  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        b = Box(x, y)
        del b
        return y

# case: getattribute_computes -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
# use: relu
# use: launch_relu
class S:
    def __init__(self, v):
        self.v = v

    def __getattribute__(self, k):
        return object.__getattribute__(self, k).softmax(-1)  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        s = S(launch_relu(x))
        return s.v

# case: init_subclass_swaps_forward -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class Base(nn.Module):
    def __init_subclass__(cls, **kw):
        cls.forward = lambda self, x: torch.tanh(x)  # BAD


class ModelNew(Base):
    def forward(self, x):
        return launch_relu(x)

# case: os_exit -> exited
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
import os


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        os._exit(0)

# case: builtins_eval_lookup -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return __builtins__["eval"]("torch.tanh")(launch_relu(x))  # BAD

# case: globals_lookup_again -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return globals()["torch"].tanh(launch_relu(x))  # BAD

# case: function_globals -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu.__globals__["torch"].tanh(launch_relu(x))  # BAD

# case: attrgetter_path -> runtime_compute aten::gelu
# task: torch.randn(16, 64) => lambda self, x: F.gelu(x)
# use: relu
# use: launch_relu
from operator import attrgetter


class ModelNew(nn.Module):
    def forward(self, x):
        return attrgetter("nn.functional.gelu")(torch)(launch_relu(x))  # BAD

# case: dunder_getattribute -> runtime_compute aten::gelu
# task: torch.randn(16, 64) => lambda self, x: F.gelu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return F.__getattribute__("gelu")(launch_relu(x))  # BAD

# case: patched_jit -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
triton.jit = lambda f: f


@triton.jit
def k(x):
    return torch.tanh(x)  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return k(x)

# case: string_format_getattr -> runtime_compute aten::mm
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return getattr(x, "{}{}".format("mat", "mul"))(launch_relu(x))  # BAD

# case: sys_exit_zero -> runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
import sys


class ModelNew(nn.Module):
    def forward(self, x):
        sys.exit(0)  # BAD
        return launch_relu(x)

# case: type_hints -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
import typing


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        class T:
            y: "int(by_hand()) and int"
        try:
            typing.get_type_hints(T)
        except TypeError:
            pass
        return o

# case: update_wrapper -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: act
# use: by_hand
import functools


class Src:
    pass


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        s = Src()
        s.forward = self.other
        functools.update_wrapper(self, s)
    def other(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        by_hand()
        return o
    def forward(self, x):
        return act(x)

# case: np_reexport -> runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
from triton.runtime import interpreter as ti


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        n = ti.np
        a = n.asarray(o)  # BAD
        s = 1 / (1 + n.exp(-a))
        o.copy_(torch.as_tensor(n.asarray(x) * s))
        return o

# case: builtins_reexport -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
import dataclasses


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        dataclasses.builtins.eval("by_hand()")
        return o

# case: mangled_attr -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
def nop():
    return 0


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.__f = nop
        self._ModelNew__f = by_hand
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        self.__f()
        return o

# case: mangled_global -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
def __f():
    return 0
_ModelNew__f = by_hand


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        __f()
        return o

# case: greek_fold -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
def nop():
    return 0
φ = nop
ϕ = by_hand


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        φ()
        return o
