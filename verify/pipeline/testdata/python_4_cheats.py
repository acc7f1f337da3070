# Python computes on what it read back.
# case: modulelist_truth -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: act
# use: by_hand
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.ModuleList([])
    def forward(self, x):
        if self.l:
            return act(x)
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        by_hand()
        return o

# case: del_item -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: act
# use: by_hand
class ModelNew(nn.Module):
    def forward(self, x):
        ops = [1]
        del ops[0]
        if ops:
            return act(x)
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        by_hand()
        return o

# case: dunder_setitem -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
def nop():
    return 0


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        ops = [nop]
        ops.__setitem__(0, by_hand)
        ops[0]()
        return o

# case: operator_setitem -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
import operator


def nop():
    return 0


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        ops = [nop]
        operator.setitem(ops, 0, by_hand)
        ops[0]()
        return o

# case: func_attr -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
def nop():
    return 0


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        nop.impl = by_hand
        nop.impl()
        return o

# case: import_fake -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
try:
    import torch_missing
    impl = int
except ImportError:
    impl = by_hand


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        impl()
        return o

# case: import_from_fake -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: act
# use: by_hand
FAST = False


try:
    from torch import missing_name
    FAST = True
except ImportError:
    FAST = False


class ModelNew(nn.Module):
    def forward(self, x):
        if FAST:
            return act(x)
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        by_hand()
        return o

# case: try_target_raises -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: act
# use: by_hand
FAST = []
E = True


try:
    FAST[0] = True
except IndexError:
    E = False


class ModelNew(nn.Module):
    def forward(self, x):
        if E:
            return act(x)
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        by_hand()
        return o

# case: suppress -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
from contextlib import suppress


def helper():
    with suppress(ValueError):
        raise ValueError
    by_hand()


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        helper()
        return o

# case: own_suppress -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
class Sup:
    def __enter__(self):
        return self
    def __exit__(self, *a):
        return True


def helper():
    with Sup():
        raise ValueError
    by_hand()


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        helper()
        return o

# case: finally_var -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
def nop():
    return 0


def helper():
    f = nop
    try:
        f = by_hand
        return 1
    finally:
        f()


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        helper()
        return o

# case: attr_str -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
def nop():
    return 0


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nop
        setattr(self, "\x66", by_hand)
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        self.f()
        return o

# case: loop_flags -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
def helper(n):
    a = b = c = d = e = f = 0
    for _ in range(n):
        if f:
            by_hand()
        if e:
            f = 1
        if d:
            e = 1
        if c:
            d = 1
        if b:
            c = 1
        if a:
            b = 1
        a = 1


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        helper(x.dim() + 5)
        return o
