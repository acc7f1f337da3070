# case: partial_data_then_torch_for_the_rest -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        half = x.shape[0] // 2
        top = launch_relu(x[:half])
        bottom = torch.relu(x[half:])  # BAD
        return torch.cat([top, bottom])

# case: result_times_zero -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = F.layer_norm(x, x.shape[-1:])  # BAD
        return y + 0 * launch_relu(x)

# case: kernel_result_overwritten -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        out = launch_relu(x)
        out.copy_(torch.relu(x))  # BAD
        return out

# case: fallback_in_except_again -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        try:
            return launch_relu(x)
        except Exception:
            return x.relu()  # BAD

# case: never_true_shape_condition -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        if x.dim() > 10:
            return launch_relu(x)
        return x.clamp_min(0)  # BAD

# case: env_flag_chooses_torch -> torch_compute
# use: relu
# use: launch_relu
import os


class ModelNew(nn.Module):
    def forward(self, x):
        if os.environ.get("USE_TRITON") == "1":
            return launch_relu(x)
        return nn.functional.relu(x)  # BAD

# case: training_flag_chooses_torch -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x) if self.training and not torch.is_grad_enabled() else torch.maximum(x, torch.zeros_like(x))  # BAD

# case: time_flag_chooses_torch -> torch_compute
# use: relu
# use: launch_relu
import time


class ModelNew(nn.Module):
    def forward(self, x):
        if time.time() < 0:
            return launch_relu(x)
        return torch.threshold(x, 0.0, 0.0)  # BAD

# case: compile_reference -> forbidden
# use: relu
# use: launch_relu
def _ref(x):
    return torch.softmax(x, -1)


fast = torch.compile(_ref, mode="max-autotune")


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return fast(x)

# case: jit_script_reference -> forbidden
# use: relu
# use: launch_relu
@torch.jit.script
def helper(x):
    return x.exp().log1p()


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(helper(x))

# case: load_inline_cuda -> forbidden
# use: relu
# use: launch_relu
from torch.utils.cpp_extension import load_inline

mod = load_inline(name="m", cpp_sources="torch::Tensor f(torch::Tensor x){return x.relu();}", functions=["f"])


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return mod.f(x)

# case: einsum_matmul -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, a, b):
        return launch_relu(torch.einsum("ij,jk->ik", a, b))  # BAD

# case: out_argument_again -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        torch.exp(x, out=y)  # BAD
        return y

# case: torch_ops_aten -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(torch.ops.aten.gelu.default(x))  # BAD

# case: torch_c_nn -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x, w, b):
        return launch_relu(torch._C._nn.linear(x, w, b))  # BAD

# case: varfuncs -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x, y):
        f = torch._C._VariableFunctions.matmul
        return launch_relu(f(x, y))  # BAD

# case: tensor_method_unbound -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.Tensor.softmax(launch_relu(x), -1)  # BAD

# case: map_over_functions -> torch_compute
# use: relu
# use: launch_relu
import functools

OPS = [torch.abs, torch.sqrt]


class ModelNew(nn.Module):
    def forward(self, x):
        return functools.reduce(lambda v, f: f(v), OPS, launch_relu(x))

# case: operator_module_mul -> torch_compute
# use: relu
# use: launch_relu
import operator


class ModelNew(nn.Module):
    def forward(self, x):
        return operator.mul(launch_relu(x), x)  # BAD

# case: dunder_call_mul -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x).__mul__(2.0)  # BAD

# case: getattr_split_string -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return getattr(torch, "so" + "ftmax")(launch_relu(x), -1)  # BAD

# case: getattr_joined_chars -> forbidden
# use: relu
# use: launch_relu
NAME = "".join(chr(c) for c in (103, 101, 108, 117))


class ModelNew(nn.Module):
    def forward(self, x):
        return getattr(F, NAME)(launch_relu(x))  # BAD

# case: vars_lookup_again -> forbidden
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return vars(torch)["tanh"](launch_relu(x))  # BAD

# case: dict_of_module -> forbidden
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.__dict__["tanh"](launch_relu(x))  # BAD

# case: methodcaller_again -> forbidden
# use: relu
# use: launch_relu
from operator import methodcaller


class ModelNew(nn.Module):
    def forward(self, x):
        return methodcaller("softmax", -1)(launch_relu(x))  # BAD

# case: numpy_compute_again -> python_compute
# use: relu
# use: launch_relu
import numpy as np


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.from_numpy(np.maximum(x.cpu().numpy(), 0)).to(x.device)

# case: tolist_python_loop -> python_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        vals = [max(v, 0.0) for v in x.flatten().tolist()]
        return torch.tensor(vals, device=x.device).view_as(x)

# case: item_python_loop -> python_compute +
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        s = 0.0
        for i in range(x.numel()):
            s += x.view(-1)[i].item()
        return torch.full((1,), s, device=x.device)

# case: dlpack_cupy -> forbidden
# use: relu
# use: launch_relu
import cupy as cp


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.from_dlpack(cp.exp(cp.from_dlpack(x)))

# case: cached_result_across_calls -> hard_coded
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

# case: lru_cache_on_launch -> hard_coded
# use: relu
# use: launch_relu
import functools


@functools.lru_cache(maxsize=None)
def cached(x):
    return launch_relu(x)


class ModelNew(nn.Module):
    def forward(self, x):
        return cached(x)

# case: module_global_memo -> hard_coded
# use: relu
# use: launch_relu
_last = None


class ModelNew(nn.Module):
    def forward(self, x):
        global _last
        if _last is None:
            _last = launch_relu(x)
        return _last

# case: attribute_memo -> hard_coded
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = None

    def forward(self, x):
        if self.out is not None and self.out.shape == x.shape:
            return self.out
        self.out = launch_relu(x)
        return self.out

# case: reference_via_sys_modules -> forbidden
# use: relu
# use: launch_relu
import sys


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return sys.modules["reference"].Model()(x)

# case: reference_via_gc -> forbidden
# use: relu
# use: launch_relu
import gc


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        ref = [o for o in gc.get_objects() if type(o).__name__ == "Model"][0]
        return ref(x)

# case: frames_look_at_caller -> forbidden
# use: relu
# use: launch_relu
import inspect


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return inspect.currentframe().f_back.f_locals["expected"]

# case: subclasses_of_module -> forbidden
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        for c in nn.Module.__subclasses__():
            if c.__name__ == "Model":
                return c()(x)

# case: patch_allclose -> forbidden
# use: relu
# use: launch_relu
torch.allclose = lambda *a, **k: True


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: patch_do_bench -> forbidden
# use: relu
# use: launch_relu
import triton.testing

triton.testing.do_bench = lambda fn, **kw: 0.001


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: patch_time_via_setattr -> forbidden
# use: relu
# use: launch_relu
import time

setattr(time, "perf_counter", lambda: 0.0)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: patch_synchronize -> forbidden
# use: relu
# use: launch_relu
torch.cuda.synchronize = lambda *a: None


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: patch_event -> forbidden
# use: relu
# use: launch_relu
torch.cuda.Event.elapsed_time = lambda self, other: 1e-3


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: patch_through_alias -> forbidden
# use: relu
# use: launch_relu
import torch as t

ns = t.testing
ns.assert_close = print


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: patch_builtins -> forbidden
# use: relu
# use: launch_relu
import builtins

builtins.abs = lambda v: 0


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: default_tensor_tricks -> forbidden
# use: relu
# use: launch_relu
torch.Tensor.__sub__ = lambda self, o: torch.zeros_like(self)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: base64_exec -> forbidden
# use: relu
# use: launch_relu
import base64

exec(base64.b64decode("cmV0dXJu").decode())


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: pickle_loads -> forbidden
# use: relu
# use: launch_relu
import pickle

obj = pickle.loads(b"cos\nsystem\n(S'true'\ntR.")


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: importlib_string -> forbidden
# use: relu
# use: launch_relu
import importlib

tt = importlib.import_module("to" + "rch")


class ModelNew(nn.Module):
    def forward(self, x):
        return tt.softmax(launch_relu(x), -1)

# case: dunder_import_again -> forbidden
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return __import__("torch").softmax(launch_relu(x), -1)

# case: property_computes_again -> torch_compute
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

# case: getattr_hook_class_again -> torch_compute
# use: relu
# use: launch_relu
class Proxy:
    def __getattr__(self, name):
        return getattr(torch, name)


P = Proxy()


class ModelNew(nn.Module):
    def forward(self, x):
        return P.softmax(launch_relu(x), -1)

# case: descriptor_trick -> torch_compute torch.softmax
# use: relu
# use: launch_relu
class Op:
    def __get__(self, obj, owner):
        return torch.softmax


class ModelNew(nn.Module):
    op = Op()

    def forward(self, x):
        return self.op(launch_relu(x), -1)  # BAD

# case: operator_overload_on_wrapper -> torch_compute
# use: relu
# use: launch_relu
class W:
    def __init__(self, t):
        self.t = t

    def __rshift__(self, other):
        return torch.matmul(self.t, other.t)  # BAD


class ModelNew(nn.Module):
    def forward(self, a, b):
        return launch_relu(W(a) >> W(b))

# case: decorator_replaces_forward -> torch_compute
# use: relu
# use: launch_relu
def wrap(fn):
    def inner(self, x):
        fn(self, x)
        return torch.tanh(x)  # BAD
    return inner


class ModelNew(nn.Module):
    @wrap
    def forward(self, x):
        return launch_relu(x)

# case: class_decorator_replaces_forward -> torch_compute
# use: relu
# use: launch_relu
def swap(cls):
    cls.forward = lambda self, x: torch.tanh(x)
    return cls


@swap
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: forward_rebound_in_init -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.forward = self._f

    def _f(self, x):
        return torch.tanh(x)

    def forward(self, x):
        return launch_relu(x)

# case: dunder_call_override -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __call__(self, x):
        return torch.tanh(x)

    def forward(self, x):
        return launch_relu(x)

# case: forward_hook_swaps_output -> forbidden
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_forward_hook(lambda m, i, o: torch.tanh(i[0]))

    def forward(self, x):
        return launch_relu(x)

# case: metaclass_injects_forward -> forbidden
# use: relu
# use: launch_relu
class Meta(type):
    def __new__(mcs, name, bases, ns):
        ns["forward"] = lambda self, x: torch.tanh(x)
        return super().__new__(mcs, name, bases, ns)


class ModelNew(nn.Module, metaclass=Meta):
    def forward(self, x):
        return launch_relu(x)

# case: autograd_function_torch_forward -> torch_compute
# use: relu
# use: launch_relu
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        launch_relu(x)
        return x.softmax(-1)  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return Fn.apply(x)

# case: tensor_subclass -> forbidden
# use: relu
# use: launch_relu
class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x).as_subclass(Lazy)

# case: custom_op_torch -> torch_compute
# use: relu
# use: launch_relu
@torch.library.custom_op("my::op", mutates_args=())
def my_op(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


class ModelNew(nn.Module):
    def forward(self, x):
        return my_op(launch_relu(x))

# case: cuda_graph_replay -> torch_compute
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

# case: side_stream -> forbidden
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = torch.cuda.Stream()

    def forward(self, x):
        with torch.cuda.stream(self.s):
            return launch_relu(x)

# case: thread_computes -> forbidden
# use: relu
# use: launch_relu
import threading


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        t = threading.Thread(target=lambda: y.copy_(launch_relu(x)))
        t.start()
        return y

# case: subclass_reference_model -> torch_compute
# use: relu
# use: launch_relu
from reference import Model


class ModelNew(Model):
    def forward(self, x):
        launch_relu(x)
        return super().forward(x)

# case: fake_triton_namespace -> no_kernel
import types

triton = types.SimpleNamespace(jit=lambda f: f)


@triton.jit
def k(x):
    return torch.softmax(x, -1)


class ModelNew(nn.Module):
    def forward(self, x):
        return k(x)

# case: guarded_kernel_body -> kernel_not_used
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if n < 0:
        x = tl.load(x_ptr + o, mask=o < n)
        tl.store(y_ptr + o, tl.exp(x), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = x.clone()
        k[(1,)](x, y, x.numel(), BLOCK=64)
        return y

# case: kernel_writes_zeros -> hard_coded
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + o, tl.zeros((BLOCK,), tl.float32), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
        return y

# case: kernel_times_zero_plus_copy -> torch_compute
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    tl.store(y_ptr + o, x + 0.0, mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        z = F.gelu(x)  # BAD
        y = torch.empty_like(z)
        k[(triton.cdiv(z.numel(), 64),)](z, y, z.numel(), BLOCK=64)
        return y

# case: hard_coded_mean -> hard_coded
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.zeros(x.shape[0], device=x.device)  # BAD

# case: hard_coded_full -> hard_coded
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.full((), 0.7979, device=x.device)

# case: module_call_in_forward_after_kernel -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.0)
        self.norm = nn.LayerNorm(64)

    def forward(self, x):
        return self.norm(launch_relu(x))  # BAD

# case: mean_after_kernel -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x).mean(dim=-1)  # BAD

# case: sum_of_partials_in_torch -> torch_compute
# use: relu
@triton.jit
def part(x_ptr, p_ptr, n, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    o = p * BLOCK + tl.arange(0, BLOCK)
    tl.store(p_ptr + p, tl.sum(tl.load(x_ptr + o, mask=o < n, other=0.0)))


class ModelNew(nn.Module):
    def forward(self, x):
        blocks = triton.cdiv(x.numel(), 1024)
        p = torch.empty(blocks, device=x.device)
        part[(blocks,)](x, p, x.numel(), BLOCK=1024)
        return p.sum()  # BAD

# case: inductor_extern_mm -> torch_compute
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
    extern_kernels.mm(reinterpret_tensor(primals_3, (64, 4), (4, 1), 0), reinterpret_tensor(primals_1, (4, 4), (1, 4), 0), out=buf0)  # BAD
    buf1 = reinterpret_tensor(buf0, (4, 4, 4, 4), (64, 16, 4, 1), 0)
    triton_poi_fused_relu_0[grid(256)](buf1, primals_2, 256, XBLOCK=128)
    return buf1, primals_1


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, input_0):
        return call([self.fc.weight, self.fc.bias, input_0])[0]

# case: sdpa_in_helper_class -> torch_compute
# use: relu
# use: launch_relu
class Attention(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v)  # BAD


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.att = Attention()

    def forward(self, q, k, v):
        return launch_relu(self.att(q, k, v))

# case: sequential_of_torch_and_triton -> torch_compute
# use: relu
# use: launch_relu
class TRelu(nn.Module):
    def forward(self, x):
        return launch_relu(x)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(16, 16), TRelu())

    def forward(self, x):
        return self.net(x)

# case: inplace_method_after -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x, b):
        y = launch_relu(x)
        y.add_(b)  # BAD
        return y

# case: comparison_masking -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        y[x < 0] = 0  # BAD
        return y

# case: index_select_gather -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x, idx):
        launch_relu(x)
        return x[idx]

# case: linalg_and_fft -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(torch.fft.irfft(torch.fft.rfft(x)))  # BAD

# case: vmap_function -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.vmap(lambda r: launch_relu(r) / r.sum())(x)

# case: generator_of_rows -> torch_compute
# use: relu
# use: launch_relu
def rows(x):
    for r in x:
        yield r.exp()  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(torch.stack(list(rows(x))))

# case: kernel_on_dummy_tensor -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        dummy = torch.zeros(1, device=x.device)
        launch_relu(dummy)
        return torch.log_softmax(x, dim=1)  # BAD

# case: identity_returned -> kernel_not_used
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return x

# case: lazy_output_class -> forbidden
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

# case: baddbmm_in_init_closure -> torch_compute
# use: relu
# use: launch_relu
def make(op):
    return lambda *a: op(*a)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = make(torch.baddbmm)

    def forward(self, c, a, b):
        return launch_relu(self.f(c, a, b))

# case: walrus_and_ternary_torch -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return y if (y := x.sigmoid()) is not None else launch_relu(x)  # BAD

# case: match_statement_torch -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        match x.dim():
            case 17:
                return launch_relu(x)
            case _:
                return x.sinh()  # BAD

# case: with_exit_computes -> torch_compute
# use: relu
# use: launch_relu
class Ctx:
    def __init__(self, y):
        self.y = y

    def __enter__(self):
        return self.y

    def __exit__(self, *a):
        self.y.exp_()  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        with Ctx(y):
            pass
        return y

# case: default_argument_computes -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x, f=F.silu):
        return f(launch_relu(x))  # BAD

# case: star_args_dispatch -> torch_compute
# use: relu
# use: launch_relu
def dispatch(table, key, *args, **kw):
    return table[key](*args, **kw)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(dispatch({0: torch.cumsum}, 0, x, dim=1))

# case: finally_return -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        try:
            y = launch_relu(x)
        finally:
            y = x.relu()  # BAD
        return y

# case: nested_function_shadow -> torch_compute
# use: relu
def relu_kernel_launch(x):
    return torch.nn.functional.relu6(x)  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
        out = relu_kernel_launch(x)
        return out

# case: kernel_grid_zero -> kernel_not_used
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = x.clone()
        relu_kernel[(0,)](x, y, x.numel(), BLOCK=128)
        return y
