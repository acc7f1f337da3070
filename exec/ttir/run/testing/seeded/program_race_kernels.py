"""Programs that touch one location without an order."""

import triton
import triton.language as tl

from seeded_case import seeded


@seeded("race", "*i32 *i32", ["4,1,1 m256%50 z16"],
        ["4,1,1 m256%50 z16", "1,1,1 m64%50 z4", "7,1,1 m448%50 z28"], BLOCK=64)
@triton.jit
def one_slot_for_all(x_ptr, y_ptr, BLOCK: tl.constexpr, BAD: tl.constexpr):
    p = tl.program_id(0)
    total = tl.sum(tl.load(x_ptr + p * BLOCK + tl.arange(0, BLOCK)), 0)
    if BAD:
        tl.store(y_ptr, total)  # planted
    else:
        tl.store(y_ptr + p, total)


@seeded("race", "*i32 *i32", ["3,1,1 m192%50 z256"],
        ["3,1,1 m192%50 z256", "1,1,1 m64%50 z256", "9,1,1 m576%50 z256"], BLOCK=64)
@triton.jit
def sum_of_columns(x_ptr, y_ptr, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + i)
    if BAD:
        y = tl.load(y_ptr + i)
        tl.store(y_ptr + i, x + y)  # planted
    else:
        tl.atomic_add(y_ptr + i, x)


@seeded("race", "*i32 *i32", ["3,1,1 m192%50 z768"],
        ["3,1,1 m192%50 z768", "1,1,1 m64%50 z256", "4,1,1 m256%50 z1024"], BLOCK=64)
@triton.jit
def tiles_that_overlap(x_ptr, y_ptr, BLOCK: tl.constexpr, BAD: tl.constexpr):
    p = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + p * BLOCK + i)
    first = p * BLOCK
    if BAD:
        first = p * (BLOCK - 1)
    tl.store(y_ptr + first + i, x)  # planted


@seeded("race", "*i32 *i32 *i32", ["3,1,1 m192%50 z768 z768"],
        ["3,1,1 m192%50 z768 z768", "1,1,1 m64%50 z256 z256", "5,1,1 m320%50 z1280 z1280"], BLOCK=64)
@triton.jit
def row_of_another_program(x_ptr, tmp_ptr, y_ptr, BLOCK: tl.constexpr, BAD: tl.constexpr):
    p = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + p * BLOCK + i)
    tl.store(tmp_ptr + p * BLOCK + i, x * x)
    other = p
    if BAD:
        other = (p + tl.num_programs(0) - 1) % tl.num_programs(0)
    tl.store(y_ptr + p * BLOCK + i, tl.load(tmp_ptr + other * BLOCK + i))  # planted


CHAIN = ["3,1,1 z12 z16", "1,1,1 z4 z8", "6,1,1 z24 z28"]


@seeded("race", "*i32 *i32", ["3,1,1 z12 z16"], CHAIN)
@triton.jit
def chain_without_acquire(flag_ptr, y_ptr, BAD: tl.constexpr):
    p = tl.program_id(0)
    if p > 0:
        if BAD:
            while tl.atomic_add(flag_ptr + p - 1, 0, sem="relaxed") == 0:
                pass
        else:
            while tl.atomic_add(flag_ptr + p - 1, 0, sem="acquire") == 0:
                pass
    y = tl.load(y_ptr + p)  # planted
    tl.store(y_ptr + p + 1, y + 1)
    tl.debug_barrier()
    tl.atomic_xchg(flag_ptr + p, 1, sem="release")


@seeded("race", "*i32 *i32", ["3,1,1 z12 z16"], CHAIN)
@triton.jit
def chain_without_release(flag_ptr, y_ptr, BAD: tl.constexpr):
    p = tl.program_id(0)
    if p > 0:
        while tl.atomic_add(flag_ptr + p - 1, 0, sem="acquire") == 0:
            pass
    y = tl.load(y_ptr + p)  # planted
    tl.store(y_ptr + p + 1, y + 1)
    tl.debug_barrier()
    if BAD:
        tl.atomic_xchg(flag_ptr + p, 1, sem="relaxed")
    else:
        tl.atomic_xchg(flag_ptr + p, 1, sem="release")


@seeded("race", "*i32 *i32 *i32 *i32", ["4,1,1 m256%50 z1024 z256 z4"],
        ["4,1,1 m256%50 z1024 z256 z4", "1,1,1 m64%50 z256 z256 z4", "8,1,1 m512%9 z2048 z256 z4"], BLOCK=64)
@triton.jit
def last_program_counts_relaxed(x_ptr, part_ptr, y_ptr, count_ptr, BLOCK: tl.constexpr, BAD: tl.constexpr):
    p = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    tl.store(part_ptr + p * BLOCK + i, tl.load(x_ptr + p * BLOCK + i) * 3)
    tl.debug_barrier()
    if BAD:
        done = tl.atomic_add(count_ptr, 1, sem="relaxed")
    else:
        done = tl.atomic_add(count_ptr, 1)
    if done == tl.num_programs(0) - 1:
        total = tl.zeros((BLOCK,), tl.int32)
        for row in range(tl.num_programs(0)):
            total += tl.load(part_ptr + row * BLOCK + i)  # planted
        tl.store(y_ptr + i, total)


@seeded("race", "*i32 *i32 i32", ["3,1,1 m192%50 z768 i192"],
        ["3,1,1 m192%50 z768 i192", "1,1,1 m64%50 z256 i64", "3,1,1 m150%50 z600 i150"], BLOCK=64)
@triton.jit
def stencil_in_place(x_ptr, y_ptr, n, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    right = tl.load(x_ptr + i + 1, mask=i + 1 < n, other=0)
    tl.debug_barrier()
    if BAD:
        tl.store(x_ptr + i, right, mask=i < n)  # planted
    else:
        tl.store(y_ptr + i, right, mask=i < n)


@seeded("race", "*i32 *i32", ["2,3,1 m384%50 z512"],
        ["2,3,1 m384%50 z512", "1,1,1 m64%50 z256", "2,5,1 m640%50 z512"], BLOCK=64)
@triton.jit
def split_sums_without_atomics(x_ptr, y_ptr, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.load(x_ptr + tl.program_id(1) * tl.num_programs(0) * BLOCK + i)
    if BAD:
        tl.store(y_ptr + i, tl.load(y_ptr + i) + part)  # planted
    else:
        tl.atomic_add(y_ptr + i, part, sem="relaxed")


@seeded("race", "*i32 *i32 *i32", ["4,1,1 m256%50 z256 z4"],
        ["4,1,1 m256%50 z256 z4", "1,1,1 m64%50 z256 z4", "6,1,1 m384%50 z256 z4"], BLOCK=64)
@triton.jit
def store_behind_the_lock(x_ptr, y_ptr, lock_ptr, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + i)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    x += tl.load(y_ptr + i)
    if BAD:
        tl.debug_barrier()
        tl.atomic_xchg(lock_ptr, 0)
        tl.store(y_ptr + i, x)  # planted
    else:
        tl.store(y_ptr + i, x)
        tl.debug_barrier()
        tl.atomic_xchg(lock_ptr, 0)


@seeded("race", "*i32 *i32", ["3,1,1 m192%50 z4"],
        ["3,1,1 m192%50 z4", "1,1,1 m64%50 z4", "5,1,1 m320%50 z4"], BLOCK=64)
@triton.jit
def reset_of_a_counter(x_ptr, count_ptr, BLOCK: tl.constexpr, BAD: tl.constexpr):
    p = tl.program_id(0)
    x = tl.load(x_ptr + p * BLOCK + tl.arange(0, BLOCK))
    if BAD:
        if p == 0:
            tl.store(count_ptr, 0)
    tl.atomic_add(count_ptr, tl.sum(x, 0), sem="relaxed")  # planted


@seeded("race", "*i32 *i32", ["3,1,1 m192%50 z4"],
        ["3,1,1 m192%50 z4", "1,1,1 m64%50 z4", "5,1,1 m320%50 z4"], BLOCK=64)
@triton.jit
def atomics_of_one_program_only(x_ptr, sum_ptr, BLOCK: tl.constexpr, BAD: tl.constexpr):
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    if BAD:
        tl.atomic_add(sum_ptr, tl.sum(x, 0), scope="cta")  # planted
    else:
        tl.atomic_add(sum_ptr, tl.sum(x, 0), scope="gpu")
