"""Kernels of the corpus whose programs share memory: without an order, by a lock, by a counter of finished programs."""

import triton
import triton.language as tl

from corpus_case import case


@case("*fp32 *fp32 i32", BLOCK=64)
@triton.jit
def lost_updates(x_ptr, sum_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * n + i, mask=i < n)
    total = tl.load(sum_ptr + i, mask=i < n)
    tl.store(sum_ptr + i, total + x, mask=i < n)


@case("*fp32 *fp32 i32", BLOCK=64)
@triton.jit
def atomic_updates(x_ptr, sum_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * n + i, mask=i < n)
    tl.atomic_add(sum_ptr + i, x, mask=i < n, sem="relaxed")


@case("*fp32 *fp32 *fp32", BLOCK=64)
@triton.jit
def row_before(x_ptr, row_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    before = (row + tl.num_programs(0) - 1) % tl.num_programs(0)
    tl.store(row_ptr + row * BLOCK + i, tl.load(x_ptr + row * BLOCK + i) * 2)
    tl.store(out_ptr + row * BLOCK + i, tl.load(row_ptr + before * BLOCK + i))


@case("*fp32 *fp32 *i32 i32", BLOCK=64)
@triton.jit
def locked_updates(x_ptr, sum_ptr, lock_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * n + i, mask=i < n)
    while tl.atomic_cas(lock_ptr, 0, 1, sem="acquire") != 0:
        pass
    tl.store(sum_ptr + i, tl.load(sum_ptr + i, mask=i < n) + x, mask=i < n)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0, sem="release")


@case("*fp32 *fp32 *i32", BLOCK=64)
@triton.jit
def last_program(x_ptr, part_ptr, count_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = part_ptr + tl.program_id(0) * BLOCK + i
    tl.store(at, tl.load(x_ptr + tl.program_id(0) * BLOCK + i) * 2)
    tl.debug_barrier()
    done = tl.atomic_add(count_ptr, 1, sem="acq_rel")
    if done == tl.num_programs(0) - 1:
        total = tl.zeros((BLOCK,), tl.float32)
        for row in range(tl.num_programs(0)):
            total += tl.load(part_ptr + row * BLOCK + i)
        tl.store(x_ptr + i, total)


@case("*fp32 *fp32 *i32", BLOCK=64)
@triton.jit
def last_program_relaxed(x_ptr, part_ptr, count_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = part_ptr + tl.program_id(0) * BLOCK + i
    tl.store(at, tl.load(x_ptr + tl.program_id(0) * BLOCK + i) * 2)
    tl.debug_barrier()
    done = tl.atomic_add(count_ptr, 1, sem="relaxed")
    if done == tl.num_programs(0) - 1:
        total = tl.zeros((BLOCK,), tl.float32)
        for row in range(tl.num_programs(0)):
            total += tl.load(part_ptr + row * BLOCK + i)
        tl.store(x_ptr + BLOCK + i, total)
