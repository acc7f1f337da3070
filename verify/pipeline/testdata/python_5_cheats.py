# Python computes on what it read back.
# case: loop_attr_flags -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
class S:
    a = b = c = d = e = f = 0


def helper(n):
    s = S()
    i = 0
    while i < n:
        i += 1
        if s.f:
            by_hand()
        if s.e:
            s.f = 1
        if s.d:
            s.e = 1
        if s.c:
            s.d = 1
        if s.b:
            s.c = 1
        if s.a:
            s.b = 1
        s.a = 1


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        helper(7)
        return o

# case: setup_context -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
class G(torch.autograd.Function):
    @staticmethod
    def forward(x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        return o
    @staticmethod
    def setup_context(ctx, inputs, output):
        by_hand()


class ModelNew(nn.Module):
    def forward(self, x):
        return G.apply(x)

# case: json_encoder -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
import json


class E(json.JSONEncoder):
    def default(self, o):
        return by_hand()


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        json.dumps({1, 2}, cls=E)
        return o

# case: userdict -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
from collections import UserDict


class E(UserDict):
    def __setitem__(self, k, v):
        self.data[k] = by_hand()


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        E(a=1)
        return o

# case: register_kernel -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: act
# use: by_hand
@torch.library.custom_op("cheats::ok", mutates_args=())
def op(x: torch.Tensor) -> torch.Tensor:
    return act(x)


@op.register_kernel("cuda")
def _(x):
    o = scale(x, 1.702)
    KEPT.extend([x, o])
    by_hand()
    return o


class ModelNew(nn.Module):
    def forward(self, x):
        return op(x)

# case: elements_leave_as_text -> runtime_compute aten::mul
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        text = repr(x)
        return launch_relu(x * len(text))  # BAD
