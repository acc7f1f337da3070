"""Kernels of the corpus: reductions, scans, dot, and operations on a tensor's shape or order."""

import triton
import triton.language as tl
from corpus_case import case


@case("*fp32 *fp32 i32", BLOCK=1024)
@triton.jit
def softmax(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=-float("inf"))
    x = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * n + i, x / tl.sum(x, axis=0), mask=i < n)


@case("*fp16 *fp32 *i32", M=16, N=32)
@triton.jit
def reductions(x_ptr, out_ptr, int_ptr, M: tl.constexpr, N: tl.constexpr):
    r = tl.arange(0, M)
    c = tl.arange(0, N)
    x = tl.load(x_ptr + r[:, None] * N + c[None, :])
    tl.store(out_ptr + r, tl.sum(x, axis=1).to(tl.float32))
    tl.store(out_ptr + c, tl.max(x, axis=0) + tl.min(x, axis=0))
    tl.store(out_ptr, tl.sum(tl.sum(x, axis=0), axis=0) + tl.max(x))
    n = x.to(tl.int32)
    tl.store(int_ptr + c, tl.xor_sum(n, axis=0) + tl.sum(n, axis=0))
    tl.store(int_ptr + r[:, None], tl.max(n, axis=1, keep_dims=True))
    tl.store(int_ptr + r, tl.reduce_or(n, axis=1))


@case("*fp32 *i32 *fp32", M=8, N=64)
@triton.jit
def arg_reductions(x_ptr, index_ptr, value_ptr, M: tl.constexpr, N: tl.constexpr):
    r = tl.arange(0, M)
    x = tl.load(x_ptr + r[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(index_ptr + r, tl.argmax(x, axis=1))
    tl.store(index_ptr + M + r, tl.argmin(x, axis=1, tie_break_left=False))
    value, index = tl.max(x, axis=1, return_indices=True)
    tl.store(value_ptr + r, value)
    tl.store(index_ptr + 2 * M + r, index)


@triton.jit
def _welford(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
    delta = mean_b - mean_a
    count = count_a + count_b
    share = tl.where(count == 0.0, 0.0, count_b / count)
    return mean_a + delta * share, m2_a + m2_b + delta * delta * count_a * share, count


@case("*fp32 *fp32 i32", BLOCK=256)
@triton.jit
def welford(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask, other=0.0)
    mean, m2, count = tl.reduce((x, tl.zeros_like(x), mask.to(tl.float32)), 0, _welford)
    tl.store(out_ptr, mean)
    tl.store(out_ptr + 1, m2 / count)


@triton.jit
def _smaller_branch(a, b):
    if a < b:
        result = a
    else:
        result = b
    return result


@case("*i32 *i32", BLOCK=64)
@triton.jit
def branching_reduction(x_ptr, out_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(out_ptr, tl.reduce(x, 0, _smaller_branch))


@triton.jit
def _recurrence(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@case("*fp32 *fp32 *fp32", M=4, N=32)
@triton.jit
def scans(a_ptr, b_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(a_ptr + i)
    b = tl.load(b_ptr + i)
    _, h = tl.associative_scan((a, b), 1, _recurrence)
    h += tl.cumsum(a, axis=0) + tl.cumprod(b, axis=1, reverse=True)
    tl.store(out_ptr + i, h)


@case("*fp16 *fp16 *fp32 i32 i32 i32", BM=64, BN=32, BK=32)
@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a_ptrs = a_ptr + m[:, None] * K + k[None, :]
    b_ptrs = b_ptr + k[:, None] * N + n[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        a = tl.load(a_ptrs, mask=(m[:, None] < M) & (start + k[None, :] < K), other=0.0)
        b = tl.load(b_ptrs, mask=(start + k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc += tl.dot(a, b)
        a_ptrs += BK
        b_ptrs += BK * N
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


@case("*fp32 *fp16 *bf16 *i8 *fp8e4nv *fp8e5 *fp32 *i32 *fp64", S=32)
@triton.jit
def dots(f_ptr, h_ptr, b_ptr, i_ptr, e4_ptr, e5_ptr, out_ptr, int_ptr, d_ptr, S: tl.constexpr):
    i = tl.arange(0, S)[:, None] * S + tl.arange(0, S)[None, :]
    f = tl.load(f_ptr + i)
    acc = tl.dot(f, f, input_precision="tf32")
    acc = tl.dot(f, tl.trans(f), acc, input_precision="ieee")
    acc = tl.dot(f, f, acc, input_precision="tf32x3")
    h = tl.load(h_ptr + i)
    acc = tl.dot(h, h, acc)
    acc += tl.dot(h, h, out_dtype=tl.float16)
    b = tl.load(b_ptr + i)
    acc = tl.dot(b, b, acc)
    e4 = tl.load(e4_ptr + i)
    acc = tl.dot(e4, e4, acc, max_num_imprecise_acc=32)
    e5 = tl.load(e5_ptr + i)
    tl.store(out_ptr + i, tl.dot(e5, e5, acc))
    n = tl.load(i_ptr + i)
    tl.store(int_ptr + i, tl.dot(n, n))
    d = tl.load(d_ptr + i)
    tl.store(d_ptr + i, tl.dot(d, d))


@case("*bf16 *bf16 *fp32", S=16)
@triton.jit
def batched_dot(a_ptr, b_ptr, c_ptr, S: tl.constexpr):
    i = tl.arange(0, 4)[:, None, None] * S * S + tl.arange(0, S)[None, :, None] * S + tl.arange(0, S)[None, None, :]
    tl.store(c_ptr + i, tl.dot(tl.load(a_ptr + i), tl.load(b_ptr + i)))


@case("*u8 *u8 *u8 *fp8e4nv *fp32", capability=100, M=128, N=64, K=64)
@triton.jit
def scaled_dot(a_ptr, a_scale_ptr, b_scale_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    a = tl.load(a_ptr + m[:, None] * (K // 2) + tl.arange(0, K // 2)[None, :])
    b = tl.load(b_ptr + tl.arange(0, K)[:, None] * N + n[None, :])
    a_scale = tl.load(a_scale_ptr + m[:, None] * (K // 32) + tl.arange(0, K // 32)[None, :])
    b_scale = tl.load(b_scale_ptr + n[:, None] * (K // 32) + tl.arange(0, K // 32)[None, :])
    c = tl.dot_scaled(a, a_scale, "e2m1", b, b_scale, "e4m3")
    c = tl.dot_scaled(a, a_scale, "e2m1", b, None, "e4m3", acc=c)
    tl.store(c_ptr + m[:, None] * N + n[None, :], c)


@case("*fp32 *fp32", M=16, N=32)
@triton.jit
def shapes(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M * N)
    x = tl.load(x_ptr + i)
    y = tl.permute(tl.reshape(x, (M, 4, N // 4)), (2, 0, 1))
    z = tl.ravel(y) + tl.view(tl.trans(tl.reshape(x, (M, N))), (M * N,))
    z = z + tl.reshape(tl.expand_dims(x, 0), (M * N,), can_reorder=True)
    tl.store(out_ptr + i, z)
    tl.store(out_ptr + tl.arange(0, 2 * M * N), tl.cat(z, x, can_reorder=True))


@case("*fp16 *fp16 *fp16", BLOCK=64)
@triton.jit
def joins(a_ptr, b_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i)
    b = tl.load(b_ptr + i)
    tl.store(out_ptr + tl.arange(0, 2 * BLOCK), tl.interleave(a, b))
    even, odd = tl.split(tl.reshape(tl.join(a, b), (BLOCK, 2)))
    one, two = tl.split(tl.reshape(even + odd, (BLOCK // 2, 2)))
    tl.store(out_ptr + tl.arange(0, BLOCK // 2), one * two)


@case("*fp32 *i32", M=4, N=16)
@triton.jit
def sorting(x_ptr, n_ptr, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(x_ptr + i, tl.sort(tl.load(x_ptr + i)))
    n = tl.load(n_ptr + i)
    tl.store(n_ptr + i, tl.flip(tl.sort(n, descending=True), 1))
    tl.store(x_ptr + tl.arange(0, M)[:, None] * 4 + tl.arange(0, 4)[None, :], tl.topk(tl.load(x_ptr + i), 4))


@case("*i32 *i32 i32", BLOCK=256, BINS=32)
@triton.jit
def histogram(x_ptr, out_ptr, n, BLOCK: tl.constexpr, BINS: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    counts = tl.histogram(x, BINS)
    counts += tl.histogram(x, BINS, mask=i < n)
    tl.store(out_ptr + tl.arange(0, BINS), counts)


@case("*fp32 *i32 *fp32", M=8, N=32)
@triton.jit
def gathers(x_ptr, index_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + i)
    index = tl.load(index_ptr + i)
    tl.store(out_ptr + i, tl.gather(x, index, 1) + tl.gather(x, index.to(tl.int64), 0))


@case("*fp32 *fp32 *fp32 i32 fp32", BLOCK=1024)
@triton.jit
def layer_norm(x_ptr, w_ptr, out_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + row * n + i, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n
    x = tl.where(mask, x - mean, 0.0)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / n + eps)
    tl.store(out_ptr + row * n + i, x * scale * tl.load(w_ptr + i, mask=mask), mask=mask)


@case("*fp16 *fp16 *fp16 *fp16 i32 fp32", BM=32, BN=32, D=32)
@triton.jit
def attention(q_ptr, k_ptr, v_ptr, out_ptr, n, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + m[:, None] * D + d[None, :], mask=m[:, None] < n, other=0.0)
    largest = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in tl.range(0, (tl.program_id(0) + 1) * BM, BN, num_stages=3):
        j = start + tl.arange(0, BN)
        k = tl.load(k_ptr + j[None, :] * D + d[:, None], mask=j[None, :] < n, other=0.0)
        s = tl.where(m[:, None] >= j[None, :], tl.dot(q, k) * scale, -1.0e6)
        new = tl.maximum(largest, tl.max(s, 1))
        p = tl.math.exp2(s - new[:, None])
        alpha = tl.math.exp2(largest - new)
        v = tl.load(v_ptr + j[:, None] * D + d[None, :], mask=j[:, None] < n, other=0.0)
        acc = tl.dot(p.to(tl.float16), v, acc * alpha[:, None])
        total = total * alpha + tl.sum(p, 1)
        largest = new
    tl.store(out_ptr + m[:, None] * D + d[None, :], (acc / total[:, None]).to(tl.float16), mask=m[:, None] < n)
