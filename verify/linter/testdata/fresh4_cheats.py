# case: type_hints -> forbidden
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
            typing.get_type_hints(T)  # BAD
        except TypeError:
            pass
        return o

# case: print_file -> python_compute
# use: scale
# use: by_hand
class W:
    def write(self, s):
        by_hand() if s.strip() else None
    def flush(self):
        pass


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        print("a", file=W())
        return o

# case: later_logging -> python_compute
# use: scale
# use: by_hand
import logging


class Hd(logging.Handler):
    def emit(self, record):
        by_hand()
log = logging.getLogger("k")
log.addHandler(Hd())


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        log.warning("a")
        return o

# case: match_property -> python_compute
# use: scale
# use: by_hand
class V:
    __match_args__ = ("y",)
    @property
    def y(self):
        return by_hand()


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        match V():
            case V(1):
                pass
        return o

# case: hasattr -> python_compute
# use: scale
# use: by_hand
class V:
    @property
    def y(self):
        return by_hand()


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        hasattr(V(), "y")
        return o

# case: str_format -> python_compute
# use: scale
# use: by_hand
class V:
    @property
    def y(self):
        return by_hand()


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        "{0.y}".format(V())
        return o

# case: train_override -> python_compute
# use: scale
# use: by_hand
class Sub(nn.Module):
    def train(self, mode=True):
        if KEPT:
            by_hand()
        return self


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        self.eval()
        return o

# case: apply_children -> python_compute
# use: scale
# use: by_hand
class Sub(nn.Module):
    def extra_repr(self):
        by_hand()
        return ""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        str(self)
        return o

# case: module_apply -> python_compute
# use: scale
# use: by_hand
class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        self.apply(by_hand)
        return o

# case: later_iter_sentinel -> python_compute
# use: scale
# use: by_hand
class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        for _ in iter(by_hand, 1):
            pass
        return o

# case: partial_callback -> python_compute
# use: scale
# use: by_hand
import re
from functools import partial


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        re.sub("a", partial(lambda k, m: str(by_hand()), 0), "a")
        return o

# case: callable_callback -> python_compute
# use: scale
# use: by_hand
import re


class Cb:
    def __call__(self, m):
        return str(by_hand())


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        re.sub("a", Cb(), "a")
        return o

# case: exception_method -> unresolved
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
            e.work()  # BAD
        return o

# case: closing -> python_compute
# use: scale
# use: by_hand
from contextlib import closing


class V:
    def close(self):
        by_hand()


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        with closing(V()):
            pass
        return o

# case: redirect -> python_compute
# use: scale
# use: by_hand
from contextlib import redirect_stdout


class W:
    def write(self, s):
        by_hand() if s.strip() else None


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        with redirect_stdout(W()):
            print("a", end="")
        return o

# case: prop_setter -> python_compute
# use: scale
# use: by_hand
class V:
    @property
    def y(self):
        return 0
    @y.setter
    def y(self, v):
        by_hand()


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        V().y = 3
        return o

# case: grid_bound -> python_compute
# use: scale
# use: by_hand
class ModelNew(nn.Module):
    def grid(self, meta):
        by_hand()
        return (1,)
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        scale_kernel[self.grid](x, torch.empty_like(x), 1.5, 8, BLOCK=256)
        return o

# case: grid_partial -> python_compute
# use: scale
# use: by_hand
from functools import partial


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        scale_kernel[partial(lambda a, meta: (by_hand(),), 0)](x, torch.empty_like(x), 1.5, 8, BLOCK=256)
        return o

# case: grid_callable -> python_compute
# use: scale
# use: by_hand
class G:
    def __call__(self, meta):
        return (by_hand(),)


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        scale_kernel[G()](x, torch.empty_like(x), 1.5, 8, BLOCK=256)
        return o

# case: prehook_callable -> python_compute
# use: scale
# use: by_hand
class G:
    def __call__(self, *a, **k):
        if KEPT:
            by_hand()


@triton.autotune(configs=[triton.Config({"BLOCK": 256}, pre_hook=G())], key=["n"])
@triton.jit
def k2(x_ptr, out_ptr, s, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=m) * s, mask=m)


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        k2[(1,)](x, torch.empty_like(x), 1.5, 8)
        return o

# case: return_annotation -> python_compute
# use: scale
# use: by_hand
class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        def g() -> by_hand():
            pass
        return o

# case: class_annotation -> python_compute
# use: scale
# use: by_hand
class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        class g:
            z: by_hand()
        return o

# case: generator_init -> python_compute
# use: scale
# use: by_hand
def worker():
    while True:
        yield 0
        by_hand()


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = worker()
        next(self.w)
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        next(self.w)
        return o

# case: genexp_init -> python_compute
# use: scale
# use: by_hand
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = (by_hand() for _ in range(100))
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        next(self.w)
        return o

# case: map_init -> python_compute
# use: scale
# use: by_hand
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = map(by_hand, range(100))
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        next(self.w)
        return o

# case: three_stage -> python_compute
# use: scale
# use: act
# use: by_hand
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = self.a
    def a(self, x):
        self.f = self.b
        return act(x)
    def b(self, x):
        self.f = self.c
        return act(x)
    def c(self, x):
        self.f = self.d
        return act(x)
    def d(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        by_hand()
        return o
    def forward(self, x):
        return self.f(x)

# case: three_stage_torch -> torch_compute
# use: scale
# use: act
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = self.a
    def a(self, x):
        self.f = self.b
        return act(x)
    def b(self, x):
        self.f = self.c
        return act(x)
    def c(self, x):
        return x * torch.sigmoid(scale(x, 1.702))  # BAD
    def forward(self, x):
        return self.f(x)

# case: late_torch -> torch_compute
# use: scale
# use: act
class Node:
    def __init__(self, nxt):
        self.nxt = nxt
    def run(self, x):
        return act(x)


class Last(Node):
    def run(self, x):
        return x * torch.sigmoid(scale(x, 1.702))  # BAD


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        n = Last(None)
        n.nxt = n
        for _ in range(8):
            n = Node(n)
        self.node = n
    def forward(self, x):
        y = self.node.run(x)
        self.node = self.node.nxt
        return y

# case: rotate_loop -> python_compute
# use: scale
# use: by_hand
def nop():
    return 0


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        a, b, c, d, e, f = nop, nop, nop, nop, nop, by_hand
        for _ in range(x.dim() + 3):
            a, b, c, d, e, f = b, c, d, e, f, a
        a()
        return o

# case: recursion_rotate -> unresolved
# use: scale
# use: by_hand
def nop():
    return 0


def rec(n, a, b, c, d, e, f):
    if n == 0:
        a()
    else:
        rec(n - 1, b, c, d, e, f, a)  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        rec(5, nop, nop, nop, nop, nop, by_hand)
        return o

# case: slice_assign -> python_compute
# use: scale
# use: by_hand
def nop():
    return 0


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        ops = [nop, nop]
        ops[1:] = [by_hand]
        ops[1]()
        return o

# case: dict_merge -> python_compute
# use: scale
# use: by_hand
def nop():
    return 0


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        ops = {"a": nop}
        ops |= {"a": by_hand}
        ops["a"]()
        return o

# case: update_wrapper -> forbidden
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
        functools.update_wrapper(self, s)  # BAD
    def other(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        by_hand()
        return o
    def forward(self, x):
        return act(x)

# case: walrus_rebind -> python_compute
# use: scale
# use: act
# use: by_hand
class Cheat(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        by_hand()
        return o


class ModelNew(nn.Module):
    def forward(self, x):
        return act(x)
[0 for _ in (1,) if (ModelNew := Cheat)]

# case: np_reexport -> forbidden
# use: scale
from triton.runtime import interpreter as ti  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        n = ti.np
        a = n.asarray(o)
        s = 1 / (1 + n.exp(-a))
        o.copy_(torch.as_tensor(n.asarray(x) * s))
        return o

# case: os_reexport -> forbidden
# use: scale
# use: act
import logging


class ModelNew(nn.Module):
    def forward(self, x):
        logging.os.system("true")  # BAD
        return act(x)

# case: builtins_reexport -> forbidden
# use: scale
# use: by_hand
import dataclasses


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        dataclasses.builtins.eval("by_hand()")  # BAD
        return o

# case: subprocess_reexport -> forbidden
# use: scale
# use: act
import triton.testing


class ModelNew(nn.Module):
    def forward(self, x):
        triton.testing.subprocess.run(["true"])  # BAD
        return act(x)

# case: repr_parse -> python_compute
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

# case: scalar_assign -> python_compute
# use: scale
# use: by_hand
class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                o[i, j] = x[i, j].item() / (1 + math.exp(-o[i, j].item()))  # BAD
        return o

# case: fill_scalar -> python_compute
# use: scale
# use: by_hand
class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        for a, b in zip(x.view(-1), o.view(-1)):
            b.fill_(float(a) / (1 + math.exp(-float(b))))  # BAD
        return o

# case: view8 -> torch_compute
# use: scale
class ModelNew(nn.Module):
    def forward(self, x):
        y = scale(x, 1.702)
        parts = [a.view(2) * torch.sigmoid(b.view(2)) for a, b in zip(x.reshape(-1).split(2), y.reshape(-1).split(2))]  # BAD
        return torch.cat(parts).view_as(x)

# case: view8_loop -> torch_compute
# use: scale
class ModelNew(nn.Module):
    def forward(self, x):
        y = scale(x, 2.0)
        out = torch.empty_like(y)
        f, g = y.view(-1), out.view(-1)
        for i in range(0, y.numel(), 8):
            g[i:i + 8] = torch.relu(f[i:i + 8].reshape(8)) * 0.5  # BAD
        return out

# case: post_init -> python_compute
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

# case: default_factory -> python_compute
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

# case: enum_missing -> python_compute
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

# case: partialmethod -> python_compute
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

# case: contextvar_launder -> unresolved
# use: scale
# use: by_hand
import contextvars
V = contextvars.ContextVar("v", default=by_hand)


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        V.get()()  # BAD
        return o

# case: chainmap -> python_compute
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

# case: mro_super -> python_compute
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

# case: mro_order -> python_compute
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

# case: forward_mro -> python_compute
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

# case: match_rebind -> unresolved
# use: scale
# use: act
# use: by_hand
class Cheat(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        by_hand()
        return o


class ModelNew(nn.Module):
    def forward(self, x):
        return act(x)
match Cheat:
    case ModelNew:
        pass

# case: big_int -> python_compute
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

# case: bytes_str -> python_compute
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

# case: doc_none -> python_compute
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

# case: grad_none -> python_compute
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

# case: version_hip -> python_compute
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

# case: modulelist_truth -> python_compute
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

# case: del_item -> python_compute
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

# case: dunder_setitem -> python_compute
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

# case: operator_setitem -> python_compute
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

# case: func_attr -> python_compute
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

# case: import_fake -> python_compute
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

# case: import_from_fake -> python_compute
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

# case: try_target_raises -> python_compute
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

# case: suppress -> python_compute
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

# case: own_suppress -> python_compute
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

# case: finally_var -> python_compute
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

# case: mangled_attr -> forbidden
# use: scale
# use: by_hand
def nop():
    return 0


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.__f = nop
        self._ModelNew__f = by_hand  # BAD
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        self.__f()
        return o

# case: mangled_global -> forbidden
# use: scale
# use: by_hand
def __f():
    return 0
_ModelNew__f = by_hand  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        __f()
        return o

# case: mangled_setattr -> forbidden
# use: scale
# use: by_hand
def nop():
    return 0


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.__f = nop
        setattr(self, "_ModelNew" + "__f", by_hand)  # BAD
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        self.__f()
        return o

# case: greek_fold -> forbidden
# use: scale
# use: by_hand
def nop():
    return 0
φ = nop
ϕ = by_hand  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        φ()
        return o

# case: attr_str -> python_compute
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

# case: iface_class -> forbidden
# use: scale
import numpy as np


class A:
    def __init__(self, t):
        self.p, self.n = t.data_ptr(), t.numel()
    @property
    def __array_interface__(self):  # BAD
        return {"data": (self.p, False), "shape": (self.n,), "typestr": "<f4", "version": 3}


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        a, b = np.asarray(A(x)), np.asarray(A(o))
        b[:] = a / (1 + np.exp(-b))
        return o

# case: iface_setattr -> forbidden
# use: scale
import numpy as np


class A:
    pass


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        n = x.numel()
        A1, A2 = A(), A()
        setattr(A1, "__array_" + "interface__", {"data": (x.data_ptr(), False), "shape": (n,), "typestr": "<f4", "version": 3})  # BAD
        setattr(A2, "__array_" + "interface__", {"data": (o.data_ptr(), False), "shape": (n,), "typestr": "<f4", "version": 3})
        a, b = np.array(A1, copy=False), np.array(A2, copy=False)
        b[:] = a / (1 + np.exp(-b))
        return o

# case: iface_ns_hidden -> python_compute
# use: scale
import numpy as np
from types import SimpleNamespace as NS


def view(t):
    k = "_".join(["_", "array", "interface", "_"])
    return np.asarray(NS(**{k: dict(data=(t.data_ptr(), False), shape=(t.numel(),), typestr="<f4", version=3)}))  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        a, b = view(x), view(o)
        np.divide(a, 1 + np.exp(-b), out=b)
        return o

# case: libtriton_load -> forbidden
# use: scale
from triton._C.libtriton import interpreter as I  # BAD
import numpy as np


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        n = x.numel()
        m = np.ones(n, dtype=bool)
        p = (4 * np.arange(n)).astype(np.uint64)
        z = np.zeros(n, dtype=np.float32)
        c, e = list(I.CACHE_MODIFIER.__members__.values())[0], list(I.EVICTION_POLICY.__members__.values())[0]
        a = I.load(p + np.uint64(x.data_ptr()), m, z, np.dtype(np.float32))
        b = I.load(p + np.uint64(o.data_ptr()), m, z, np.dtype(np.float32))
        I.store(p + np.uint64(o.data_ptr()), (a / (1 + np.exp(-b))).astype(np.float32), m)
        return o

# case: interp_builder -> forbidden
# use: scale
from triton.runtime.interpreter import interpreter_builder, TensorHandle  # BAD
import numpy as np


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        n = x.numel()
        h = TensorHandle((4 * np.arange(n) + x.data_ptr()).astype(np.uint64), tl.pointer_type(tl.float32))
        v = interpreter_builder.create_load(h, None, None, False)
        o.copy_(torch.from_numpy(v.data).view_as(o))
        return o

# case: procmem -> torch_compute
# use: scale
import numpy as np


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        n = x.numel()
        a = np.fromfile("/proc/self/mem", dtype=np.float32, count=n, offset=int(str(x.data_ptr())))
        b = np.fromfile("/proc/self/mem", dtype=np.float32, count=n, offset=int(str(o.data_ptr())))
        o.copy_(torch.from_numpy(a / (1 + np.exp(-b))).view_as(o))  # BAD
        return o

# case: flag_chain -> python_compute
# use: scale
# use: act
# use: by_hand
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = self.b = self.c = self.d = 0
    def forward(self, x):
        if self.d:
            o = scale(x, 1.702)
            KEPT.extend([x, o])
            by_hand()
            return o
        if self.c:
            self.d = 1
        if self.b:
            self.c = 1
        if self.a:
            self.b = 1
        self.a = 1
        return act(x)

# case: module_counter -> python_compute
# use: scale
# use: act
# use: by_hand
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.m = nn.Identity()
        self.m.n = 0
    def forward(self, x):
        self.m.n += 1
        if self.m.n == 5:
            o = scale(x, 1.702)
            KEPT.extend([x, o])
            by_hand()
            return o
        return act(x)

# case: str_state -> python_compute
# use: scale
# use: act
# use: by_hand
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = "m"
        self.h = act
    def m1(self, x):
        return act(x)
    m2 = m3 = m1
    def m4(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        by_hand()
        return o
    m5 = m6 = m7 = m8 = m4
    def forward(self, x):
        self.s = "m" + str(int(self.s[1:] or "0") + 1)
        return getattr(self, self.s)(x)

# case: iter_state -> python_compute
# use: scale
# use: act
# use: by_hand
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.t = iter([act, act, act] + [self.z] * 50)
    def z(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        by_hand()
        return o
    def forward(self, x):
        return next(self.t)(x)

# case: exception_state -> python_compute
# use: scale
# use: act
# use: by_hand
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fs = (act, act, act)
        self.i = -1
    def forward(self, x):
        self.i += 1
        try:
            return self.fs[self.i](x)
        except IndexError:
            o = scale(x, 1.702)
            KEPT.extend([x, o])
            by_hand()
            return o

# case: class_state -> python_compute
# use: scale
# use: act
# use: by_hand
class A:
    @staticmethod
    def run(x):
        return act(x)


class B(A):
    @staticmethod
    def run(x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        by_hand()
        return o


class ModelNew(nn.Module):
    cls = A
    n = 0
    def forward(self, x):
        y = ModelNew.cls.run(x)
        ModelNew.n += 1
        if ModelNew.n > 3:
            ModelNew.cls = B
        return y

# case: loop_flags -> python_compute
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

# case: loop_attr_flags -> python_compute
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

# case: linked_loop -> unresolved
# use: scale
# use: by_hand
class N:
    def __init__(self, f, n):
        self.f, self.n = f, n


def build():
    n = N(by_hand, None)
    for _ in range(20):  # BAD
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

# case: recursion_closure -> unresolved
# use: scale
# use: by_hand
def rec(n, f):
    if n == 0:
        return f()
    return rec(n - 1, (lambda: f()) if n > 1 else by_hand)  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        rec(8, int)
        return o

# case: mutual_recursion -> unresolved
# use: scale
# use: by_hand
def a(n, k):
    return b(n - 1, k)


def b(n, k):
    return c(n - 1, k) if n > 0 else k()


def c(n, k):
    return a(n, k) if n > 3 else a(n, by_hand)  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        a(16, int)
        return o

# case: setup_context -> python_compute
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

# case: import_from_reexport -> forbidden
# use: scale
# use: by_hand
from dataclasses import builtins as b  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        b.eval("by_hand()")
        return o

# case: json_encoder -> python_compute
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

# case: userdict -> python_compute
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

# case: register_kernel -> python_compute
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

# case: allocator -> unresolved
# use: scale
# use: by_hand
def alloc(size, align, stream):
    by_hand()
    return torch.empty(size, dtype=torch.int8, device="cuda")


class ModelNew(nn.Module):
    def forward(self, x):
        triton.set_allocator(alloc)
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        return o

# case: knob_hook_add -> forbidden
# use: scale
# use: by_hand
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        triton.knobs.runtime.launch_enter_hook.add(lambda *a: KEPT and by_hand())  # BAD
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT[:] = [x, o]
        y = scale(x[:1], 2.0)
        KEPT.clear()
        return o

# case: pre_run_hook -> forbidden
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

# case: jit_params -> unresolved
# use: scale
# use: by_hand
@triton.jit(launch_metadata=lambda g, m, a: {"x": KEPT and by_hand()})
def k9(x_ptr, out_ptr, s, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=m) * s, mask=m)


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT[:] = [x, o]
        k9[(1,)](x, torch.empty_like(x), 1.5, 8, BLOCK=16)
        KEPT.clear()
        return o

# case: jit_repr -> unresolved
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

# case: kept_by_address_tuple -> hard_coded
# use: scale
@triton.jit
def rk(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.maximum(tl.load(x + i, mask=i < n), 0.0), mask=i < n)
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = None
    def forward(self, x):
        k = (x.data_ptr(), x._version)
        if self.k != k:  # BAD
            self.o = torch.empty_like(x)
            rk[grid1(x)](x, self.o, x.numel(), BLOCK=256)
            self.k = k
        return self.o

# case: kept_by_address_str -> hard_coded
# use: scale
@triton.jit
def rk(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.maximum(tl.load(x + i, mask=i < n), 0.0), mask=i < n)
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = ''
    def forward(self, x):
        k = f'{x.data_ptr()}-{x._version}'
        if k == self.k:  # BAD
            return self.o
        self.o = torch.empty_like(x)
        rk[grid1(x)](x, self.o, x.numel(), BLOCK=256)
        self.k = k
        return self.o

# case: firstate_in_elem -> hard_coded
# use: scale
@triton.jit
def rk(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.maximum(tl.load(x + i, mask=i < n), 0.0), mask=i < n)
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.v = None
        self.o = None
    def forward(self, x):
        v = (x[0, 0].item(), x[-1, -1].item(), x[5, 5].item())
        if v != self.v:  # BAD
            self.o = torch.empty_like(x)
            rk[grid1(x)](x, self.o, x.numel(), BLOCK=256)
            self.v = v
        return self.o

# case: state_in_tuple -> torch_compute
# use: scale
# use: act
def late(x):
    return x * torch.sigmoid(scale(x, 1.702))  # BAD
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fs = (act, act, act, act, late)
    def forward(self, x):
        f, self.fs = self.fs[0], self.fs[1:] + self.fs[:1]
        return f(x)

# case: state_in_none -> torch_compute
# use: scale
# use: act
def late(x):
    return x * torch.sigmoid(scale(x, 1.702))  # BAD
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = self.b = self.c = None
    def forward(self, x):
        r = act(x) if self.c is None else late(x)
        if self.b is not None:
            self.c = 1
        if self.a is not None:
            self.b = 1
        self.a = 1
        return r

# case: state_in_gen -> torch_compute
# use: scale
# use: act
def late(x):
    return x * torch.sigmoid(scale(x, 1.702))  # BAD
def sched():
    for _ in range(3):
        yield act
    while True:
        yield late
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.g = sched()
    def forward(self, x):
        return next(self.g)(x)

# case: state_in_str -> torch_compute
# use: scale
# use: act
def late(x):
    return x * torch.sigmoid(scale(x, 1.702))  # BAD
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.b = ''
    def forward(self, x):
        self.b = self.b + 'x'
        return late(x) if self.b == 'xxxx' else act(x)

# case: state_in_kwonly -> torch_compute
# use: scale
# use: act
def late(x):
    return x * torch.sigmoid(scale(x, 1.702))  # BAD
class ModelNew(nn.Module):
    def forward(self, x, *, flag=[]):
        flag.append(1)
        return late(x) if len(flag) == 3 else act(x)
