"""Kernels of the corpus that bench/exec:ttir_bench measures beside vector_add and softmax."""

import triton
import triton.language as tl
from corpus_case import case


@case("*fp16 *fp16 *fp32 i32 i32 i32", BM=64, BN=64, BK=32, GROUP=8)
@triton.jit
def grouped_matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr
):
    rows = tl.cdiv(M, BM)
    columns = tl.cdiv(N, BN)
    first = tl.program_id(0) // (GROUP * columns) * GROUP
    size = min(rows - first, GROUP)
    within = tl.program_id(0) % (GROUP * columns)
    m = (first + within % size) * BM + tl.arange(0, BM)
    n = within // size * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a_ptrs = a_ptr + (m % M)[:, None] * K + k[None, :]
    b_ptrs = b_ptr + k[:, None] * N + (n % N)[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for i in range(0, tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=k[None, :] < K - i * BK, other=0.0)
        b = tl.load(b_ptrs, mask=k[:, None] < K - i * BK, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BK
        b_ptrs += BK * N
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))
