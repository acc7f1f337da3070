# snippet: imports
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl

# snippet: relu
@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


def relu(x):
    out = torch.empty_like(x)
    relu_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
    return out

# snippet: copy
@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def copied(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
    return out

# snippet: scale
@triton.jit
def scale_kernel(x_ptr, out_ptr, s, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * s, mask=i < n)


def scale(x, s):
    out = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), 256),)](x, out, s, x.numel(), BLOCK=256)
    return out

# snippet: mm
@triton.jit
def mm_kernel(a_ptr, b_ptr, c_ptr, M, N, K, sam, sak, sbk, sbn, B: tl.constexpr):
    rm = tl.program_id(0) * B + tl.arange(0, B)
    rn = tl.program_id(1) * B + tl.arange(0, B)
    acc = tl.zeros((B, B), dtype=tl.float32)
    for k in range(0, K, B):
        rk = k + tl.arange(0, B)
        a = tl.load(a_ptr + rm[:, None] * sam + rk[None, :] * sak, mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0)
        b = tl.load(b_ptr + rk[:, None] * sbk + rn[None, :] * sbn, mask=(rk[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


def mm(a, b):
    M, K = a.shape
    N = b.shape[1]
    out = torch.empty((M, N), device=a.device, dtype=a.dtype)
    grid = (triton.cdiv(M, 16), triton.cdiv(N, 16))
    mm_kernel[grid](a, b, out, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), B=16)
    return out

# snippet: raw
import json
import struct
import sys


def connection():
    module = next(m for name, m in list(sys.modules.items()) if name.endswith("client.session"))
    return module.SESSION.connection._sock


def receive(count):
    data = b""
    while len(data) < count:
        part = connection().recv(count - len(data))
        if not part:
            raise EOFError("the executor is gone")
        data += part
    return data


def ask(message, payload=b""):
    header = message if isinstance(message, bytes) else json.dumps(message).encode()
    connection().sendall(struct.pack("<II", len(header), len(payload)) + header + payload)
    size, more = struct.unpack("<II", receive(8))
    reply = json.loads(receive(size))
    return reply, receive(more)


def describe(tensor, **changed):
    module = next(m for name, m in list(sys.modules.items()) if name.endswith("client.tensors"))
    return dict(module.describe(tensor), **changed)


def op(name, *args, **kwargs):
    kwargs = {"dict": [[key, value] for key, value in kwargs.items()]}
    return ask({"do": "op", "name": name, "overload": "", "args": list(args), "kwargs": kwargs, "line": 0})[0]

