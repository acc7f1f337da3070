# torch computes, called by something else.
# case: hidden_in_helper_chain -> runtime_compute aten::mean
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
def a(x):
    return b(x)


def b(x):
    return (lambda t: t.mean(dim=0))(x)  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(a(x))

# case: method_object -> runtime_compute aten::sum
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        reduce = launch_relu(x).sum
        return reduce(dim=1)  # BAD

# case: reduce_lambda -> runtime_compute aten::mul
# task: torch.randn(16, 64), torch.randn(16, 64) => lambda self, x, y: torch.relu(x)
from functools import reduce
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x, y):
        return launch_relu(reduce(lambda a, b: a * b, [x, y]))  # BAD

# case: map_callback -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.cat(list(map(torch.exp, [launch_relu(x)])))  # BAD

# case: call_overridden -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __call__(self, x):
        return launch_relu(torch.exp(x))  # BAD

    def forward(self, x):
        return launch_relu(x)

# case: operator_of_own_class -> runtime_compute aten::mm
# task: torch.randn(16, 64), torch.randn(64, 16) => lambda self, a, b: torch.relu(a)
# use: relu
# use: launch_relu
class Box:
    def __init__(self, t):
        self.t = t

    def __matmul__(self, other):
        return torch.matmul(self.t, other.t)  # BAD


class ModelNew(nn.Module):
    def forward(self, a, b):
        return launch_relu(Box(a) @ Box(b))

# case: generator_yields_compute -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
def gen(x):
    yield torch.exp(x)  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(next(gen(x)))

# case: property_computes -> runtime_compute aten::linalg_inv_ex
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 4))

    @property
    def inverse(self):
        return torch.linalg.inv(self.w)  # BAD

    def forward(self, x):
        return launch_relu(self.inverse)

# case: class_attribute_function -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class Ops:
    run = torch.exp


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(Ops.run(x))  # BAD

# case: module_call_through_class -> runtime_compute aten::addmm
# task: torch.randn(32, 4) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return launch_relu(nn.Module.__call__(self.fc, x))  # BAD

# case: partial_of_torch -> runtime_compute aten::add
# task: torch.randn(16, 64), torch.randn(16, 64) => lambda self, x, y: torch.relu(x)
from functools import partial
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x, y):
        return launch_relu(partial(torch.add, x)(y))  # BAD

# case: bool_method -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class Flag:
    def __init__(self, t):
        self.t = t

    def __bool__(self):
        self.t.copy_(self.t.exp())  # BAD
        return True


class ModelNew(nn.Module):
    def forward(self, x):
        flag = Flag(x)
        if flag:
            pass
        return launch_relu(x)

# case: context_manager_exit -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class Ctx:
    def __init__(self, t):
        self.t = t

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.t.copy_(self.t.exp())  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        with Ctx(x):
            pass
        return launch_relu(x)

# case: exit_stack_callback -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
import contextlib
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        out = launch_relu(x)
        with contextlib.ExitStack() as stack:
            stack.callback(lambda: out.copy_(x.exp()))  # BAD
        return out

# case: heuristic_computes -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
@triton.heuristics({"EVEN": lambda args: args["x_ptr"].copy_(args["x_ptr"].exp()) is None})  # BAD
@triton.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    o = tl.arange(0, BLOCK)
    tl.store(out_ptr + o, tl.load(x_ptr + o) * 1.5)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        k[(1,)](x, out, x.numel(), BLOCK=64)
        return out

# case: pre_hook_computes -> runtime_compute aten::sin
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
def hook(args):
    args["x_ptr"].copy_(args["x_ptr"].sin())  # BAD


@triton.autotune(configs=[triton.Config({"BLOCK": 64}, pre_hook=hook)], key=["n"])
@triton.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    tl.store(out_ptr + o, tl.load(x_ptr + o) * 1.5)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        k[(1,)](x, out, x.numel())
        return out

# case: frozen_dict_of_lambdas -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
# use: relu
# use: launch_relu
TABLE = dict(a=lambda t: t.softmax(-1))  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return TABLE.get("a", None)(launch_relu(x))

# case: interpreted_function -> runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        f = triton.runtime.interpreter.InterpretedFunction(lambda t: t)  # BAD
        return launch_relu(f(x))

# case: map_over_functions -> runtime_compute aten::abs
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
import functools

OPS = [torch.abs, torch.sqrt]


class ModelNew(nn.Module):
    def forward(self, x):
        return functools.reduce(lambda v, f: f(v), OPS, launch_relu(x))  # BAD

# case: property_computes_again -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
# use: relu
# use: launch_relu
class Box:
    def __init__(self, x):
        self.x = x

    @property
    def value(self):
        return self.x.softmax(-1)  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return Box(launch_relu(x)).value

# case: descriptor_trick -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
# use: relu
# use: launch_relu
class Op:
    def __get__(self, obj, owner):
        return torch.softmax


class ModelNew(nn.Module):
    op = Op()

    def forward(self, x):
        return self.op(launch_relu(x), -1)  # BAD
