"""Threads of one program that touch one location without a barrier."""

import triton
import triton.language as tl

from seeded_case import seeded

ROWS = ["1,1,1 m64%50 z256 z256", "2,1,1 m128%50 z512 z512", "5,1,1 m320%50 z1280 z1280"]


@seeded("race", "*i32 *i32 *i32", ["1,1,1 m64%50 z256 z256"], ROWS, BLOCK=64)
@triton.jit
def neighbour_in_scratch(x_ptr, tmp_ptr, y_ptr, BLOCK: tl.constexpr, BAD: tl.constexpr):
    first = tl.program_id(0) * BLOCK
    i = tl.arange(0, BLOCK)
    tl.store(tmp_ptr + first + i, tl.load(x_ptr + first + i) + 1)
    if not BAD:
        tl.debug_barrier()
    z = tl.load(tmp_ptr + first + (i + 1) % BLOCK)  # planted
    tl.store(y_ptr + first + i, z)


@seeded("race", "*i32 *i32 *i32", ["1,1,1 m64%50 z256 z256"], ROWS, BLOCK=64)
@triton.jit
def reverse_in_scratch(x_ptr, tmp_ptr, y_ptr, BLOCK: tl.constexpr, BAD: tl.constexpr):
    first = tl.program_id(0) * BLOCK
    i = tl.arange(0, BLOCK)
    tl.store(tmp_ptr + first + i, tl.load(x_ptr + first + i) * 2)
    if not BAD:
        tl.debug_barrier()
    tl.store(y_ptr + first + i, tl.load(tmp_ptr + first + BLOCK - 1 - i))  # planted


@seeded("race", "*i32 *i32 *i32", ["1,1,1 m64%50 z256 z256"], ["1,1,1 m64%50 z256 z256", "1,1,1 m64%3 z256 z256",
        "1,1,1 m64%1 z256 z256"], BLOCK=8)
@triton.jit
def transpose_in_scratch(x_ptr, tmp_ptr, y_ptr, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, BLOCK)[:, None]
    j = tl.arange(0, BLOCK)[None, :]
    tl.store(tmp_ptr + i * BLOCK + j, tl.load(x_ptr + i * BLOCK + j) - 1)
    if not BAD:
        tl.debug_barrier()
    x = tl.load(tmp_ptr + j * BLOCK + i)  # planted
    tl.store(y_ptr + i * BLOCK + j, x)


@seeded("race", "*i32 *i32", ["1,1,1 m64%50 z256"],
        ["1,1,1 m64%50 z256", "3,1,1 m192%50 z768", "1,1,1 m64%2 z256"], BLOCK=64)
@triton.jit
def two_elements_one_place(x_ptr, y_ptr, BLOCK: tl.constexpr, BAD: tl.constexpr):
    first = tl.program_id(0) * BLOCK
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + first + i)
    at = i
    if BAD:
        at = i // 2
    tl.store(y_ptr + first + at, x)  # planted


@seeded("race", "*i32 *i32", ["1,1,1 m64%50 z256"],
        ["1,1,1 m64%50 z256", "1,1,1 m64%7 z256", "1,1,1 m64%64 z256"], BLOCK=64)
@triton.jit
def all_rows_to_one(x_ptr, y_ptr, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, 8)[:, None]
    j = tl.arange(0, 8)[None, :]
    x = tl.load(x_ptr + i * 8 + j)
    if BAD:
        tl.store(y_ptr + i * 0 + j, x)  # planted
    else:
        tl.store(y_ptr + i * 8 + j, x)


@seeded("race", "*i32 *i32", ["1,1,1 m64%50 z256"],
        ["1,1,1 m64%50 z256", "1,1,1 m64%7 z256", "1,1,1 m64%64 z256"], BLOCK=64)
@triton.jit
def prefix_sums_by_doubling(x_ptr, y_ptr, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i))
    step = 1
    while step < BLOCK:
        if not BAD:
            tl.debug_barrier()
        left = tl.load(y_ptr + i - step, mask=i >= step, other=0)  # planted
        own = tl.load(y_ptr + i)
        if not BAD:
            tl.debug_barrier()
        tl.store(y_ptr + i, own + left)
        step *= 2


@seeded("race", "*i32 *i32 *i32", ["1,1,1 m64%50 z256 z256"], ROWS, BLOCK=64)
@triton.jit
def one_element_of_scratch(x_ptr, tmp_ptr, y_ptr, BLOCK: tl.constexpr, BAD: tl.constexpr):
    first = tl.program_id(0) * BLOCK
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + first + i)
    tl.store(tmp_ptr + first + i, x * x)
    if not BAD:
        tl.debug_barrier()
    pivot = tl.load(tmp_ptr + first + 5)  # planted
    tl.store(y_ptr + first + i, x - pivot)


@seeded("race", "*i32 *i32 *i32", ["1,1,1 m64%50 z256 z256"], ROWS, BLOCK=64)
@triton.jit
def number_for_all_elements(x_ptr, tmp_ptr, y_ptr, BLOCK: tl.constexpr, BAD: tl.constexpr):
    first = tl.program_id(0) * BLOCK
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + first + i)
    tl.store(tmp_ptr + first, tl.sum(x, 0))
    if not BAD:
        tl.debug_barrier()
    total = tl.load(tmp_ptr + first + i // BLOCK)  # planted
    tl.store(y_ptr + first + i, x - total)


@seeded("race", "*i32 *i32 *i32", ["1,1,1 m64%50 z256 z260"],
        ["1,1,1 m64%50 z256 z260", "1,1,1 m64%9 z256 z260", "1,1,1 m64%64 z256 z260"], BLOCK=64)
@triton.jit
def two_stores_of_neighbours(x_ptr, tmp_ptr, y_ptr, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(y_ptr + i, x + 1)
    if not BAD:
        tl.debug_barrier()
    tl.store(y_ptr + i + 1, x + 100)  # planted


@seeded("race", "*i32 *i32 *i32", ["1,1,1 m65%50 z256 z256"],
        ["1,1,1 m65%50 z256 z256", "1,1,1 m65%9 z256 z256", "1,1,1 m65%64 z256 z256"], BLOCK=64)
@triton.jit
def shift_in_place(x_ptr, tmp_ptr, y_ptr, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i + 1)
    if not BAD:
        tl.debug_barrier()
    tl.store(x_ptr + i, x)  # planted


@seeded("race", "*i32 *i32", ["1,1,1 m64%9 z256"],
        ["1,1,1 m64%9 z256", "1,1,1 m64%1 z256", "1,1,1 m64%64 z256"], BLOCK=64)
@triton.jit
def bins_that_are_not_zero_yet(x_ptr, bins_ptr, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(bins_ptr + i, x * 0)
    if not BAD:
        tl.debug_barrier()
    tl.atomic_add(bins_ptr + x, 1, sem="relaxed")  # planted


@seeded("race", "*i32 *i32 *i32", ["1,1,1 m64%9 z256 z256"],
        ["1,1,1 m64%9 z256 z256", "1,1,1 m64%1 z256 z256", "1,1,1 m64%64 z256 z256"], BLOCK=64)
@triton.jit
def bins_that_are_not_full_yet(x_ptr, bins_ptr, y_ptr, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(bins_ptr + tl.load(x_ptr + i), 1, sem="relaxed")
    if not BAD:
        tl.debug_barrier()
    tl.store(y_ptr + i, tl.load(bins_ptr + i))  # planted


@seeded("race", "*i32 *i32 *i32", ["1,1,1 m64%50 z256 z32"],
        ["1,1,1 m64%50 z256 z32", "1,1,1 m64%9 z256 z32", "1,1,1 m64%64 z256 z32"], BLOCK=8)
@triton.jit
def tile_then_row(x_ptr, tmp_ptr, y_ptr, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, BLOCK)[:, None]
    j = tl.arange(0, BLOCK)[None, :]
    tl.store(tmp_ptr + i * BLOCK + j, tl.load(x_ptr + i * BLOCK + j) + 7)
    if not BAD:
        tl.debug_barrier()
    k = tl.arange(0, BLOCK)
    row = tl.load(tmp_ptr + 3 * BLOCK + k)  # planted
    tl.store(y_ptr + k, row)
