# torch computes in methods and operators of tensors.
# case: never_launched_and_compute -> runtime_compute aten::clamp
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        return x.clamp(min=0)  # BAD

# case: matmul_operator -> runtime_compute aten::mm
# task: torch.randn(16, 64), torch.randn(64, 16) => lambda self, a, b: torch.relu(a)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, a, b):
        return launch_relu(a @ b)  # BAD

# case: plus_after_kernel -> runtime_compute aten::add
# task: torch.randn(16, 64), torch.randn(16, 64) => lambda self, x, y: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x, y):
        return launch_relu(x) + y  # BAD

# case: augmented_assignment -> runtime_compute aten::mul_
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        y *= 2  # BAD
        return y

# case: negation -> runtime_compute aten::neg
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return -launch_relu(x)  # BAD

# case: functional_alias -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
from torch.nn.functional import softmax as sm
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return sm(launch_relu(x), dim=-1)  # BAD

# case: module_through_alias -> runtime_compute aten::addmm
# task: torch.randn(32, 4) => lambda self, x: torch.relu(x)
from torch import nn as layers
# use: relu
# use: launch_relu
class ModelNew(layers.Module):
    def __init__(self):
        super().__init__()
        self.parts = {"a": layers.Linear(4, 4)}

    def forward(self, x):
        return launch_relu(self.parts["a"](x))  # BAD

# case: hidden_in_closure_list -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
OPS = [launch_relu, torch.exp]


class ModelNew(nn.Module):
    def forward(self, x):
        for op in OPS:
            x = op(x)  # BAD
        return x

# case: operator_module -> runtime_compute aten::mm
# task: torch.randn(16, 64), torch.randn(64, 16) => lambda self, a, b: torch.relu(a)
import operator
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, a, b):
        return launch_relu(operator.matmul(a, b))  # BAD

# case: dunder_method -> runtime_compute aten::mm
# task: torch.randn(16, 64), torch.randn(64, 16) => lambda self, a, b: torch.relu(a)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, a, b):
        return launch_relu(a.__matmul__(b))  # BAD

# case: tensor_class_method -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(torch.Tensor.softmax(x, -1))  # BAD

# case: decorator_computes -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
# use: relu
# use: launch_relu
def wrap(f):
    def inner(self, x):
        return f(self, x).softmax(-1)  # BAD

    return inner


class ModelNew(nn.Module):
    @wrap
    def forward(self, x):
        return launch_relu(x)

# case: boolean_mask -> runtime_compute aten::lt
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        y[y < 1] = 0  # BAD
        return y

# case: fancy_index_gather -> runtime_compute aten::index
# task: torch.randn(64, 64), torch.randint(0, 64, (32,)) => lambda self, table, idx: torch.relu(table)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, table, idx):
        return launch_relu(table[idx])  # BAD

# case: partial_sums_on_host -> runtime_compute aten::sum
# task: torch.randn(64, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + pid, tl.sum(tl.load(x_ptr + offs, mask=offs < n, other=0.0), axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(triton.cdiv(x.numel(), 64), device=x.device)
        k[(out.numel(),)](x, out, x.numel(), BLOCK=64)
        return out.sum()  # BAD

# case: default_argument -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
def apply(x, op=torch.exp):
    return op(x)  # BAD


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.op = apply

    def forward(self, x):
        return launch_relu(self.op(x))

# case: in_place_method -> runtime_compute aten::add_
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        out = launch_relu(x)
        out.add_(x)  # BAD
        return out

# case: assigned_slice -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        out = launch_relu(x)
        out[:] = x.exp()  # BAD
        return out

# case: loop_break_binds_function -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        op = launch_relu
        for i in range(x.shape[0]):
            if i > 3:
                op = torch.exp
                break
        return launch_relu(op(x))  # BAD

# case: annotation_computes -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        out = launch_relu(x)
        def f(a: out.copy_(x.exp())):  # BAD
            pass
        return out

# case: grid_function_computes -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        def grid(meta):
            x.copy_(x.exp())  # BAD
            return (1,)
        relu_kernel[grid](x, out, x.numel(), BLOCK=64)
        return out

# case: namedtuple_holds_function -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
from collections import namedtuple
# use: relu
# use: launch_relu
Pair = namedtuple("Pair", "f n")


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(Pair(torch.exp, 1).f(x))  # BAD

# case: tensor_smuggled_in_exception -> runtime_compute aten::mul
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        try:
            raise ValueError(x)
        except ValueError as e:
            y = e.args[0] * 2  # BAD
        return launch_relu(y)

# case: scalar_annotation_lies -> runtime_compute aten::mul
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x: float = 1.0):
        return launch_relu(x * 2.0)  # BAD

# case: kernel_fn_called_on_host -> runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(relu_kernel.fn(x, x, 1, 1))

# case: never_true_shape_condition -> runtime_compute aten::clamp_min
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        if x.dim() > 10:
            return launch_relu(x)
        return x.clamp_min(0)  # BAD

# case: env_flag_chooses_torch -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
import os


class ModelNew(nn.Module):
    def forward(self, x):
        if os.environ.get("USE_TRITON") == "1":
            return launch_relu(x)
        return nn.functional.relu(x)  # BAD
