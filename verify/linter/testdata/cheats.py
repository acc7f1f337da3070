# case: no_kernel_at_all -> no_kernel triton.jit
class ModelNew(nn.Module):
    def forward(self, x):
        return F.avg_pool2d(x, kernel_size=3, stride=None, padding=0)

# case: no_model -> no_model ModelNew
# use: relu
class Model(nn.Module):
    def forward(self, x):
        return x

# case: not_python -> parse_error syntax
def forward(x:
    return x +

# case: modulo_without_operand -> parse_error syntax
x = (offsets // 4) %
y = 1

# case: fake_jit -> no_kernel triton.jit
class triton:
    @staticmethod
    def jit(f):
        return f

@triton.jit
def k(x):
    return x


class ModelNew(nn.Module):
    def forward(self, x):
        return k(x)

# case: kernel_in_a_string -> no_kernel triton.jit
CODE = """
@triton.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pass
"""


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x)

# case: never_launched -> kernel_not_used forward
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        return x.clamp(min=0)

# case: never_launched_and_compute -> torch_compute clamp
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        return x.clamp(min=0)  # BAD

# case: paper_conv_module -> torch_compute torch.nn.Conv3d
@triton.jit
def add_bias_kernel(out_ptr, bias_ptr, n_elements, stride, out_C, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    out = tl.load(out_ptr + offsets, mask=mask, other=0.0)
    bias = tl.load(bias_ptr + (offsets // stride) % out_C, mask=mask, other=0.0)
    tl.store(out_ptr + offsets, out + bias, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv3d = nn.Conv3d(in_channels, out_channels, kernel_size)

    def forward(self, x):
        out = self.conv3d(x)  # BAD
        n = out.numel()
        add_bias_kernel[(triton.cdiv(n, 128),)](out, self.conv3d.bias, n, out.stride(1), out.shape[1], BLOCK_SIZE=128)
        return out

# case: paper_groupnorm_copy -> trivial_kernel groupnorm_kernel
@triton.jit
def groupnorm_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):  # BAD
    block_start = tl.program_id(0) * BLOCK_SIZE
    offsets = block_start + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    x_squared = x * x
    tl.store(out_ptr + offsets, x, mask=mask)


def triton_groupnorm(x, y):
    x = x.contiguous()
    out = torch.empty_like(x)
    grid = lambda meta: (triton.cdiv(x.numel(), meta["BLOCK_SIZE"]),)
    groupnorm_kernel[grid](x, y, out, x.numel(), BLOCK_SIZE=128)
    return out


class ModelNew(nn.Module):
    def forward(self, x):
        return triton_groupnorm(x, x)

# case: paper_bmm -> torch_compute torch.bmm
# use: matmul
# use: launch_matmul
class ModelNew(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.fc1 = nn.Linear(d, d)

    def forward(self, input, adj):
        temp = torch.bmm(adj, input)  # BAD
        return launch_matmul(temp, self.fc1.weight)

# case: paper_inductor_extern -> torch_compute torch._inductor.select_algorithm.extern_kernels.convolution
from torch._inductor.select_algorithm import extern_kernels
# use: add
def call(args):
    a, b, c = args
    args.clear()
    buf = extern_kernels.convolution(c, a, stride=(1, 1), padding=(0, 0), dilation=(1, 1), transposed=False)  # BAD
    add_kernel[(4,)](buf, b, buf, buf.numel(), BLOCK=128)
    return buf, a, b


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.final = nn.Conv2d(3, 2, kernel_size=1)

    def forward(self, x):
        return call([self.final.weight, self.final.bias, x])[0]

# case: matmul_operator -> torch_compute @
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, a, b):
        return launch_relu(a @ b)  # BAD

# case: plus_after_kernel -> torch_compute +
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x, y):
        return launch_relu(x) + y  # BAD

# case: augmented_assignment -> torch_compute *
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        y *= 2  # BAD
        return y

# case: negation -> torch_compute -
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return -launch_relu(x)  # BAD

# case: functional_alias -> torch_compute torch.nn.functional.softmax
from torch.nn.functional import softmax as sm
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return sm(launch_relu(x), dim=-1)  # BAD

# case: module_through_alias -> torch_compute torch.nn.Linear
from torch import nn as layers
# use: relu
# use: launch_relu
class ModelNew(layers.Module):
    def __init__(self):
        super().__init__()
        self.parts = {"a": layers.Linear(4, 4)}

    def forward(self, x):
        return launch_relu(self.parts["a"](x))  # BAD

# case: module_list_loop -> torch_compute torch.nn.Linear
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x):
        for layer in self.layers:
            x = launch_relu(layer(x))  # BAD
        return x

# case: sequential -> torch_compute torch.nn.BatchNorm1d
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Identity(), nn.BatchNorm1d(4))

    def forward(self, x):
        return launch_relu(self.net(x))  # BAD

# case: forward_method_of_module -> torch_compute torch.nn.Linear
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return launch_relu(self.fc.forward(x))  # BAD

# case: inherits_linear -> torch_compute torch.nn.Linear
# use: relu
# use: launch_relu
class Mine(nn.Linear):
    pass


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = Mine(4, 4)

    def forward(self, x):
        return launch_relu(self.fc(x))  # BAD

# case: inherits_reference -> torch_compute torch.sigmoid
# use: relu
# use: launch_relu
class Model(nn.Module):
    def forward(self, x):
        return torch.sigmoid(x)  # BAD


class ModelNew(Model):
    def forward(self, x):
        return launch_relu(super().forward(x))

# case: hidden_in_helper_chain -> torch_compute mean
# use: relu
# use: launch_relu
def a(x):
    return b(x)


def b(x):
    return (lambda t: t.mean(dim=0))(x)  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(a(x))

# case: hidden_in_closure_list -> torch_compute torch.exp
# use: relu
# use: launch_relu
OPS = [launch_relu, torch.exp]


class ModelNew(nn.Module):
    def forward(self, x):
        for op in OPS:
            x = op(x)  # BAD
        return x

# case: method_object -> torch_compute sum
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        reduce = launch_relu(x).sum
        return reduce(dim=1)  # BAD

# case: getattr_constant -> torch_compute torch.tanh
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return getattr(torch, "ta" + "nh")(launch_relu(x))  # BAD

# case: getattr_computed -> forbidden getattr
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        name = "".join(reversed("hnat"))
        return getattr(torch, name)(launch_relu(x))  # BAD

# case: operator_module -> torch_compute @
import operator
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, a, b):
        return launch_relu(operator.matmul(a, b))  # BAD

# case: methodcaller -> forbidden operator.methodcaller
import operator
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return operator.methodcaller("softmax", -1)(launch_relu(x))  # BAD

# case: reduce_lambda -> torch_compute *
from functools import reduce
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x, y):
        return launch_relu(reduce(lambda a, b: a * b, [x, y]))  # BAD

# case: map_callback -> torch_compute torch.exp
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.cat(list(map(torch.exp, [launch_relu(x)])))  # BAD

# case: dunder_method -> torch_compute __matmul__
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, a, b):
        return launch_relu(a.__matmul__(b))  # BAD

# case: tensor_class_method -> torch_compute softmax
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(torch.Tensor.softmax(x, -1))  # BAD

# case: einsum_in_autograd -> torch_compute torch.einsum
# use: relu
# use: launch_relu
class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        return launch_relu(torch.einsum("ij,jk->ik", a, b))  # BAD

    @staticmethod
    def backward(ctx, g):
        return g, g


class ModelNew(nn.Module):
    def forward(self, a, b):
        return Op.apply(a, b)

# case: fallback_in_except -> torch_compute torch.softmax
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        try:
            return launch_relu(x)
        except Exception:
            return torch.softmax(x, dim=-1)  # BAD

# case: fallback_by_size -> torch_compute torch.softmax
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        if x.shape[0] < 4096:
            return torch.softmax(x, dim=-1)  # BAD
        return launch_relu(x)

# case: dead_launch -> kernel_not_used forward
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        if False:
            x = launch_relu(x)
        return x

# case: empty_grid -> kernel_not_used relu_kernel
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(0, 1, 1)](x, out, x.numel(), BLOCK=64)  # BAD
        return out

# case: decoy_kernel -> torch_compute torch.softmax
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        scratch = torch.empty_like(x)
        relu_kernel[(1,)](x, scratch, x.numel(), BLOCK=64)
        return torch.softmax(x, dim=-1)  # BAD

# case: decoy_kernel_result_unused -> kernel_not_used return
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        scratch = torch.empty_like(x)
        relu_kernel[(1,)](x, scratch, x.numel(), BLOCK=64)
        return x.clone()  # BAD

# case: returns_unwritten_buffer -> hard_coded return
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        scratch = torch.empty_like(x)
        out = torch.empty_like(x)
        relu_kernel[(1,)](x, scratch, x.numel(), BLOCK=64)
        return out  # BAD

# case: constant_result -> hard_coded return
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        scratch = torch.empty_like(x)
        relu_kernel[(1,)](x, scratch, x.numel(), BLOCK=64)
        return torch.full((16, 16), 0.5, device=x.device)  # BAD

# case: constant_for_known_shape -> hard_coded return
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        if x.shape[0] == 128:
            return torch.zeros((128, 1), device=x.device)  # BAD
        return launch_relu(x)

# case: constant_kernel -> hard_coded k
@triton.jit
def k(out_ptr, n, BLOCK: tl.constexpr):  # BAD
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.zeros([BLOCK], tl.float32) + 0.25, mask=offs < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 64),)](out, x.numel(), BLOCK=64)
        return out

# case: loads_but_stores_constant -> hard_coded k
@triton.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # BAD
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, tl.full([BLOCK], 1.0, tl.float32), mask=offs < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
        return out

# case: table_of_results -> hard_coded table of numbers
# use: copy
TABLE = [  # BAD
    [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6],
    [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6],
    [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6],
]


class ModelNew(nn.Module):
    def forward(self, x):
        t = torch.tensor(TABLE, device=x.device)
        out = torch.empty_like(t)
        copy_kernel[(1,)](t, out, 48, BLOCK=64)
        return out

# case: times_one_plus_zero -> trivial_kernel k
@triton.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # BAD
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    one = 1.0
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, x * one + 0, mask=offs < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
        return out

# case: cast_only_copy -> trivial_kernel k
@triton.jit
def helper(p, o):
    return tl.load(p + o).to(tl.float32)


@triton.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # BAD
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = helper(x_ptr, offs)
    tl.store(out_ptr + offs, v)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
        return out

# case: torch_compile -> torch_compute torch.compile
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        f = torch.compile(lambda t: t.softmax(-1))  # BAD
        return launch_relu(f(x))

# case: torch_compile_decorator -> forbidden torch.compile
# use: relu
# use: launch_relu
@torch.compile
def f(x):
    return x


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(f(x))  # BAD

# case: torch_jit_script -> forbidden torch.jit.script
# use: relu
# use: launch_relu
@torch.jit.script  # BAD
def f(x):
    return x.softmax(-1)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(f(x))

# case: aten_ops -> torch_compute torch.ops.aten.mm.default
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, a, b):
        return launch_relu(torch.ops.aten.mm.default(a, b))  # BAD

# case: torch_c_namespace -> torch_compute torch._C._nn.gelu
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(torch._C._nn.gelu(x))  # BAD

# case: cpp_extension -> forbidden torch.utils.cpp_extension
from torch.utils.cpp_extension import load_inline  # BAD
# use: relu
# use: launch_relu
ext = load_inline(name="e", cpp_sources="torch::Tensor f(torch::Tensor x) { return x.relu(); }", functions=["f"])


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(ext.f(x))

# case: unknown_library -> torch_compute flash_attn.flash_attn_func
from flash_attn import flash_attn_func
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, q, k, v):
        return launch_relu(flash_attn_func(q, k, v))  # BAD

# case: numpy_compute -> python_compute numpy
import numpy as np
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        return torch.from_numpy(np.exp(y.cpu().numpy())).to(x.device)  # BAD

# case: tolist_compute -> python_compute tolist
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        rows = launch_relu(x).tolist()  # BAD
        return torch.tensor([sum(r) for r in rows])

# case: eval_string -> forbidden eval
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(eval("torch.exp(x)"))  # BAD

# case: exec_string -> forbidden exec
# use: relu
# use: launch_relu
exec("def f(x):\n    return torch.exp(x)")  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(f(x))

# case: exec_alias -> forbidden exec
# use: relu
# use: launch_relu
run = exec  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: base64_code -> forbidden base64
import base64  # BAD
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(getattr(torch, base64.b64decode("ZXhw").decode())(x))

# case: dunder_import -> forbidden __import__
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(__import__("torch").exp(x))  # BAD

# case: importlib -> forbidden importlib.import_module
import importlib
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(importlib.import_module("torch").exp(x))  # BAD

# case: globals_lookup -> forbidden globals
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(globals()["torch"].exp(x))  # BAD

# case: module_dict -> forbidden __dict__
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(torch.__dict__["exp"](x))  # BAD

# case: sys_modules -> forbidden sys.modules
import sys
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(sys.modules["torch"].exp(x))  # BAD

# case: ctypes -> forbidden ctypes
import ctypes  # BAD
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        ctypes.memset(x.data_ptr(), 0, 4)
        return launch_relu(x)

# case: subprocess -> forbidden subprocess
from subprocess import run  # BAD
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        run(["true"])
        return launch_relu(x)

# case: os_system -> forbidden os.system
import os as operating
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        operating.system("true")  # BAD
        return launch_relu(x)

# case: os_fork_import -> forbidden os.fork
from os import fork as spoon  # BAD
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: threading -> forbidden threading.Thread
import threading
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        out = []
        t = threading.Thread(target=lambda: out.append(x.exp()))  # BAD
        t.start()
        t.join()
        return launch_relu(out[0])

# case: patch_torch -> forbidden torch.allclose
# use: relu
# use: launch_relu
torch.allclose = lambda *a, **k: True  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: patch_tensor_method -> forbidden torch.Tensor.contiguous
# use: relu
# use: launch_relu
torch.Tensor.contiguous = torch.Tensor.exp  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: patch_clock_in_forward -> forbidden time.perf_counter
import time
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        time.perf_counter = lambda: 0.0  # BAD
        return launch_relu(x)

# case: patch_with_setattr -> forbidden torch.cuda.synchronize
# use: relu
# use: launch_relu
setattr(torch.cuda, "synchronize", lambda *a: None)  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: patch_triton -> forbidden triton.runtime.jit.JITFunction.run
# use: relu
# use: launch_relu
def fake(self, *args, **kwargs):
    args[1].copy_(args[0].exp())


triton.runtime.jit.JITFunction.run = fake  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: patch_kernel -> forbidden relu_kernel.run
# use: relu
# use: launch_relu
relu_kernel.run = lambda *a, **k: None  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: torch_function_override -> forbidden __torch_function__
# use: relu
# use: launch_relu
class Sneaky(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):  # BAD
        return func(*args, **(kwargs or {}))


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: forward_hook -> forbidden register_forward_hook
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_forward_hook(lambda m, i, o: o.softmax(-1))  # BAD

    def forward(self, x):
        return launch_relu(x)

# case: forward_replaced -> torch_compute torch.exp
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)


def other(self, x):
    return launch_relu(torch.exp(x))  # BAD


ModelNew.forward = other

# case: call_overridden -> torch_compute torch.exp
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __call__(self, x):
        return launch_relu(torch.exp(x))  # BAD

    def forward(self, x):
        return launch_relu(x)

# case: operator_of_own_class -> torch_compute torch.matmul
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

# case: generator_yields_compute -> torch_compute torch.exp
# use: relu
# use: launch_relu
def gen(x):
    yield torch.exp(x)  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(next(gen(x)))

# case: decorator_computes -> torch_compute softmax
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

# case: property_computes -> torch_compute torch.linalg.inv
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

# case: boolean_mask -> torch_compute <
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        y[y < 1] = 0  # BAD
        return y

# case: fancy_index_gather -> torch_compute index by a tensor
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, table, idx):
        return launch_relu(table[idx])  # BAD

# case: partial_sums_on_host -> torch_compute sum
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

# case: cache_by_pointer -> hard_coded cache by address
# use: relu
# use: launch_relu
CACHE = {}


class ModelNew(nn.Module):
    def forward(self, x):
        key = x.data_ptr()
        if key not in CACHE:  # BAD
            CACHE[key] = launch_relu(x)
        return CACHE[key]

# case: python_loop_over_elements -> torch_compute max
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        rows = [max(row) for row in x]  # BAD
        return launch_relu(torch.stack(rows))

# case: cuda_graph -> torch_compute torch.cuda.CUDAGraph
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        g = torch.cuda.CUDAGraph()  # BAD
        return launch_relu(x)

# case: vmap -> unresolved call
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(torch.vmap(torch.exp)(x))  # BAD

# case: star_import -> forbidden from torch import *
from torch import *  # BAD
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(exp(x))

# case: environment_switch -> forbidden os.environ
import os
os.environ["TRITON_INTERPRET"] = "1"  # BAD
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: frame_inspection -> forbidden f_back
import sys
# use: relu
# use: launch_relu
def caller(e):
    return e.tb_frame.f_back  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: class_made_at_run_time -> forbidden type
# use: relu
# use: launch_relu
Made = type("Made", (nn.Module,), {"forward": lambda self, x: x.exp()})  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: reads_files -> forbidden open
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        with open("/proc/self/maps") as f:  # BAD
            f.read()
        return launch_relu(x)

# case: result_kept_on_self -> hard_coded kept result
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = None

    def forward(self, x):
        if self.out is None:
            self.out = launch_relu(x)
        return self.out  # BAD

# case: result_kept_by_lru_cache -> hard_coded cached
import functools
# use: relu
# use: launch_relu
@functools.lru_cache(maxsize=None)
def cached(x):
    return launch_relu(x)


class ModelNew(nn.Module):
    def forward(self, x):
        return cached(x)  # BAD

# case: walrus -> torch_compute torch.exp
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(y := torch.exp(x))  # BAD

# case: default_argument -> torch_compute torch.exp
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

# case: class_attribute_function -> torch_compute torch.exp
# use: relu
# use: launch_relu
class Ops:
    run = torch.exp


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(Ops.run(x))  # BAD

# case: module_call_through_class -> torch_compute torch.nn.Module.__call__
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return launch_relu(nn.Module.__call__(self.fc, x))  # BAD

# case: partial_of_torch -> torch_compute torch.add
from functools import partial
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x, y):
        return launch_relu(partial(torch.add, x)(y))  # BAD

# case: keyword_function -> torch_compute torch.exp
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu((lambda **k: k["f"](k["x"]))(f=torch.exp, x=x))  # BAD

# case: out_argument -> torch_compute torch.add
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        out = launch_relu(x)
        torch.add(out, x, out=out)  # BAD
        return out

# case: in_place_method -> torch_compute add_
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        out = launch_relu(x)
        out.add_(x)  # BAD
        return out

# case: assigned_slice -> torch_compute exp
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        out = launch_relu(x)
        out[:] = x.exp()  # BAD
        return out

# case: match_statement -> torch_compute torch.exp
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        match x.ndim:
            case 1:
                x = torch.exp(x)  # BAD
            case _:
                pass
        return launch_relu(x)

# case: loop_break_binds_function -> torch_compute torch.exp
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

# case: getattr_hook_class -> torch_compute torch.exp
# use: relu
# use: launch_relu
class Lazy:
    def __getattr__(self, name):
        return torch.exp


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(Lazy().anything(x))  # BAD

# case: descriptor -> torch_compute *
# use: relu
# use: launch_relu
class Twice:
    def __get__(self, obj, owner):
        return obj.x * 2  # BAD


class Holder:
    y = Twice()


holder = Holder()


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: bool_method -> torch_compute exp
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

# case: context_manager_exit -> torch_compute exp
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

# case: exit_stack_callback -> torch_compute exp
import contextlib
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        out = launch_relu(x)
        with contextlib.ExitStack() as stack:
            stack.callback(lambda: out.copy_(x.exp()))  # BAD
        return out

# case: annotation_computes -> torch_compute exp
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        out = launch_relu(x)
        def f(a: out.copy_(x.exp())):  # BAD
            pass
        return out

# case: f_string_computes -> torch_compute exp
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        out = launch_relu(x)
        f"{out.copy_(x.exp())}"  # BAD
        return out

# case: heuristic_computes -> torch_compute exp
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

# case: pre_hook_computes -> torch_compute sin
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

# case: grid_function_computes -> torch_compute exp
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

# case: global_module_hook -> forbidden torch.nn.modules.module.register_module_forward_hook
# use: relu
# use: launch_relu
torch.nn.modules.module.register_module_forward_hook(lambda m, i, o: o.exp())  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: library_override -> forbidden torch.library.Library
# use: relu
# use: launch_relu
lib = torch.library.Library("aten", "IMPL")  # BAD
lib.impl("empty_like", lambda *a, **k: a[0].exp())


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: custom_op_computes -> torch_compute exp
# use: relu
# use: launch_relu
@torch.library.custom_op("mini::f", mutates_args=())
def f(x: torch.Tensor) -> torch.Tensor:
    return x.exp()  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(torch.ops.mini.f(x))

# case: custom_op_by_function -> torch_compute exp
# use: relu
# use: launch_relu
def f(x: torch.Tensor) -> torch.Tensor:
    return x.exp()  # BAD


op = torch.library.custom_op("mini::f", f, mutates_args=())


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(op(x))

# case: call_impl_overridden -> forbidden _call_impl
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def _call_impl(self, *args):  # BAD
        return args[0].exp()

    def forward(self, x):
        return launch_relu(x)

# case: look_alike_letters -> forbidden ｅｖａｌ
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(ｅｖａｌ("x"))  # BAD

# case: vars_lookup -> forbidden vars
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(vars(torch)["exp"](x))  # BAD

# case: frozen_dict_of_lambdas -> torch_compute softmax
# use: relu
# use: launch_relu
TABLE = dict(a=lambda t: t.softmax(-1))  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return TABLE.get("a", None)(launch_relu(x))

# case: namedtuple_holds_function -> torch_compute torch.exp
from collections import namedtuple
# use: relu
# use: launch_relu
Pair = namedtuple("Pair", "f n")


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(Pair(torch.exp, 1).f(x))  # BAD

# case: star_arguments -> torch_compute torch.matmul
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        args = [x, x]
        return launch_relu(torch.matmul(*args))  # BAD

# case: tensor_smuggled_in_exception -> torch_compute *
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        try:
            raise ValueError(x)
        except ValueError as e:
            y = e.args[0] * 2  # BAD
        return launch_relu(y)

# case: scalar_annotation_lies -> torch_compute *
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x: float = 1.0):
        return launch_relu(x * 2.0)  # BAD

# case: interpreted_function -> unresolved call
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        f = triton.runtime.interpreter.InterpretedFunction(lambda t: t)
        return launch_relu(f(x))  # BAD

# case: kernel_fn_called_on_host -> unresolved call
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(relu_kernel.fn(x, x, 1, 1))  # BAD

# case: recursion_hides_compute -> torch_compute torch.exp
# use: relu
# use: launch_relu
def walk(x, n):
    if n == 0:
        return torch.exp(x)  # BAD
    return walk(x, n - 1)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(walk(x, 3))

# case: reads_elements_one_by_one -> python_compute sum
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        values = [v.item() for v in x.flatten()]
        total = sum(values)  # BAD
        return launch_relu(torch.tensor(total))

# case: one_of_the_returns_is_constant -> hard_coded return
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        if x.sum is None:
            return launch_relu(x)
        if x.shape[1] > 7:
            return torch.ones((4, 4))  # BAD
        return launch_relu(x)
