# case: not_python -> parse_error syntax
def forward(x:  # BAD
    return x +

# case: modulo_without_operand -> parse_error syntax
x = (offsets // 4) %  # BAD
y = 1

# case: no_kernel_at_all -> no_kernel triton.jit
class ModelNew(nn.Module):
    def forward(self, x):
        return F.avg_pool2d(x, kernel_size=3, stride=None, padding=0)

# case: kernel_in_a_string -> no_kernel triton.jit
CODE = """
@triton.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pass
"""


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x)

# case: no_model -> no_model ModelNew
# use: relu
class Model(nn.Module):
    def forward(self, x):
        return x

# case: cpp_extension -> forbidden torch.utils.cpp_extension.load_inline
from torch.utils.cpp_extension import load_inline  # BAD
# use: relu
# use: launch_relu
ext = load_inline(name="e", cpp_sources="torch::Tensor f(torch::Tensor x) { return x.relu(); }", functions=["f"])


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(ext.f(x))

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

# case: dunder_import -> forbidden __import__
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(__import__("torch").exp(x))  # BAD

# case: ctypes -> forbidden ctypes
import ctypes  # BAD
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        ctypes.memset(x.data_ptr(), 0, 4)
        return launch_relu(x)

# case: subprocess -> forbidden subprocess.run
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

# case: load_inline_cuda -> forbidden torch.utils.cpp_extension.load_inline
# use: relu
# use: launch_relu
from torch.utils.cpp_extension import load_inline  # BAD

mod = load_inline(name="m", cpp_sources="torch::Tensor f(torch::Tensor x){return x.relu();}", functions=["f"])


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return mod.f(x)

# case: dlpack_cupy -> forbidden cupy
# use: relu
# use: launch_relu
import cupy as cp  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.from_dlpack(cp.exp(cp.from_dlpack(x)))

# case: base64_exec -> forbidden exec
# use: relu
# use: launch_relu
import base64

exec(base64.b64decode("cmV0dXJu").decode())  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: dunder_import_again -> forbidden __import__
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return __import__("torch").softmax(launch_relu(x), -1)  # BAD

# case: os_exit -> forbidden os._exit
# use: relu
# use: launch_relu
import os


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        os._exit(0)  # BAD

# case: socket_channel -> forbidden socket
# use: relu
# use: launch_relu
import socket  # BAD

s = socket.socket()


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: multiprocessing -> forbidden torch.multiprocessing
# use: relu
# use: launch_relu
import torch.multiprocessing as mp  # BAD

mp.spawn(print)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: builtins_eval_lookup -> forbidden __builtins__
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return __builtins__["eval"]("torch.tanh")(launch_relu(x))  # BAD

# case: marshal_code -> forbidden marshal
# use: relu
# use: launch_relu
import marshal  # BAD
import types

f = types.FunctionType(marshal.loads(b''), globals())


class ModelNew(nn.Module):
    def forward(self, x):
        return f(launch_relu(x))

# case: jax_bridge -> forbidden jax.numpy
# use: relu
# use: launch_relu
import jax.numpy as jnp  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.from_dlpack(jnp.tanh(jnp.from_dlpack(x)))

# case: numba_cuda -> forbidden numba.cuda
# use: relu
# use: launch_relu
from numba import cuda  # BAD


@cuda.jit
def k(x):
    x[0] = 1


class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        k[1, 1](y)
        return y

# case: cupy_raw_kernel -> forbidden cupy
# use: relu
# use: launch_relu
import cupy  # BAD

k = cupy.RawKernel('', 'k')


class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        k((1,), (1,), (y.data_ptr(),))
        return y

# case: os_kill_parent -> forbidden os.kill
# use: relu
# use: launch_relu
import os

os.kill(os.getppid(), 9)  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: subprocess_nvidia_smi -> forbidden subprocess
# use: relu
# use: launch_relu
import subprocess  # BAD

subprocess.run(['true'])


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: ctypes_memmove -> forbidden ctypes
# use: relu
# use: launch_relu
import ctypes  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        ctypes.memmove(y.data_ptr(), x.data_ptr(), 4)
        return y

# case: exec_in_class_body -> forbidden exec
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    exec('def forward(self, x):\n    return x.tanh()')  # BAD

    def forward(self, x):
        return launch_relu(x)

# case: libtriton_load -> forbidden triton._C.libtriton.interpreter
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

# case: import_used_in_a_default -> forbidden ctypes
import ctypes as c  # BAD
# use: relu
# use: launch_relu
def poke(x, lib=c.CDLL):
    return launch_relu(x)


class ModelNew(nn.Module):
    def forward(self, x):
        return poke(x)

# case: name_is_made_main -> forbidden exec
# use: relu
# use: launch_relu
__name__ = "__main__"
if __name__ == "__main__":
    exec("torch.allclose = lambda *a, **k: True")  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: other_side_of_the_guard -> forbidden exec
# use: relu
# use: launch_relu
if __name__ == "__main__":
    pass
else:
    exec("torch.allclose = lambda *a, **k: True")  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: guard_by_the_checkers_name -> forbidden subprocess
import subprocess  # BAD
# use: relu
# use: launch_relu
if __name__ == "candidate":
    subprocess.run(["true"])


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: name_in_a_loop_is_made_main -> forbidden eval
# use: relu
# use: launch_relu
for __name__ in ("__main__",):
    pass
if __name__ == "__main__":
    eval("setattr(torch, 'allclose', print)")  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: builtin_eval_beside_a_method -> forbidden eval
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def eval(self):
        return self

    def forward(self, x):
        launch_relu(x)
        return eval("torch.relu(x)")  # BAD

# case: imported_module_of_the_system -> forbidden subprocess
import importlib
# use: relu
# use: launch_relu
s = importlib.import_module("subprocess")  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

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

# case: matmul_operator -> torch_compute @
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, a, b):
        return launch_relu(a @ b)  # BAD

# case: decoy_kernel -> torch_compute torch.softmax
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        scratch = torch.empty_like(x)
        relu_kernel[(1,)](x, scratch, x.numel(), BLOCK=64)
        return torch.softmax(x, dim=-1)  # BAD

# case: torch_c_namespace -> torch_compute torch._C._nn.gelu
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(torch._C._nn.gelu(x))  # BAD

# case: walrus -> torch_compute torch.exp
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(y := torch.exp(x))  # BAD

# case: assigned_slice -> torch_compute exp
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        out = launch_relu(x)
        out[:] = x.exp()  # BAD
        return out

# case: f_string_computes -> torch_compute exp
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        out = launch_relu(x)
        f"{out.copy_(x.exp())}"  # BAD
        return out

# case: result_times_zero -> torch_compute torch.nn.functional.layer_norm
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = F.layer_norm(x, x.shape[-1:])  # BAD
        return y + 0 * launch_relu(x)

# case: kernel_result_overwritten -> torch_compute torch.relu
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        out = launch_relu(x)
        out.copy_(torch.relu(x))  # BAD
        return out

# case: einsum_matmul -> torch_compute torch.einsum
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, a, b):
        return launch_relu(torch.einsum("ij,jk->ik", a, b))  # BAD

# case: out_argument_again -> torch_compute torch.exp
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        torch.exp(x, out=y)  # BAD
        return y

# case: torch_c_nn -> torch_compute torch._C._nn.linear
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x, w, b):
        return launch_relu(torch._C._nn.linear(x, w, b))  # BAD

# case: kernel_times_zero_plus_copy -> torch_compute torch.nn.functional.gelu
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

# case: kernel_on_dummy_tensor -> torch_compute torch.log_softmax
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        dummy = torch.zeros(1, device=x.device)
        launch_relu(dummy)
        return torch.log_softmax(x, dim=1)  # BAD

# case: walrus_and_ternary_torch -> torch_compute sigmoid
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return y if (y := x.sigmoid()) is not None else launch_relu(x)  # BAD

# case: lstm_call -> torch_compute torch.nn.LSTM
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(8, 8)

    def forward(self, x):
        y, (h, c) = self.rnn(x)  # BAD
        return launch_relu(y)

# case: jit_function_from_other_module -> torch_compute torch.tanh
from mykernels import jit


@jit
def k(x_ptr, n):
    pass


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.tanh(x)  # BAD

# case: data_setter -> torch_compute torch.softmax
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        y.data = torch.softmax(x, -1)  # BAD
        return y

# case: set_storage -> torch_compute softmax
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        y.set_(x.softmax(-1))  # BAD
        return y

# case: swap_tensors -> torch_compute softmax
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        z = x.softmax(-1)  # BAD
        torch.utils.swap_tensors(y, z)
        return y

# case: matmul_in_slice_assignment -> torch_compute @
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        y[:] = x @ x  # BAD
        return y

# case: slots_and_class_attribute_tensor -> torch_compute tanh
# use: relu
# use: launch_relu
class Holder:
    value = None


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        Holder.value = x.tanh()  # BAD
        return Holder.value

# case: matmul_then_kernel_epilogue_only -> torch_compute matmul
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 4))

    def forward(self, x):
        h = x.matmul(self.w)  # BAD
        return launch_relu(h)

# case: multihead_attention_module -> torch_compute torch.nn.MultiheadAttention
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.mha = nn.MultiheadAttention(8, 2)

    def forward(self, x):
        y, _ = self.mha(x, x, x)  # BAD
        return launch_relu(y)

# case: softmax_method_before_kernel -> torch_compute softmax
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x.float().softmax(dim=-1))  # BAD

# case: kernel_on_clone_result_dropped -> torch_compute torch.nn.functional.relu
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        tmp = launch_relu(x.clone())
        del tmp
        return F.relu(x)  # BAD

# case: jit_kernel_fn_called_directly -> torch_compute relu
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        relu_kernel.fn(x, y, 4, 64)
        return y.copy_(x.relu())  # BAD

# case: named_tuple_gives_the_other -> torch_compute torch.relu
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

# case: jit_in_a_function_nobody_calls -> torch_compute torch.relu
def build():
    return triton.jit(lambda x: x)


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x)  # BAD

# case: kernel_built_in_init_torch_returned -> torch_compute torch.relu
def build():
    @triton.jit
    def kern(x, y, n, B: tl.constexpr):
        o = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(y + o, tl.maximum(tl.load(x + o, mask=o < n), 0.0), mask=o < n)

    return kern


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kern = build()

    def forward(self, x):
        y = torch.empty_like(x)
        self.kern[(1,)](x, y, x.numel(), B=256)
        return torch.relu(x)  # BAD

# case: repeat_of_a_computed -> torch_compute torch.exp
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(torch.repeat_interleave(torch.exp(x), 2, 0))  # BAD

# case: never_launched -> kernel_not_used relu_kernel
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        return x.clamp(min=0)

# case: never_launched_and_compute -> kernel_not_used relu_kernel
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        return x.clamp(min=0)

# case: chain_map_is_alive -> kernel_not_used relu_kernel
# use: relu
import collections


class ModelNew(nn.Module):
    def forward(self, x):
        d = {'f': torch.empty_like}
        chain = collections.ChainMap(d)
        d['f'] = torch.relu
        return chain['f'](x)

# case: attribute_of_a_library_object -> kernel_not_used relu_kernel
# use: relu
import contextlib


class ModelNew(nn.Module):
    def forward(self, x):
        s = contextlib.ExitStack()
        s.f = torch.relu
        return s.f(x)
