# Patches of torch, Triton and the classes around them.
# case: module_dict -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(torch.__dict__["exp"](x))  # BAD

# case: sys_modules -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
import sys
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(sys.modules["torch"].exp(x))  # BAD

# case: patch_tensor_method -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
torch.Tensor.contiguous = torch.Tensor.exp


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: patch_triton -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
def fake(self, *args, **kwargs):
    args[1].copy_(args[0].exp())  # BAD


triton.runtime.jit.JITFunction.run = fake


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: forward_hook -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_forward_hook(lambda m, i, o: o.softmax(-1))  # BAD

    def forward(self, x):
        return launch_relu(x)

# case: global_module_hook -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
torch.nn.modules.module.register_module_forward_hook(lambda m, i, o: o.exp())  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: call_impl_overridden -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def _call_impl(self, *args):
        return args[0].exp()  # BAD

    def forward(self, x):
        return launch_relu(x)

# case: vars_lookup -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(vars(torch)["exp"](x))  # BAD

# case: vars_lookup_again -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return vars(torch)["tanh"](launch_relu(x))  # BAD

# case: dict_of_module -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.__dict__["tanh"](launch_relu(x))  # BAD

# case: reference_via_sys_modules -> runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
import sys


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return sys.modules["reference"].Model()(x)  # BAD

# case: forward_hook_swaps_output -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_forward_hook(lambda m, i, o: torch.tanh(i[0]))  # BAD

    def forward(self, x):
        return launch_relu(x)

# case: lazy_output_class -> runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class LazyOut:
    def __init__(self, fn, x):
        self.fn, self.x = fn, x

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(self.fn(self.x))


class ModelNew(nn.Module):
    def forward(self, x):
        return LazyOut(launch_relu, x)

# case: setattr_hook_computes -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
# use: relu
# use: launch_relu
class S:
    def __setattr__(self, k, v):
        self.__dict__[k] = v.softmax(-1)  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        s = S()
        s.v = launch_relu(x)
        return s.v

# case: class_reassigned_in_init -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class Other(nn.Module):
    def forward(self, x):
        return torch.tanh(x)  # BAD


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.__class__ = Other

    def forward(self, x):
        return launch_relu(x)

# case: code_object_swapped -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)


def evil(self, x):
    return torch.tanh(x)  # BAD


ModelNew.forward.__code__ = evil.__code__

# case: call_impl_override -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def _call_impl(self, x):
        return torch.tanh(x)  # BAD

    def forward(self, x):
        return launch_relu(x)

# case: submodule_forward_hook -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class R(nn.Module):
    def forward(self, x):
        return launch_relu(x)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.r = R()
        self.r.register_forward_hook(lambda m, i, o: torch.tanh(o))  # BAD

    def forward(self, x):
        return self.r(x)

# case: pre_hook_computes_again -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class R(nn.Module):
    def forward(self, x):
        return launch_relu(x)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.r = R()
        self.r.register_forward_pre_hook(lambda m, i: (torch.tanh(i[0]),))  # BAD

    def forward(self, x):
        return self.r(x)

# case: global_forward_hook -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
torch.nn.modules.module.register_module_forward_hook(lambda m, i, o: torch.tanh(o))  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: parametrization -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.p = nn.Parameter(torch.zeros(64))
        torch.nn.utils.parametrize.register_parametrization(self, 'p', nn.Softmax(-1))

    def forward(self, x):
        return launch_relu(self.p)  # BAD

# case: torch_function_mode -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
from torch.overrides import TorchFunctionMode


class Mode(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return torch.relu(args[0])  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        with Mode():
            return launch_relu(x)

# case: patch_jit_function_run -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
from triton.runtime.jit import JITFunction

JITFunction.run = lambda *a, **k: None


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)
