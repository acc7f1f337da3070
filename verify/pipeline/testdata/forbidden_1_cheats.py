# Modules, files, frames and processes stand in for kernels.
# case: getattr_computed -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        name = "".join(reversed("hnat"))
        return getattr(torch, name)(launch_relu(x))  # BAD

# case: methodcaller -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
import operator
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return operator.methodcaller("softmax", -1)(launch_relu(x))  # BAD

# case: torch_jit_script -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
# use: relu
# use: launch_relu
@torch.jit.script
def f(x):
    return x.softmax(-1)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(f(x))  # BAD

# case: eval_string -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(eval("torch.exp(x)"))  # BAD

# case: exec_string -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
exec("def f(x):\n    return torch.exp(x)")


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(f(x))  # BAD

# case: base64_code -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
import base64
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(getattr(torch, base64.b64decode("ZXhw").decode())(x))  # BAD

# case: dunder_import -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(__import__("torch").exp(x))  # BAD

# case: importlib -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
import importlib
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(importlib.import_module("torch").exp(x))  # BAD

# case: globals_lookup -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(globals()["torch"].exp(x))  # BAD

# case: threading -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
import threading
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        out = []
        t = threading.Thread(target=lambda: out.append(x.exp()))  # BAD
        t.start()
        t.join()
        return launch_relu(out[0])

# case: patch_kernel -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
relu_kernel.run = lambda *a, **k: None


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: star_import -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
from torch import *
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(exp(x))  # BAD

# case: environment_switch -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
import os
os.environ["TRITON_INTERPRET"] = "1"
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: compile_reference -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
# use: relu
# use: launch_relu
def _ref(x):
    return torch.softmax(x, -1)  # BAD


fast = torch.compile(_ref, mode="max-autotune")


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return fast(x)

# case: jit_script_reference -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
@torch.jit.script
def helper(x):
    return x.exp().log1p()


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(helper(x))  # BAD

# case: getattr_joined_chars -> runtime_compute aten::gelu
# task: torch.randn(16, 64) => lambda self, x: F.gelu(x)
# use: relu
# use: launch_relu
NAME = "".join(chr(c) for c in (103, 101, 108, 117))


class ModelNew(nn.Module):
    def forward(self, x):
        return getattr(F, NAME)(launch_relu(x))  # BAD

# case: methodcaller_again -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
# use: relu
# use: launch_relu
from operator import methodcaller


class ModelNew(nn.Module):
    def forward(self, x):
        return methodcaller("softmax", -1)(launch_relu(x))  # BAD

# case: reference_via_gc -> runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
import gc


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        ref = [o for o in gc.get_objects() if type(o).__name__ == "Model"][0]  # BAD
        return ref(x)

# case: frames_look_at_caller -> runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
import inspect


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return inspect.currentframe().f_back.f_locals["expected"]  # BAD

# case: importlib_string -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
# use: relu
# use: launch_relu
import importlib

tt = importlib.import_module("to" + "rch")


class ModelNew(nn.Module):
    def forward(self, x):
        return tt.softmax(launch_relu(x), -1)  # BAD

# case: dunder_import_again -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return __import__("torch").softmax(launch_relu(x), -1)  # BAD

# case: metaclass_injects_forward -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class Meta(type):
    def __new__(mcs, name, bases, ns):
        ns["forward"] = lambda self, x: torch.tanh(x)  # BAD
        return super().__new__(mcs, name, bases, ns)


class ModelNew(nn.Module, metaclass=Meta):
    def forward(self, x):
        return launch_relu(x)

# case: thread_computes -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
import threading


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        t = threading.Thread(target=lambda: y.copy_(launch_relu(x)))
        t.start()
        return y

# case: submodule_dict_call -> runtime_compute aten::addmm
# task: torch.randn(64, 8) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        launch_relu(x)
        return self._modules["fc"](x)  # BAD

# case: fx_trace -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
# use: relu
# use: launch_relu
import torch.fx


gm = torch.fx.symbolic_trace(nn.Softmax(-1))


class ModelNew(nn.Module):
    def forward(self, x):
        return gm(launch_relu(x))  # BAD

# case: jit_trace -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
# use: relu
# use: launch_relu
traced = torch.jit.trace(lambda v: v.softmax(-1), torch.zeros(2, 2))


class ModelNew(nn.Module):
    def forward(self, x):
        return traced(launch_relu(x))  # BAD
