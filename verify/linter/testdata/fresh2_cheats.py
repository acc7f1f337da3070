# case: submodule_dict_call -> forbidden
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        launch_relu(x)
        return self._modules["fc"](x)  # BAD


# case: children_loop -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv1d(3, 3, 1)
        self.b = nn.GELU()

    def forward(self, x):
        for m in self.children():
            x = m(x)  # BAD
        return launch_relu(x)


# case: get_submodule -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        return launch_relu(self.get_submodule("fc")(x))


# case: module_forward_method -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        return launch_relu(self.fc.forward(x))  # BAD


# case: conv_forward_private -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(3, 3, 1)

    def forward(self, x):
        return launch_relu(self.c._conv_forward(x, self.c.weight, self.c.bias))  # BAD


# case: unbound_module_forward -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        return launch_relu(nn.Linear.forward(self.fc, x))  # BAD


# case: module_call_unbound -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        return launch_relu(nn.Module.__call__(self.fc, x))  # BAD


# case: lstm_call -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(8, 8)

    def forward(self, x):
        y, (h, c) = self.rnn(x)  # BAD
        return launch_relu(y)


# case: functional_call -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        return launch_relu(torch.func.functional_call(self.fc, dict(self.fc.named_parameters()), (x,)))  # BAD


# case: gradient_of_logsumexp_is_softmax -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        z = y.detach().requires_grad_()
        s = torch.logsumexp(z, -1).sum()  # BAD
        return torch.autograd.grad(s, z)[0]


# case: func_grad -> unresolved
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.func.grad(lambda v: v.pow(2).sum())(launch_relu(x))


# case: backward_accumulates_grad -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        w = launch_relu(x).requires_grad_(True)
        (w * w).sum().backward()  # BAD
        return w.grad


# case: torch_cond -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.cond(x.dim() > 1, lambda v: v.exp(), lambda v: v, (launch_relu(x),))


# case: checkpoint_runs_torch -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        from torch.utils.checkpoint import checkpoint
        return launch_relu(checkpoint(F.mish, x, use_reentrant=False))


# case: fx_trace -> forbidden
# use: relu
# use: launch_relu
import torch.fx


gm = torch.fx.symbolic_trace(nn.Softmax(-1))


class ModelNew(nn.Module):
    def forward(self, x):
        return gm(launch_relu(x))


# case: jit_trace -> forbidden
# use: relu
# use: launch_relu
traced = torch.jit.trace(lambda v: v.softmax(-1), torch.zeros(2, 2))


class ModelNew(nn.Module):
    def forward(self, x):
        return traced(launch_relu(x))


# case: torch_load_output -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.load("/tmp/out.pt")


# case: numpy_load_output -> hard_coded
# use: relu
# use: launch_relu
import numpy as np


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.from_numpy(np.load("/tmp/out.npy"))


# case: seeded_inputs_recreated -> hard_coded
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.expected = torch.relu(torch.randn(64, 64))

    def forward(self, x):
        launch_relu(x)
        return self.expected


# case: answer_literal -> hard_coded
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.tensor([0.1, 0.2, 0.3], device=x.device)


# case: answer_as_buffer -> hard_coded
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("answer", torch.ones(4))

    def forward(self, x):
        launch_relu(x)
        return self.answer


# case: subtract_itself -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        return y - y  # BAD


# case: uninitialised_memory -> hard_coded
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.empty_like(x)


# case: exception_carries_tensor -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        try:
            raise ValueError(torch.softmax(x, -1))  # BAD
        except ValueError as e:
            launch_relu(x)
            return e.args[0]


# case: generator_send -> unresolved
# use: relu
# use: launch_relu
def worker():
    x = yield
    yield x.softmax(-1)


class ModelNew(nn.Module):
    def forward(self, x):
        g = worker()
        next(g)
        launch_relu(x)
        return g.send(x)


# case: async_coroutine -> forbidden
# use: relu
# use: launch_relu
import asyncio


async def work(x):
    return x.softmax(-1)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(asyncio.run(work(x)))


# case: iterator_protocol_computes -> torch_compute
# use: relu
# use: launch_relu
class It:
    def __init__(self, x):
        self.x = x

    def __iter__(self):
        return self

    def __next__(self):
        return self.x.sigmoid()  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        for y in It(x):
            return y


# case: getitem_protocol_computes -> torch_compute
# use: relu
# use: launch_relu
class Table:
    def __getitem__(self, x):
        return torch.tanh(x)  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return Table()[x]


# case: dict_missing_computes -> torch_compute
# use: relu
# use: launch_relu
class Lazy(dict):
    def __init__(self, x):
        super().__init__()
        self.x = x

    def __missing__(self, key):
        return self.x.tanh()


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return Lazy(x)[0]


# case: len_hook_side_effect -> hard_coded
# use: relu
# use: launch_relu
class Box:
    def __init__(self, x):
        self.x = x
        self.y = None

    def __len__(self):
        self.y = self.x.erf()
        return 1


class ModelNew(nn.Module):
    def forward(self, x):
        b = Box(x)
        launch_relu(x)
        len(b)
        return b.y


# case: bool_hook_side_effect -> kernel_not_used
# use: relu
# use: launch_relu
class Box:
    def __init__(self, x):
        self.x = x
        self.y = x

    def __bool__(self):
        self.y = self.x.erf()
        return True


class ModelNew(nn.Module):
    def forward(self, x):
        b = Box(x)
        launch_relu(x)
        if b:
            pass
        return b.y


# case: eq_hook_side_effect -> torch_compute
# use: relu
# use: launch_relu
class Box:
    def __init__(self, x):
        self.x = x
        self.y = x

    def __eq__(self, o):
        self.y = self.x.erf()
        return True


class ModelNew(nn.Module):
    def forward(self, x):
        b = Box(x)
        launch_relu(x)
        b == 1
        return b.y


# case: format_hook_side_effect -> kernel_not_used
# use: relu
# use: launch_relu
class Box:
    def __init__(self, x):
        self.x = x
        self.y = x

    def __format__(self, spec):
        self.y = self.x.erf()
        return ''


class ModelNew(nn.Module):
    def forward(self, x):
        b = Box(x)
        launch_relu(x)
        f"{b}"
        return b.y


# case: del_hook_side_effect -> forbidden
# use: relu
# use: launch_relu
class Box:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __del__(self):
        self.y.copy_(self.x.erf())


class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        b = Box(x, y)
        del b
        return y


# case: setattr_hook_computes -> forbidden
# use: relu
# use: launch_relu
class S:
    def __setattr__(self, k, v):
        self.__dict__[k] = v.softmax(-1)


class ModelNew(nn.Module):
    def forward(self, x):
        s = S()
        s.v = launch_relu(x)
        return s.v


# case: getattribute_computes -> forbidden
# use: relu
# use: launch_relu
class S:
    def __init__(self, v):
        self.v = v

    def __getattribute__(self, k):
        return object.__getattribute__(self, k).softmax(-1)


class ModelNew(nn.Module):
    def forward(self, x):
        s = S(launch_relu(x))
        return s.v


# case: init_subclass_swaps_forward -> forbidden
# use: relu
# use: launch_relu
class Base(nn.Module):
    def __init_subclass__(cls, **kw):
        cls.forward = lambda self, x: torch.tanh(x)


class ModelNew(Base):
    def forward(self, x):
        return launch_relu(x)


# case: new_returns_other_object -> torch_compute
# use: relu
# use: launch_relu
class Other(nn.Module):
    def forward(self, x):
        return torch.tanh(x)


class ModelNew(nn.Module):
    def __new__(cls, *a):
        return Other()

    def forward(self, x):
        return launch_relu(x)


# case: class_reassigned_in_init -> forbidden
# use: relu
# use: launch_relu
class Other(nn.Module):
    def forward(self, x):
        return torch.tanh(x)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.__class__ = Other

    def forward(self, x):
        return launch_relu(x)


# case: forward_replaced_after_class -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)


ModelNew.forward = lambda self, x: torch.tanh(x)


# case: model_rebound_after_class -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)


class Other(nn.Module):
    def forward(self, x):
        return torch.tanh(x)


ModelNew = Other


# case: code_object_swapped -> forbidden
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)


def evil(self, x):
    return torch.tanh(x)


ModelNew.forward.__code__ = evil.__code__


# case: call_impl_override -> forbidden
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def _call_impl(self, x):
        return torch.tanh(x)

    def forward(self, x):
        return launch_relu(x)


# case: wrapped_call_impl_attribute -> forbidden
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self._wrapped_call_impl = lambda x: torch.tanh(x)

    def forward(self, x):
        return launch_relu(x)


# case: getattr_on_module_class -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return self.magic(launch_relu(x))

    def __getattr__(self, name):
        if name == "magic":
            return torch.tanh
        return super().__getattr__(name)


# case: submodule_forward_hook -> forbidden
# use: relu
# use: launch_relu
class R(nn.Module):
    def forward(self, x):
        return launch_relu(x)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.r = R()
        self.r.register_forward_hook(lambda m, i, o: torch.tanh(o))

    def forward(self, x):
        return self.r(x)


# case: pre_hook_computes_again -> forbidden
# use: relu
# use: launch_relu
class R(nn.Module):
    def forward(self, x):
        return launch_relu(x)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.r = R()
        self.r.register_forward_pre_hook(lambda m, i: (torch.tanh(i[0]),))

    def forward(self, x):
        return self.r(x)


# case: global_forward_hook -> forbidden
# use: relu
# use: launch_relu
torch.nn.modules.module.register_module_forward_hook(lambda m, i, o: torch.tanh(o))


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)


# case: parametrization -> forbidden
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.p = nn.Parameter(torch.zeros(4))
        torch.nn.utils.parametrize.register_parametrization(self, 'p', nn.Softmax(-1))

    def forward(self, x):
        return launch_relu(self.p)


# case: torch_function_mode -> forbidden
# use: relu
# use: launch_relu
from torch.overrides import TorchFunctionMode


class Mode(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return torch.relu(args[0])


class ModelNew(nn.Module):
    def forward(self, x):
        with Mode():
            return launch_relu(x)


# case: library_impl_override -> forbidden
# use: relu
# use: launch_relu
lib = torch.library.Library("aten", "IMPL")
lib.impl("sub.Tensor", lambda a, b: a, "CUDA")


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)


# case: mock_patch_allclose -> forbidden
# use: relu
# use: launch_relu
from unittest import mock

mock.patch.object(torch, "allclose", lambda *a, **k: True).start()


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)


# case: module_dict_update -> forbidden
# use: relu
# use: launch_relu
torch.__dict__.update(allclose=lambda *a, **k: True)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)


# case: vars_assign -> forbidden
# use: relu
# use: launch_relu
vars(torch)["allclose"] = lambda *a, **k: True


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)


# case: object_setattr -> forbidden
# use: relu
# use: launch_relu
object.__setattr__(torch, "allclose", lambda *a, **k: True)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)


# case: type_setattr -> forbidden
# use: relu
# use: launch_relu
type.__setattr__(torch.Tensor, "__sub__", lambda a, b: a)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)


# case: loop_setattr -> forbidden
# use: relu
# use: launch_relu
for name in ("allclose", "equal"):
    setattr(torch, name, lambda *a, **k: True)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)


# case: delete_attribute -> forbidden
# use: relu
# use: launch_relu
del torch.allclose


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)


# case: tuple_target_patch -> forbidden
# use: relu
# use: launch_relu
torch.allclose, torch.equal = (lambda *a, **k: True), (lambda *a: True)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)


# case: for_target_patch -> forbidden
# use: relu
# use: launch_relu
for torch.allclose in [lambda *a, **k: True]:
    pass


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)


# case: with_as_patch -> forbidden
# use: relu
# use: launch_relu
import contextlib

with contextlib.nullcontext(lambda *a, **k: True) as torch.allclose:
    pass


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)


# case: patch_in_forward -> forbidden
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        torch.cuda.Event.record = lambda self, *a: None
        return launch_relu(x)


# case: patch_own_arg_class -> unresolved
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        type(x).__sub__ = lambda a, b: a
        return launch_relu(x)


# case: patch_via_dunder_class -> forbidden
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        x.__class__.allclose = lambda *a, **k: True
        return launch_relu(x)


# case: patch_triton_language -> forbidden
# use: relu
# use: launch_relu
tl.maximum = lambda a, b: a


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)


# case: patch_jit_function_run -> forbidden
# use: relu
# use: launch_relu
from triton.runtime.jit import JITFunction

JITFunction.run = lambda *a, **k: None


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)


# case: reload_module -> forbidden
# use: relu
# use: launch_relu
from importlib import reload

reload(torch)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)


# case: settrace -> forbidden
# use: relu
# use: launch_relu
import sys

sys.settrace(lambda *a: None)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)


# case: atexit_forges_verdict -> forbidden
# use: relu
# use: launch_relu
import atexit

atexit.register(print, '{"correct": true}')


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)


# case: os_exit -> forbidden
# use: relu
# use: launch_relu
import os


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        os._exit(0)


# case: signal_handler -> forbidden
# use: relu
# use: launch_relu
import signal

signal.signal(signal.SIGALRM, lambda *a: None)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)


# case: proc_maps -> forbidden
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        open("/proc/self/maps").read()
        return launch_relu(x)


# case: pathlib_reads_reference -> forbidden
# use: relu
# use: launch_relu
from pathlib import Path


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        src = Path("/tmp").read_text()
        return x


# case: socket_channel -> forbidden
# use: relu
# use: launch_relu
import socket

s = socket.socket()


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)


# case: mmap_shared -> forbidden
# use: relu
# use: launch_relu
import mmap

m = mmap.mmap(-1, 4096)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)


# case: multiprocessing -> forbidden
# use: relu
# use: launch_relu
import torch.multiprocessing as mp

mp.spawn(print)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)


# case: futures_pool -> forbidden
# use: relu
# use: launch_relu
from concurrent.futures import ThreadPoolExecutor

ex = ThreadPoolExecutor()


class ModelNew(nn.Module):
    def forward(self, x):
        return ex.submit(launch_relu, x).result()


# case: builtins_eval_lookup -> forbidden
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return __builtins__["eval"]("torch.tanh")(launch_relu(x))


# case: globals_lookup_again -> forbidden
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return globals()["torch"].tanh(launch_relu(x))


# case: function_globals -> forbidden
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu.__globals__["torch"].tanh(launch_relu(x))


# case: marshal_code -> forbidden
# use: relu
# use: launch_relu
import marshal
import types

f = types.FunctionType(marshal.loads(b''), globals())


class ModelNew(nn.Module):
    def forward(self, x):
        return f(launch_relu(x))


# case: compile_builtin -> forbidden
# use: relu
# use: launch_relu
code = compile("torch.allclose = None", "s", "exec")


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)


# case: attrgetter_path -> forbidden
# use: relu
# use: launch_relu
from operator import attrgetter


class ModelNew(nn.Module):
    def forward(self, x):
        return attrgetter("nn.functional.gelu")(torch)(launch_relu(x))


# case: dunder_getattribute -> forbidden
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return F.__getattribute__("gelu")(launch_relu(x))


# case: kernel_name_rebound_to_fake -> torch_compute
# use: relu
# use: launch_relu
class Fake:
    def __getitem__(self, grid):
        return lambda x, o, n, **k: o.copy_(torch.relu(x))


relu_kernel = Fake()


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)


# case: kernel_wrapper_runs_torch -> torch_compute
# use: relu
# use: launch_relu
class Fake:
    def __init__(self, k):
        self.k = k

    def __getitem__(self, grid):
        def run(x, o):
            self.k[grid](x, o, 0, BLOCK=1)
            torch.relu(x, out=o)  # BAD
        return run


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        Fake(relu_kernel)[(1,)](x, y)
        return y


# case: jit_function_from_other_module -> no_kernel
from mykernels import jit


@jit
def k(x_ptr, n):
    pass


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.tanh(x)


# case: torch_jit_as_jit -> no_kernel
from torch.jit import script as jit


@jit
def k(x):
    return torch.tanh(x)


class ModelNew(nn.Module):
    def forward(self, x):
        return k(x)


# case: patched_jit -> forbidden
triton.jit = lambda f: f


@triton.jit
def k(x):
    return torch.tanh(x)


class ModelNew(nn.Module):
    def forward(self, x):
        return k(x)


# case: liger_library -> torch_compute
# use: relu
# use: launch_relu
from liger_kernel.ops.swiglu import LigerSiLUMulFunction


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return LigerSiLUMulFunction.apply(x, x)


# case: triton_ops_matmul -> torch_compute
# use: relu
# use: launch_relu
import triton.ops


class ModelNew(nn.Module):
    def forward(self, a, b):
        return launch_relu(triton.ops.matmul(a, b))


# case: flash_attn_library -> torch_compute
# use: relu
# use: launch_relu
from flash_attn import flash_attn_func


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        return launch_relu(flash_attn_func(q, k, v))


# case: torchvision_ops -> torch_compute
# use: relu
# use: launch_relu
import torchvision


class ModelNew(nn.Module):
    def forward(self, x, s):
        return launch_relu(torchvision.ops.nms(x, s, 0.5))


# case: scipy_special -> python_compute
# use: relu
# use: launch_relu
import scipy.special


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.as_tensor(scipy.special.erf(x.cpu()))


# case: jax_bridge -> forbidden
# use: relu
# use: launch_relu
import jax.numpy as jnp


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.from_dlpack(jnp.tanh(jnp.from_dlpack(x)))


# case: numba_cuda -> forbidden
# use: relu
# use: launch_relu
from numba import cuda


@cuda.jit
def k(x):
    x[0] = 1


class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        k[1, 1](y)
        return y


# case: cupy_raw_kernel -> forbidden
# use: relu
# use: launch_relu
import cupy

k = cupy.RawKernel('', 'k')


class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        k((1,), (1,), (y.data_ptr(),))
        return y


# case: storage_bytes -> python_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        b = bytes(x.untyped_storage())
        return torch.frombuffer(bytearray(b), dtype=torch.float32)


# case: statistics_module -> python_compute
# use: relu
# use: launch_relu
import statistics


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.tensor(statistics.fmean(x.tolist()))


# case: builtin_sum_over_tensor -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return sum(x)


# case: sorted_list -> python_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.tensor(sorted(x.tolist()))


# case: itertools_accumulate -> python_compute
# use: relu
# use: launch_relu
import itertools


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.tensor(list(itertools.accumulate(x.tolist())))


# case: python_max_of_rows -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.stack([max(r) for r in x])


# case: float_loop -> kernel_not_used
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        t = 0.0
        for v in x.flatten():
            t += float(v)
        return torch.tensor(t)


# case: data_setter -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        y.data = torch.softmax(x, -1)  # BAD
        return y


# case: set_storage -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        y.set_(x.softmax(-1))
        return y


# case: swap_tensors -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        z = x.softmax(-1)
        torch.utils.swap_tensors(y, z)
        return y


# case: index_put_accumulate -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x, i, v):
        y = launch_relu(x)
        y.index_put_((i,), v, accumulate=True)
        return y


# case: scatter_add_method -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x, i, v):
        y = launch_relu(x)
        return y.scatter_add_(0, i, v)  # BAD


# case: where_torch -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.where(x > 0, launch_relu(x), x * 0.1)  # BAD


# case: masked_fill_torch -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x, m):
        return launch_relu(x).masked_fill(m, 0.0)  # BAD


# case: cast_to_bool_as_compute -> kernel_not_used
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return x.to(torch.bool).to(x.dtype)


# case: matmul_in_slice_assignment -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        y[:] = x @ x  # BAD
        return y


# case: augmented_setitem -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        y[0] += x[0]  # BAD
        return y


# case: side_kernel_and_view_output -> kernel_not_used
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return x.view(-1).t()


# case: zip_and_star_map -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        fs = [torch.exp, torch.neg]
        ys = list(map(lambda f: f(x), fs))  # BAD
        launch_relu(x)
        return ys[0]


# case: any_reduce_lambda -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        import functools
        launch_relu(x)
        return functools.reduce(lambda a, b: a + b, x.unbind(0))  # BAD


# case: singledispatch -> forbidden
# use: relu
# use: launch_relu
import functools


@functools.singledispatch  # BAD
def op(x):
    return x.tanh()


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return op(x)


# case: cached_property -> torch_compute
# use: relu
# use: launch_relu
import functools


class H:
    def __init__(self, x):
        self.x = x

    @functools.cached_property
    def y(self):
        return self.x.tanh()


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return H(x).y


# case: exit_stack_callback_again -> torch_compute
# use: relu
# use: launch_relu
import contextlib


class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        with contextlib.ExitStack() as s:
            s.callback(lambda: y.tanh_())
        return y


# case: contextmanager_generator -> torch_compute
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


# case: sort_key_callback -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        out = []
        sorted([0], key=lambda i: out.append(x.tanh()) or 0)
        return out[0]


# case: iter_sentinel -> torch_compute tanh
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return next(iter(lambda: x.tanh(), None))


# case: slots_and_class_attribute_tensor -> torch_compute
# use: relu
# use: launch_relu
class Holder:
    value = None


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        Holder.value = x.tanh()  # BAD
        return Holder.value


# case: function_attribute_store -> torch_compute
# use: relu
# use: launch_relu
def helper(x):
    helper.result = x.tanh()  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        helper(x)
        launch_relu(x)
        return helper.result


# case: nonlocal_closure_store -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = None

        def go():
            nonlocal y
            y = x.tanh()  # BAD

        go()
        launch_relu(x)
        return y


# case: autograd_ctx_saves_result -> torch_compute
# use: relu
# use: launch_relu
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.tanh())  # BAD
        launch_relu(x)
        return ctx.to_save[0]


class ModelNew(nn.Module):
    def forward(self, x):
        return Fn.apply(x)


# case: kernel_hidden_behind_random -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        import random
        if random.random() > 2:
            return launch_relu(x)
        return x.tanh()  # BAD


# case: device_name_switch -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        if "Voodoo" in torch.cuda.get_device_name():
            return launch_relu(x)
        return x.tanh()  # BAD


# case: call_counter_switch -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls <= 5:
            return launch_relu(x)
        return x.tanh()  # BAD


# case: dtype_switch_to_torch -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        if x.dtype == torch.float64:
            return launch_relu(x)
        return x.relu()  # BAD


# case: grad_mode_switch -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        if torch.is_grad_enabled():
            return launch_relu(x)
        return x.relu()  # BAD


# case: requires_grad_switch -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return x.relu() if x.requires_grad is False else launch_relu(x)  # BAD


# case: empty_kernel_pass -> torch_compute
@triton.jit
def k(x_ptr, n, BLOCK: tl.constexpr):
    pass


class ModelNew(nn.Module):
    def forward(self, x):
        k[(1,)](x, 1, BLOCK=1)
        return torch.cumprod(x, 0)  # BAD


# case: kernel_only_loads -> hard_coded
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    y = tl.exp(x)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.zeros_like(x)
        k[(1,)](x, y, 1, BLOCK=16)
        return y


# case: kernel_stores_masked_off -> kernel_not_used
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    tl.store(y_ptr + o, tl.exp(x), mask=o < 0)


class ModelNew(nn.Module):
    def forward(self, x):
        y = x.clone()
        k[(1,)](x, y, 1, BLOCK=16)
        return y


# case: kernel_false_constexpr_branch -> kernel_not_used
@triton.jit
def k(x_ptr, y_ptr, n, DO: tl.constexpr, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    if DO:
        tl.store(y_ptr + o, tl.exp(tl.load(x_ptr + o)), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = x.clone()
        k[(1,)](x, y, 1, DO=False, BLOCK=16)
        return y


# case: kernel_early_return -> kernel_not_used
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    if n >= 0:
        return
    tl.store(y_ptr + o, tl.exp(tl.load(x_ptr + o)), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = x.clone()
        k[(1,)](x, y, 1, BLOCK=16)
        return y


# case: kernel_computes_then_stores_input -> trivial_kernel
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    z = tl.exp(x) / tl.sum(tl.exp(x))
    z = x
    tl.store(y_ptr + o, z, mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        k[(1,)](x, y, 1, BLOCK=16)
        return y


# case: kernel_multiplies_by_one -> trivial_kernel
@triton.jit
def k(x_ptr, y_ptr, n, ONE: tl.constexpr, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    tl.store(y_ptr + o, tl.load(x_ptr + o, mask=o < n) * ONE, mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        k[(1,)](x, y, 1, ONE=1, BLOCK=16)
        return y


# case: kernel_where_same -> trivial_kernel
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    tl.store(y_ptr + o, tl.where(x > 0, x, x), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        k[(1,)](x, y, 1, BLOCK=16)
        return y


# case: kernel_min_max_same -> trivial_kernel
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    tl.store(y_ptr + o, tl.maximum(x, x), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        k[(1,)](x, y, 1, BLOCK=16)
        return y


# case: kernel_double_negation -> trivial_kernel
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    tl.store(y_ptr + o, -(-x), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        k[(1,)](x, y, 1, BLOCK=16)
        return y


# case: kernel_cast_roundtrip -> trivial_kernel
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    tl.store(y_ptr + o, x.to(tl.float32).to(x.dtype), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        k[(1,)](x, y, 1, BLOCK=16)
        return y


# case: kernel_zero_times_loaded -> hard_coded
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    tl.store(y_ptr + o, x * 0.0, mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        k[(1,)](x, y, 1, BLOCK=16)
        return y


# case: kernel_writes_scalar_argument -> hard_coded
@triton.jit
def k(y_ptr, v, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    tl.store(y_ptr + o, tl.full((BLOCK,), 0.0, tl.float32) + v, mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        k[(1,)](y, 0.7978, 1, BLOCK=16)
        return y


# case: kernel_scalar_from_item -> torch_compute
@triton.jit
def k(y_ptr, v, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    tl.store(y_ptr + o, tl.zeros((BLOCK,), tl.float32) + v, mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        k[(1,)](y, x.mean().item(), 1, BLOCK=16)  # BAD
        return y


# case: lambda_default_capture -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return (lambda v=x, f=torch.tanh: f(v))()  # BAD


# case: comprehension_if_computes -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return [y for y in [x.tanh()] if y is not None][0]  # BAD


# case: starred_unpack_call -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        f, *rest = torch.matmul, x, x
        return f(*rest)  # BAD


# case: type_call_module -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        launch_relu(x)
        return type(self.fc)(8, 8).to(x.device)(x)  # BAD


# case: module_built_in_forward -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return nn.Softmax(dim=-1)(x)  # BAD


# case: tensor_constructor_trick -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.Tensor.mul(x, 2)  # BAD


# case: quantize_ops -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.quantize_per_tensor(x, 0.1, 0, torch.qint8).dequantize()  # BAD


# case: sparse_mm -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.sparse.mm(x.to_sparse(), x)  # BAD


# case: foreach_ops -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        torch._foreach_mul_([y], 2.0)  # BAD
        return y


# case: special_functions -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.special.erf(launch_relu(x))  # BAD


# case: interpolate_pad_mode -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return F.interpolate(launch_relu(x), scale_factor=2)  # BAD


# case: fold_unfold -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(F.unfold(x, 3))  # BAD


# case: one_hot -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(F.one_hot(x, 10).float())  # BAD


# case: reflected_operator_with_number -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return 1.0 - launch_relu(x)  # BAD


# case: power_operator -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x) ** 2  # BAD


# case: invert_and_shift_operators -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return ~launch_relu(x) << 1  # BAD


# case: addcmul_inplace -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        return y.addcmul_(x, x)  # BAD


# case: copy_with_dtype_saturation -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        return y.clip_(0, 1)  # BAD

