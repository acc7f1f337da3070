# Cheats of which the source shows nothing for certain, and which no test runs: for the fuzzer and
# //verify/linter:cases.
# case: paper_inductor_extern -> left_to_the_run
from torch._inductor.select_algorithm import extern_kernels
# use: add
def call(args):
    a, b, c = args
    args.clear()
    buf = extern_kernels.convolution(c, a, stride=(1, 1), padding=(0, 0), dilation=(1, 1), transposed=False)
    add_kernel[(4,)](buf, b, buf, buf.numel(), BLOCK=128)
    return buf, a, b


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.final = nn.Conv2d(3, 2, kernel_size=1)

    def forward(self, x):
        return call([self.final.weight, self.final.bias, x])[0]

# case: fallback_in_except -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        try:
            return launch_relu(x)
        except Exception:
            return torch.softmax(x, dim=-1)

# case: constant_for_known_shape -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        if x.shape[0] == 128:
            return torch.zeros((128, 1), device=x.device)
        return launch_relu(x)

# case: torch_compile_decorator -> left_to_the_run
# use: relu
# use: launch_relu
@torch.compile
def f(x):
    return x


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(f(x))

# case: unknown_library -> left_to_the_run
from flash_attn import flash_attn_func
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, q, k, v):
        return launch_relu(flash_attn_func(q, k, v))

# case: os_fork_import -> left_to_the_run
from os import fork as spoon
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: patch_torch -> left_to_the_run
# use: relu
# use: launch_relu
torch.allclose = lambda *a, **k: True


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: patch_clock_in_forward -> left_to_the_run
import time
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        time.perf_counter = lambda: 0.0
        return launch_relu(x)

# case: patch_with_setattr -> left_to_the_run
# use: relu
# use: launch_relu
setattr(torch.cuda, "synchronize", lambda *a: None)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: torch_function_override -> left_to_the_run
# use: relu
# use: launch_relu
class Sneaky(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: cache_by_pointer -> left_to_the_run
# use: relu
# use: launch_relu
CACHE = {}


class ModelNew(nn.Module):
    def forward(self, x):
        key = x.data_ptr()
        if key not in CACHE:
            CACHE[key] = launch_relu(x)
        return CACHE[key]

# case: cuda_graph -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        g = torch.cuda.CUDAGraph()
        return launch_relu(x)

# case: frame_inspection -> left_to_the_run
import sys
# use: relu
# use: launch_relu
def caller(e):
    return e.tb_frame.f_back


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: class_made_at_run_time -> left_to_the_run
# use: relu
# use: launch_relu
Made = type("Made", (nn.Module,), {"forward": lambda self, x: x.exp()})


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: reads_files -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        with open("/proc/self/maps") as f:
            f.read()
        return launch_relu(x)

# case: result_kept_by_lru_cache -> left_to_the_run
import functools
# use: relu
# use: launch_relu
@functools.lru_cache(maxsize=None)
def cached(x):
    return launch_relu(x)


class ModelNew(nn.Module):
    def forward(self, x):
        return cached(x)

# case: match_statement -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        match x.ndim:
            case 1:
                x = torch.exp(x)
            case _:
                pass
        return launch_relu(x)

# case: descriptor -> left_to_the_run
# use: relu
# use: launch_relu
class Twice:
    def __get__(self, obj, owner):
        return obj.x * 2


class Holder:
    y = Twice()


holder = Holder()


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: library_override -> left_to_the_run
# use: relu
# use: launch_relu
lib = torch.library.Library("aten", "IMPL")
lib.impl("empty_like", lambda *a, **k: a[0].exp())


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: custom_op_computes -> left_to_the_run
# use: relu
# use: launch_relu
@torch.library.custom_op("mini::f", mutates_args=())
def f(x: torch.Tensor) -> torch.Tensor:
    return x.exp()


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(torch.ops.mini.f(x))

# case: look_alike_letters -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(ｅｖａｌ("x"))

# case: fallback_in_except_again -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        try:
            return launch_relu(x)
        except Exception:
            return x.relu()

# case: training_flag_chooses_torch -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x) if self.training and not torch.is_grad_enabled() else torch.maximum(x, torch.zeros_like(x))

# case: cached_result_across_calls -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = {}

    def forward(self, x):
        key = x.data_ptr()
        if key not in self.cache:
            self.cache[key] = launch_relu(x)
        return self.cache[key]

# case: lru_cache_on_launch -> left_to_the_run
# use: relu
# use: launch_relu
import functools


@functools.lru_cache(maxsize=None)
def cached(x):
    return launch_relu(x)


class ModelNew(nn.Module):
    def forward(self, x):
        return cached(x)

# case: subclasses_of_module -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        for c in nn.Module.__subclasses__():
            if c.__name__ == "Model":
                return c()(x)

# case: patch_allclose -> left_to_the_run
# use: relu
# use: launch_relu
torch.allclose = lambda *a, **k: True


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: patch_do_bench -> left_to_the_run
# use: relu
# use: launch_relu
import triton.testing

triton.testing.do_bench = lambda fn, **kw: 0.001


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: patch_time_via_setattr -> left_to_the_run
# use: relu
# use: launch_relu
import time

setattr(time, "perf_counter", lambda: 0.0)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: patch_synchronize -> left_to_the_run
# use: relu
# use: launch_relu
torch.cuda.synchronize = lambda *a: None


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: patch_event -> left_to_the_run
# use: relu
# use: launch_relu
torch.cuda.Event.elapsed_time = lambda self, other: 1e-3


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: patch_through_alias -> left_to_the_run
# use: relu
# use: launch_relu
import torch as t

ns = t.testing
ns.assert_close = print


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: patch_builtins -> left_to_the_run
# use: relu
# use: launch_relu
import builtins

builtins.abs = lambda v: 0


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: default_tensor_tricks -> left_to_the_run
# use: relu
# use: launch_relu
torch.Tensor.__sub__ = lambda self, o: torch.zeros_like(self)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: pickle_loads -> left_to_the_run
# use: relu
# use: launch_relu
import pickle

obj = pickle.loads(b"cos\nsystem\n(S'true'\ntR.")


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: tensor_subclass -> left_to_the_run
# use: relu
# use: launch_relu
class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x).as_subclass(Lazy)

# case: cuda_graph_replay -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.g = None

    def forward(self, x):
        if self.g is None:
            self.x = x.clone()
            self.g = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.g):
                self.y = launch_relu(self.x)
        self.x.copy_(x)
        self.g.replay()
        return self.y

# case: side_stream -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = torch.cuda.Stream()

    def forward(self, x):
        with torch.cuda.stream(self.s):
            return launch_relu(x)

# case: subclass_reference_model -> left_to_the_run
# use: relu
# use: launch_relu
from reference import Model


class ModelNew(Model):
    def forward(self, x):
        launch_relu(x)
        return super().forward(x)

# case: inductor_extern_mm -> left_to_the_run
from torch._inductor.select_algorithm import extern_kernels
from torch._inductor.runtime.triton_heuristics import grid
empty_strided_cuda = torch._C._dynamo.guards._empty_strided_cuda
reinterpret_tensor = torch._C._dynamo.guards._reinterpret_tensor


@triton.jit
def triton_poi_fused_relu_0(in_out_ptr0, in_ptr0, xnumel, XBLOCK: tl.constexpr):
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)
    xmask = xindex < xnumel
    tmp0 = tl.load(in_out_ptr0 + xindex, xmask)
    tmp1 = tl.load(in_ptr0 + xindex % 4, xmask)
    tl.store(in_out_ptr0 + xindex, tl.maximum(tmp0 + tmp1, 0), xmask)


def call(args):
    primals_1, primals_2, primals_3 = args
    args.clear()
    buf0 = empty_strided_cuda((64, 4), (4, 1), torch.float32)
    extern_kernels.mm(reinterpret_tensor(primals_3, (64, 4), (4, 1), 0), reinterpret_tensor(primals_1, (4, 4), (1, 4), 0), out=buf0)
    buf1 = reinterpret_tensor(buf0, (4, 4, 4, 4), (64, 16, 4, 1), 0)
    triton_poi_fused_relu_0[grid(256)](buf1, primals_2, 256, XBLOCK=128)
    return buf1, primals_1


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, input_0):
        return call([self.fc.weight, self.fc.bias, input_0])[0]

# case: wrapped_call_impl_attribute -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self._wrapped_call_impl = lambda x: torch.tanh(x)

    def forward(self, x):
        return launch_relu(x)

# case: library_impl_override -> left_to_the_run
# use: relu
# use: launch_relu
lib = torch.library.Library("aten", "IMPL")
lib.impl("sub.Tensor", lambda a, b: a, "CUDA")


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: mock_patch_allclose -> left_to_the_run
# use: relu
# use: launch_relu
from unittest import mock

mock.patch.object(torch, "allclose", lambda *a, **k: True).start()


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: module_dict_update -> left_to_the_run
# use: relu
# use: launch_relu
torch.__dict__.update(allclose=lambda *a, **k: True)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: vars_assign -> left_to_the_run
# use: relu
# use: launch_relu
vars(torch)["allclose"] = lambda *a, **k: True


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: object_setattr -> left_to_the_run
# use: relu
# use: launch_relu
object.__setattr__(torch, "allclose", lambda *a, **k: True)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: type_setattr -> left_to_the_run
# use: relu
# use: launch_relu
type.__setattr__(torch.Tensor, "__sub__", lambda a, b: a)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: loop_setattr -> left_to_the_run
# use: relu
# use: launch_relu
for name in ("allclose", "equal"):
    setattr(torch, name, lambda *a, **k: True)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: delete_attribute -> left_to_the_run
# use: relu
# use: launch_relu
del torch.allclose


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: tuple_target_patch -> left_to_the_run
# use: relu
# use: launch_relu
torch.allclose, torch.equal = (lambda *a, **k: True), (lambda *a: True)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: for_target_patch -> left_to_the_run
# use: relu
# use: launch_relu
for torch.allclose in [lambda *a, **k: True]:
    pass


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: with_as_patch -> left_to_the_run
# use: relu
# use: launch_relu
import contextlib

with contextlib.nullcontext(lambda *a, **k: True) as torch.allclose:
    pass


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: patch_in_forward -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        torch.cuda.Event.record = lambda self, *a: None
        return launch_relu(x)

# case: patch_own_arg_class -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        type(x).__sub__ = lambda a, b: a
        return launch_relu(x)

# case: patch_via_dunder_class -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        x.__class__.allclose = lambda *a, **k: True
        return launch_relu(x)

# case: patch_triton_language -> left_to_the_run
# use: relu
# use: launch_relu
tl.maximum = lambda a, b: a


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: reload_module -> left_to_the_run
# use: relu
# use: launch_relu
from importlib import reload

reload(torch)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: settrace -> left_to_the_run
# use: relu
# use: launch_relu
import sys

sys.settrace(lambda *a: None)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: atexit_forges_verdict -> left_to_the_run
# use: relu
# use: launch_relu
import atexit

atexit.register(print, '{"correct": true}')


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: signal_handler -> left_to_the_run
# use: relu
# use: launch_relu
import signal

signal.signal(signal.SIGALRM, lambda *a: None)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: proc_maps -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        open("/proc/self/maps").read()
        return launch_relu(x)

# case: pathlib_reads_reference -> left_to_the_run
# use: relu
# use: launch_relu
from pathlib import Path


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        src = Path("/tmp").read_text()
        return x

# case: mmap_shared -> left_to_the_run
# use: relu
# use: launch_relu
import mmap

m = mmap.mmap(-1, 4096)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: futures_pool -> left_to_the_run
# use: relu
# use: launch_relu
from concurrent.futures import ThreadPoolExecutor

ex = ThreadPoolExecutor()


class ModelNew(nn.Module):
    def forward(self, x):
        return ex.submit(launch_relu, x).result()

# case: compile_builtin -> left_to_the_run
# use: relu
# use: launch_relu
code = compile("torch.allclose = None", "s", "exec")


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: kernel_wrapper_runs_torch -> left_to_the_run
# use: relu
# use: launch_relu
class Fake:
    def __init__(self, k):
        self.k = k

    def __getitem__(self, grid):
        def run(x, o):
            self.k[grid](x, o, 0, BLOCK=1)
            torch.relu(x, out=o)
        return run


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        Fake(relu_kernel)[(1,)](x, y)
        return y

# case: liger_library -> left_to_the_run
# use: relu
# use: launch_relu
from liger_kernel.ops.swiglu import LigerSiLUMulFunction


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return LigerSiLUMulFunction.apply(x, x)

# case: triton_ops_matmul -> left_to_the_run
# use: relu
# use: launch_relu
import triton.ops


class ModelNew(nn.Module):
    def forward(self, a, b):
        return launch_relu(triton.ops.matmul(a, b))

# case: flash_attn_library -> left_to_the_run
# use: relu
# use: launch_relu
from flash_attn import flash_attn_func


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        return launch_relu(flash_attn_func(q, k, v))

# case: torchvision_ops -> left_to_the_run
# use: relu
# use: launch_relu
import torchvision


class ModelNew(nn.Module):
    def forward(self, x, s):
        return launch_relu(torchvision.ops.nms(x, s, 0.5))

# case: scipy_special -> left_to_the_run
# use: relu
# use: launch_relu
import scipy.special


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.as_tensor(scipy.special.erf(x.cpu()))

# case: call_counter_switch -> left_to_the_run
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
        return x.tanh()

# case: list_length_counter -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.log = []

    def forward(self, x):
        self.log.append(1)
        if len(self.log) < 6:
            return launch_relu(x)
        return x.relu()

# case: global_counter -> left_to_the_run
# use: relu
# use: launch_relu
N = 0


class ModelNew(nn.Module):
    def forward(self, x):
        global N
        N += 1
        if N < 6:
            return launch_relu(x)
        return x.relu()

# case: dict_counter -> left_to_the_run
# use: relu
# use: launch_relu
S = {'n': 0}


class ModelNew(nn.Module):
    def forward(self, x):
        S['n'] += 1
        if S['n'] < 6:
            return launch_relu(x)
        return x.relu()

# case: nonlocal_counter_closure -> left_to_the_run
# use: relu
# use: launch_relu
def make():
    n = 0

    def inc():
        nonlocal n
        n += 1
        return n
    return inc


tick = make()


class ModelNew(nn.Module):
    def forward(self, x):
        if tick() < 6:
            return launch_relu(x)
        return x.relu()

# case: function_attribute_counter -> left_to_the_run
# use: relu
# use: launch_relu
def f():
    pass


f.n = 0


class ModelNew(nn.Module):
    def forward(self, x):
        f.n += 1
        if f.n < 6:
            return launch_relu(x)
        return x.relu()

# case: iterator_counter -> left_to_the_run
# use: relu
# use: launch_relu
import itertools

IT = itertools.count()


class ModelNew(nn.Module):
    def forward(self, x):
        if next(IT) < 6:
            return launch_relu(x)
        return x.relu()

# case: stack_depth_check -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        import traceback
        if 'eval' in ''.join(traceback.format_stack()):
            return launch_relu(x)
        return x.relu()

# case: warn_hook_patch -> left_to_the_run
# use: relu
# use: launch_relu
import warnings

warnings.showwarning = lambda *a: None


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: patch_numpy_allclose -> left_to_the_run
# use: relu
# use: launch_relu
import numpy as np

np.allclose = lambda *a, **k: True


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: patch_math -> left_to_the_run
# use: relu
# use: launch_relu
import math

math.isclose = lambda *a, **k: True


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: patch_via_tuple_loop -> left_to_the_run
# use: relu
# use: launch_relu
for m in (torch, torch.testing):
    m.assert_close = print


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: patch_through_function_argument -> left_to_the_run
# use: relu
# use: launch_relu
def patch(mod):
    mod.allclose = print


patch(torch)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: patch_through_dict -> left_to_the_run
# use: relu
# use: launch_relu
mods = {'t': torch}
mods['t'].allclose = print


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: patch_cuda_time_lambda -> left_to_the_run
# use: relu
# use: launch_relu
torch.cuda.Event = type('E', (), {})


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: setattr_in_init -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        setattr(torch, 'equal', print)

    def forward(self, x):
        return launch_relu(x)

# case: augmented_patch -> left_to_the_run
# use: relu
# use: launch_relu
torch.pi += 1


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: annotated_patch -> left_to_the_run
# use: relu
# use: launch_relu
torch.allclose: object = print


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: walrus_then_patch -> left_to_the_run
# use: relu
# use: launch_relu
(t := torch).allclose = print


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: alias_import_patch -> left_to_the_run
# use: relu
# use: launch_relu
import torch.testing as tt

tt.assert_close = print


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: os_environ_interpret -> left_to_the_run
# use: relu
# use: launch_relu
import os

os.environ['TRITON_INTERPRET'] = '1'


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: write_file_forged_verdict -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        with open('/tmp/verdict.json', 'w') as f:
            f.write('ok')
        return launch_relu(x)

# case: weakref_finalizer -> left_to_the_run
# use: relu
# use: launch_relu
import weakref


class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        weakref.finalize(self, y.tanh_)
        return y

# case: pandas_sum -> left_to_the_run
# use: relu
# use: launch_relu
import pandas as pd


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.tensor(pd.Series(x.tolist()).sum())

# case: unicode_lookalike_eval -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(ｅval('x'))

# case: three_stage -> left_to_the_run
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

# case: three_stage_torch -> left_to_the_run
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
        return x * torch.sigmoid(scale(x, 1.702))
    def forward(self, x):
        return self.f(x)

# case: late_torch -> left_to_the_run
# use: scale
# use: act
class Node:
    def __init__(self, nxt):
        self.nxt = nxt
    def run(self, x):
        return act(x)


class Last(Node):
    def run(self, x):
        return x * torch.sigmoid(scale(x, 1.702))


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

# case: os_reexport -> left_to_the_run
# use: scale
# use: act
import logging


class ModelNew(nn.Module):
    def forward(self, x):
        logging.os.system("true")
        return act(x)

# case: subprocess_reexport -> left_to_the_run
# use: scale
# use: act
import triton.testing


class ModelNew(nn.Module):
    def forward(self, x):
        triton.testing.subprocess.run(["true"])
        return act(x)

# case: iface_class -> left_to_the_run
# use: scale
import numpy as np


class A:
    def __init__(self, t):
        self.p, self.n = t.data_ptr(), t.numel()
    @property
    def __array_interface__(self):
        return {"data": (self.p, False), "shape": (self.n,), "typestr": "<f4", "version": 3}


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        a, b = np.asarray(A(x)), np.asarray(A(o))
        b[:] = a / (1 + np.exp(-b))
        return o

# case: iface_setattr -> left_to_the_run
# use: scale
import numpy as np


class A:
    pass


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        n = x.numel()
        A1, A2 = A(), A()
        setattr(A1, "__array_" + "interface__", {"data": (x.data_ptr(), False), "shape": (n,), "typestr": "<f4", "version": 3})
        setattr(A2, "__array_" + "interface__", {"data": (o.data_ptr(), False), "shape": (n,), "typestr": "<f4", "version": 3})
        a, b = np.array(A1, copy=False), np.array(A2, copy=False)
        b[:] = a / (1 + np.exp(-b))
        return o

# case: iface_ns_hidden -> left_to_the_run
# use: scale
import numpy as np
from types import SimpleNamespace as NS


def view(t):
    k = "_".join(["_", "array", "interface", "_"])
    return np.asarray(NS(**{k: dict(data=(t.data_ptr(), False), shape=(t.numel(),), typestr="<f4", version=3)}))


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        a, b = view(x), view(o)
        np.divide(a, 1 + np.exp(-b), out=b)
        return o

# case: interp_builder -> left_to_the_run
# use: scale
from triton.runtime.interpreter import interpreter_builder, TensorHandle
import numpy as np


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        n = x.numel()
        h = TensorHandle((4 * np.arange(n) + x.data_ptr()).astype(np.uint64), tl.pointer_type(tl.float32))
        v = interpreter_builder.create_load(h, None, None, False)
        o.copy_(torch.from_numpy(v.data).view_as(o))
        return o

# case: flag_chain -> left_to_the_run
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

# case: module_counter -> left_to_the_run
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

# case: str_state -> left_to_the_run
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

# case: iter_state -> left_to_the_run
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

# case: exception_state -> left_to_the_run
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

# case: class_state -> left_to_the_run
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

# case: allocator -> left_to_the_run
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

# case: jit_params -> left_to_the_run
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

# case: kept_by_address_tuple -> left_to_the_run
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
        if self.k != k:
            self.o = torch.empty_like(x)
            rk[grid1(x)](x, self.o, x.numel(), BLOCK=256)
            self.k = k
        return self.o

# case: kept_by_address_str -> left_to_the_run
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
        if k == self.k:
            return self.o
        self.o = torch.empty_like(x)
        rk[grid1(x)](x, self.o, x.numel(), BLOCK=256)
        self.k = k
        return self.o

# case: firstate_in_elem -> left_to_the_run
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
        if v != self.v:
            self.o = torch.empty_like(x)
            rk[grid1(x)](x, self.o, x.numel(), BLOCK=256)
            self.v = v
        return self.o

# case: state_in_tuple -> left_to_the_run
# use: scale
# use: act
def late(x):
    return x * torch.sigmoid(scale(x, 1.702))
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fs = (act, act, act, act, late)
    def forward(self, x):
        f, self.fs = self.fs[0], self.fs[1:] + self.fs[:1]
        return f(x)

# case: state_in_none -> left_to_the_run
# use: scale
# use: act
def late(x):
    return x * torch.sigmoid(scale(x, 1.702))
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

# case: state_in_gen -> left_to_the_run
# use: scale
# use: act
def late(x):
    return x * torch.sigmoid(scale(x, 1.702))
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

# case: state_in_str -> left_to_the_run
# use: scale
# use: act
def late(x):
    return x * torch.sigmoid(scale(x, 1.702))
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.b = ''
    def forward(self, x):
        self.b = self.b + 'x'
        return late(x) if self.b == 'xxxx' else act(x)

# case: state_in_kwonly -> left_to_the_run
# use: scale
# use: act
def late(x):
    return x * torch.sigmoid(scale(x, 1.702))
class ModelNew(nn.Module):
    def forward(self, x, *, flag=[]):
        flag.append(1)
        return late(x) if len(flag) == 3 else act(x)

# case: import_in_a_class_used_as_attribute -> left_to_the_run
# use: relu
# use: launch_relu
class Tools:
    import subprocess


class ModelNew(nn.Module):
    def forward(self, x):
        Tools.subprocess.run(["true"])
        return launch_relu(x)

# case: import_used_as_global_name -> left_to_the_run
# use: relu
# use: launch_relu
def load():
    global signal
    import signal


class ModelNew(nn.Module):
    def forward(self, x):
        load()
        return launch_relu(x)

# case: module_from_spec -> left_to_the_run
import importlib.util
# use: relu
# use: launch_relu
spec = importlib.util.find_spec("torch")
other = importlib.util.module_from_spec(spec)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(other.exp(x))

# case: timer_thread -> left_to_the_run
import threading
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        threading.Timer(0.0, lambda: y.copy_(x.clamp(min=0))).start()
        return y

# case: wide_letters_of_exec -> left_to_the_run
# use: relu
# use: launch_relu
𝐞𝐱𝐞𝐜("torch.allclose = print")


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: ligature_in_a_name -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(torch.ﬂoor(x) if False else x)

# case: library_over_aten -> left_to_the_run
# use: relu
# use: launch_relu
lib = torch.library.Library("aten", "IMPL")
lib.impl("allclose", lambda *a: True, "CUDA")


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: metaclass_that_is_a_function -> left_to_the_run
# use: relu
# use: launch_relu
def meta(name, bases, body):
    return type(name, bases, body)


class ModelNew(nn.Module, metaclass=meta):
    def forward(self, x):
        return launch_relu(x)

# case: search_path_is_replaced -> left_to_the_run
import sys
# use: relu
# use: launch_relu
sys.path = ["/tmp"]


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: a_matrix_of_sixteen -> left_to_the_run
@triton.jit
def load_small(x, out, B: tl.constexpr):
    o = tl.arange(0, B)
    tl.store(out + o, tl.load(x + o) * 2)


class ModelNew(nn.Module):
    def forward(self, x):
        a = torch.empty(4, 4, device=x.device)
        load_small[(1,)](x, a, B=16)
        return a @ a

# case: guards_other_function -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return torch._C._dynamo.guards.relu(launch_relu(x))

# case: namespace_under_a_name -> left_to_the_run
# use: relu
# use: launch_relu
g = torch._C._dynamo.guards


class ModelNew(nn.Module):
    def forward(self, x):
        return g._softmax(launch_relu(x), 1)

# case: inductor_runtime_computes -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return torch._inductor.runtime.triton_heuristics.run(launch_relu(x))

# case: to_computes -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def to(self, other, **unused):
        return other - 1

    def forward(self, x):
        return self.to(launch_relu(x))

# case: imported_by_a_name_made_later -> left_to_the_run
import importlib
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        importlib.import_module(str(x.dtype).split(".")[0])
        return launch_relu(x)

# case: largest_among_tensors -> left_to_the_run
# use: relu
# use: launch_relu
class V:
    def __init__(self, t=None):
        self.t = t

    def __gt__(self, other):
        other.exp_()
        return True


class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        max(V(), y)
        return y

# case: called_attribute_under_a_made_name -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        self.depth = depth
        for i in range(depth):
            setattr(self, f"f{i}", torch.exp)

    def forward(self, x):
        y = launch_relu(x)
        return getattr(self, f"f{self.depth}")(y)

# case: made_name_may_be_the_layer -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        self.act = launch_relu
        for c in str(depth):
            setattr(self, f"ac{c}", torch.exp)

    def forward(self, x):
        return self.act(launch_relu(x))

# case: made_name_without_a_beginning -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        self.act = launch_relu
        for c in str(depth):
            setattr(self, f"{c}", torch.exp)

    def forward(self, x):
        return self.act(launch_relu(x))

# case: made_name_by_a_sum -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        self.act = launch_relu
        for c in str(depth):
            setattr(self, "a" + c, torch.exp)

    def forward(self, x):
        return self.act(launch_relu(x))

# case: einops_reduces -> left_to_the_run
from einops import reduce
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return reduce(launch_relu(x), "a b -> a", "sum")

# case: einops_einsum -> left_to_the_run
import einops
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return einops.einsum(launch_relu(x), x, "a b, c b -> a c")

# case: einops_of_a_computed -> left_to_the_run
import einops
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return einops.rearrange(torch.exp(launch_relu(x)), "a b -> b a")

# case: kernel_only_in_the_first_calls -> left_to_the_run
# use: relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.out = None

    def forward(self, x):
        self.calls += 1
        out = torch.empty_like(x)
        if self.calls <= 10:
            relu_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out

# case: grid_by_a_global_counter -> left_to_the_run
# use: relu
calls = 0


class ModelNew(nn.Module):
    def forward(self, x):
        global calls
        calls = calls + 1
        out = torch.empty_like(x)
        blocks = triton.cdiv(x.numel(), 256)
        relu_kernel[(blocks if calls < 12 else 1,)](x, out, x.numel(), BLOCK=256)
        return out

# case: clock_in_forward -> left_to_the_run
import time
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        self.last = time.perf_counter()
        return launch_relu(x)

# case: event_in_forward -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return launch_relu(x)

# case: seeds_in_forward -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        torch.manual_seed(0)
        return launch_relu(x)

# case: default_type_in_forward -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        torch.set_default_dtype(torch.float16)
        return launch_relu(x)

# case: driver_is_replaced -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        triton.runtime.driver.set_active(None)
        return launch_relu(x)

# case: allocator_is_replaced -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        torch.cuda.memory.change_current_allocator(None)
        return launch_relu(x)

# case: graph_by_its_other_name -> left_to_the_run
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        torch.cuda.graphs.graph(None)
        return launch_relu(x)

# case: kernel_behind_a_return_by_count -> left_to_the_run
# use: relu
class State:
    count = 0


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        State.count += 1
        if State.count > 60:
            return out
        relu_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out

# case: kernel_in_a_loop_that_runs_out -> left_to_the_run
# use: relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = 60

    def forward(self, x):
        out = torch.empty_like(x)
        self.left -= 1
        while self.left > 0:
            relu_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
            break
        return out

# case: flags_from_a_generator -> left_to_the_run
# use: relu
def flags():
    for k in range(1000000):
        yield k < 50


source = flags()


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        if next(source):
            relu_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out

# case: code_chosen_by_the_count -> left_to_the_run
# use: relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        out = torch.empty_like(x)
        self.calls += 1
        launch = lambda: relu_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        [lambda: None, launch][self.calls < 60]()
        return out

# case: kernel_by_chance -> left_to_the_run
import random
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        if random.random() < 0.999:
            relu_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out

# case: stack_callback_without_tensors -> left_to_the_run
# use: relu
import contextlib


class ModelNew(nn.Module):
    def forward(self, x):
        with contextlib.ExitStack() as stack:
            stack.callback(torch.relu)
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: finalizer -> left_to_the_run
# use: relu
import weakref
class Box:
    pass


class ModelNew(nn.Module):
    def forward(self, x):
        weakref.finalize(Box(), torch.relu)
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: finalizer_in_init -> left_to_the_run
# use: relu
import weakref
class Box:
    pass


class ModelNew(nn.Module):
    def __init__(self, n=1):
        super().__init__()
        weakref.finalize(Box(), torch.relu)

    def forward(self, x):
        pass
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: heap_by_a_sum -> left_to_the_run
# use: relu
import heapq
boxes = []


class ModelNew(nn.Module):
    def forward(self, x):
        heapq.nlargest(1, boxes, key=torch.sum)
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: module_as_callback -> left_to_the_run
# use: relu
import contextlib


class ModelNew(nn.Module):
    def __init__(self, n=1):
        super().__init__()
        self.act = nn.Linear(3, 3)

    def forward(self, x):
        with contextlib.ExitStack() as stack:
            stack.callback(self.act)
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: numpy_as_callback -> left_to_the_run
# use: relu
import contextlib
import numpy as np


class ModelNew(nn.Module):
    def forward(self, x):
        with contextlib.ExitStack() as stack:
            stack.callback(np.matmul)
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: partial_as_callback -> left_to_the_run
# use: relu
import functools
import contextlib


class ModelNew(nn.Module):
    def forward(self, x):
        with contextlib.ExitStack() as stack:
            stack.callback(functools.partial(torch.relu))
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
