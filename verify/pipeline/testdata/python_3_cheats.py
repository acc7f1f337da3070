# Python computes on what it read back.
# case: repr_parse -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
class ModelNew(nn.Module):
    def forward(self, x):
        y = scale(x, 1.702)
        o = torch.empty_like(x)
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                o[i, j] = float(f"{x[i, j]}") / (1 + math.exp(-float(f"{y[i, j]}")))  # BAD
        return o

# case: scalar_assign -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                o[i, j] = x[i, j].item() / (1 + math.exp(-o[i, j].item()))  # BAD
        return o

# case: fill_scalar -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        for a, b in zip(x.view(-1), o.view(-1)):
            b.fill_(float(a) / (1 + math.exp(-float(b))))  # BAD
        return o

# case: post_init -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
from dataclasses import dataclass


@dataclass
class V:
    a: int
    def __post_init__(self):
        by_hand()


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        V(3)
        return o

# case: default_factory -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
from dataclasses import dataclass, field


@dataclass
class V:
    a: int = field(default_factory=by_hand)


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        V()
        return o

# case: enum_missing -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
import enum


class E(enum.Enum):
    A = 1
    @classmethod
    def _missing_(cls, v):
        by_hand()
        return cls.A


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        E(7)
        return o

# case: partialmethod -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
import functools


class V:
    def w(self, a):
        by_hand()
    y = functools.partialmethod(w, 1)


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        V().y()
        return o

# case: chainmap -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
from collections import ChainMap


def nop():
    return 0


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        ChainMap({"a": by_hand}, {"a": nop})["a"]()
        return o

# case: mro_super -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
class A:
    def go(self):
        return 0


class B(A):
    def go(self):
        return super().go()


class C(A):
    def go(self):
        return by_hand()


class D(B, C):
    pass


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        D().go()
        return o

# case: mro_order -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
class A:
    def go(self):
        return 0


class B(A):
    pass


class C(A):
    def go(self):
        return by_hand()


class D(B, C):
    pass


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        D().go()
        return o

# case: forward_mro -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: act
# use: by_hand
class A(nn.Module):
    def forward(self, x):
        return act(x)


class B(A):
    pass


class C(A):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        by_hand()
        return o


class ModelNew(B, C):
    pass

# case: big_int -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: act
# use: by_hand
class ModelNew(nn.Module):
    def forward(self, x):
        if 9007199254740993 == 9007199254740992:
            return act(x)
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        by_hand()
        return o

# case: bytes_str -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: act
# use: by_hand
class ModelNew(nn.Module):
    def forward(self, x):
        if b"a" == "a":
            return act(x)
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        by_hand()
        return o

# case: doc_none -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: act
# use: by_hand
class ModelNew(nn.Module):
    def forward(self, x):
        if self.__doc__ is not None:
            return act(x)
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        by_hand()
        return o

# case: grad_none -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: act
# use: by_hand
class ModelNew(nn.Module):
    def forward(self, x):
        if x.grad is not None:
            return act(x)
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        by_hand()
        return o

# case: version_hip -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: act
# use: by_hand
class ModelNew(nn.Module):
    def forward(self, x):
        if torch.version.hip is not None:
            return act(x)
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        by_hand()
        return o
