# Modules, files, frames and processes stand in for kernels.
# case: libtriton_load -> runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
from triton._C.libtriton import interpreter as I
import numpy as np


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        n = x.numel()
        m = np.ones(n, dtype=bool)
        p = (4 * np.arange(n)).astype(np.uint64)
        z = np.zeros(n, dtype=np.float32)
        c, e = list(I.CACHE_MODIFIER.__members__.values())[0], list(I.EVICTION_POLICY.__members__.values())[0]  # BAD
        a = I.load(p + np.uint64(x.data_ptr()), m, z, np.dtype(np.float32))
        b = I.load(p + np.uint64(o.data_ptr()), m, z, np.dtype(np.float32))
        I.store(p + np.uint64(o.data_ptr()), (a / (1 + np.exp(-b))).astype(np.float32), m)
        return o

# case: import_from_reexport -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
from dataclasses import builtins as b


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        b.eval("by_hand()")
        return o

# case: knob_hook_add -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        triton.knobs.runtime.launch_enter_hook.add(lambda *a: KEPT and by_hand())
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT[:] = [x, o]
        y = scale(x[:1], 2.0)
        KEPT.clear()
        return o

# case: pre_run_hook -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
scale_kernel.add_pre_run_hook(lambda *a, **k: KEPT and by_hand())


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT[:] = [x, o]
        y = scale(x[:1], 2.0)
        KEPT.clear()
        return o

# case: from_import_used_in_a_lambda -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
from base64 import b64decode as d
# use: relu
# use: launch_relu
name = lambda: d("ZXhw").decode()


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(getattr(torch, name())(x))  # BAD

# case: import_module_by_name -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
from importlib import import_module
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(import_module("torch").exp(x))  # BAD

# case: import_module_by_getattr -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
import importlib as i
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(getattr(i, "import_module")("torch").exp(x))  # BAD

# case: half_width_letters -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(ｅｖａｌ("torch.exp")(x))  # BAD

# case: compiled_in_a_table -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
def ref(x):
    return torch.exp(x)  # BAD


TABLE = {"f": torch.compile(ref)}


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(TABLE["f"](x))

# case: compiled_with_options -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
@torch.compile(mode="max-autotune")
def ref(x):
    return torch.exp(x)  # BAD


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = ref

    def forward(self, x):
        return launch_relu(self.f(x))

# case: compiled_through_map -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
ref = torch.compile(torch.exp)


class ModelNew(nn.Module):
    def forward(self, x):
        (y,) = map(ref, [x])  # BAD
        return launch_relu(y)

# case: metaclass_below_the_abstract_one -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
import abc
# use: relu
# use: launch_relu
class Meta(abc.ABCMeta):
    def __call__(cls, *args):
        return lambda x: torch.relu(x)  # BAD


class ModelNew(nn.Module, metaclass=Meta):
    def forward(self, x):
        return launch_relu(x)

# case: builtin_eval_beside_a_method -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def eval(self):
        return self

    def forward(self, x):
        launch_relu(x)
        return eval("torch.relu(x)")  # BAD

# case: imported_module_computes -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
import importlib
# use: relu
# use: launch_relu
t = importlib.import_module("torch")


class ModelNew(nn.Module):
    def forward(self, x):
        return t.relu(launch_relu(x))  # BAD

# case: imported_module_by_getattr -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
import importlib
# use: relu
# use: launch_relu
t = importlib.import_module("torch")


class ModelNew(nn.Module):
    def forward(self, x):
        return getattr(t, "exp")(launch_relu(x))  # BAD
