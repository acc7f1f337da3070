# torch computes, called by something else.
# case: cached_property -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
import functools


class H:
    def __init__(self, x):
        self.x = x

    @functools.cached_property
    def y(self):
        return self.x.tanh()  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return H(x).y

# case: exit_stack_callback_again -> runtime_compute aten::tanh_
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
import contextlib


class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        with contextlib.ExitStack() as s:
            s.callback(lambda: y.tanh_())  # BAD
        return y

# case: contextmanager_generator -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
# use: relu
# use: launch_relu
import contextlib


@contextlib.contextmanager
def op(x):
    yield x.softmax(-1)  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        with op(x) as y:
            launch_relu(x)
            return y

# case: sort_key_callback -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        out = []
        sorted([0], key=lambda i: out.append(x.tanh()) or 0)  # BAD
        return out[0]

# case: iter_sentinel -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return next(iter(lambda: x.tanh(), None))  # BAD

# case: slots_and_class_attribute_tensor -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class Holder:
    value = None


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        Holder.value = x.tanh()  # BAD
        return Holder.value

# case: lambda_default_capture -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return (lambda v=x, f=torch.tanh: f(v))()  # BAD

# case: class_attribute_op -> runtime_compute aten::sigmoid
# task: torch.randn(16, 64) => lambda self, x: torch.sigmoid(x)
# use: relu
# use: launch_relu
class Ops:
    act = staticmethod(torch.sigmoid)


class ModelNew(nn.Module):
    def forward(self, x):
        return Ops.act(launch_relu(x))  # BAD

# case: enum_member_op -> runtime_compute aten::gelu
# task: torch.randn(16, 64) => lambda self, x: F.gelu(x)
# use: relu
# use: launch_relu
import enum


class Op(enum.Enum):
    GELU = F.gelu


class ModelNew(nn.Module):
    def forward(self, x):
        return Op.GELU.value(launch_relu(x))  # BAD

# case: dataclass_default_op -> runtime_compute aten::sigmoid
# task: torch.randn(16, 64) => lambda self, x: torch.sigmoid(x)
# use: relu
# use: launch_relu
from dataclasses import dataclass
from typing import Callable


@dataclass
class Cfg:
    act: Callable = torch.sigmoid


class ModelNew(nn.Module):
    def forward(self, x):
        return Cfg().act(launch_relu(x))  # BAD

# case: partial_of_torch_again -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
# use: relu
# use: launch_relu
from functools import partial

act = partial(F.softmax, dim=-1)


class ModelNew(nn.Module):
    def forward(self, x):
        return act(launch_relu(x))  # BAD

# case: exception_method -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
class Err(Exception):
    def work(self):
        by_hand()


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        try:
            raise Err()
        except Err as e:
            e.work()
        return o

# case: linked_loop -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
class N:
    def __init__(self, f, n):
        self.f, self.n = f, n


def build():
    n = N(by_hand, None)
    for _ in range(20):
        n = N(int, n)
    return n


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        n = build()
        while n.n is not None:
            n = n.n
        n.f()
        return o

# case: recursion_closure -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
def rec(n, f):
    if n == 0:
        return f()
    return rec(n - 1, (lambda: f()) if n > 1 else by_hand)


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        rec(8, int)
        return o

# case: jit_repr -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
@triton.jit(repr=lambda s: "k10" if not KEPT else str(by_hand()))
def k10(x_ptr, out_ptr, s, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=m) * s, mask=m)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 0
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT[:] = [x, o]
        self.n += 1
        k10[(1,)](x, torch.empty_like(x), 1.5, 8, BLOCK=16 << self.n)
        KEPT.clear()
        return o

# case: lambda_forward_computes -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    forward = lambda self, x: (launch_relu(x), torch.relu(x))[1]  # BAD

# case: named_tuple_gives_the_other -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
from typing import NamedTuple
# use: relu
# use: launch_relu
class Both(NamedTuple):
    a: torch.Tensor
    b: torch.Tensor


class ModelNew(nn.Module):
    def forward(self, x):
        _, y = Both(launch_relu(x), torch.relu(x))  # BAD
        return y

# case: named_tuple_field_of_torch -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
from typing import NamedTuple
# use: relu
# use: launch_relu
class Ops(NamedTuple):
    f: object
    g: object


OPS = Ops(launch_relu, torch.softmax)


class ModelNew(nn.Module):
    def forward(self, x):
        f, g = OPS
        return f(g(x, -1))  # BAD

# case: defaultdict_of_torch -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
from collections import defaultdict
# use: relu
# use: launch_relu
OPS = defaultdict(lambda: torch.exp)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(OPS["anything"](x))  # BAD
