"""Accesses outside of an argument's storage, and outside of the view that it is."""

import triton
import triton.language as tl

from seeded_case import seeded

VECTORS = ["1,1,1 z256 z256 i64", "2,1,1 z400 z400 i100", "3,1,1 z520 z520 i130", "2,1,1 z508 z508 i127"]


@seeded("bounds", "*i32 *i32 i32", ["2,1,1 z400 z400 i100"], VECTORS, BLOCK=64)
@triton.jit
def store_without_mask(x_ptr, y_ptr, n, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    if BAD:
        tl.store(y_ptr + i, x)  # planted
    else:
        tl.store(y_ptr + i, x, mask=i < n)


@seeded("bounds", "*i32 *i32 i32", ["2,1,1 z400 z400 i100"], VECTORS, BLOCK=64)
@triton.jit
def load_without_mask(x_ptr, y_ptr, n, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if BAD:
        x = tl.load(x_ptr + i)  # planted
    else:
        x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, x * 2, mask=i < n)


@seeded("bounds", "*i32 *i32 i32", ["2,1,1 z400 z400 i100"], VECTORS, BLOCK=64)
@triton.jit
def one_too_many(x_ptr, y_ptr, n, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if BAD:
        mask = i <= n
    else:
        mask = i < n
    x = tl.load(x_ptr + i, mask=mask)  # planted
    tl.store(y_ptr + i, x, mask=mask)


@seeded("bounds", "*i32 *i32 i32", ["1,1,1 z256 z256 i64"], VECTORS, BLOCK=64)
@triton.jit
def before_the_first(x_ptr, y_ptr, n, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    if BAD:
        left = tl.load(x_ptr + i - 1, mask=mask, other=0)  # planted
    else:
        left = tl.load(x_ptr + i - 1, mask=mask & (i > 0), other=0)
    tl.store(y_ptr + i, left, mask=mask)


@seeded("bounds", "*i32 *i32 i32 i32", ["3,1,1 z360 z360 i3 i30"],
        ["3,1,1 z360 z360 i3 i30", "5,1,1 z640 z640 i5 i32", "1,1,1 z4 z4 i1 i1"], BLOCK=32)
@triton.jit
def rows_for_columns(x_ptr, y_ptr, rows, columns, BLOCK: tl.constexpr, BAD: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + j, mask=j < columns)
    at = y_ptr + row * columns + j
    if BAD:
        at = y_ptr + row + j * (rows + columns)
    tl.store(at, x, mask=j < columns)  # planted


@seeded("bounds", "*i32 *i32 *i32 i32", ["1,1,1 m64%100 z128 z256 i32"],
        ["1,1,1 m64%100 z128 z256 i32", "1,1,1 m64%30 z120 z256 i30", "1,1,1 m64%1 z4 z256 i1"], BLOCK=64)
@triton.jit
def index_of_a_table(index_ptr, x_ptr, y_ptr, n, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, BLOCK)
    index = tl.load(index_ptr + i)
    if BAD:
        x = tl.load(x_ptr + index)  # planted
    else:
        x = tl.load(x_ptr + index, mask=index < n, other=0)
    tl.store(y_ptr + i, x)


@seeded("bounds", "*i32 *i32 i32", ["1,1,1 z1024 z4 i256"],
        ["1,1,1 z1024 z4 i256", "1,1,1 z256 z4 i64", "1,1,1 z768 z4 i192"], BLOCK=64)
@triton.jit
def one_turn_too_many(x_ptr, y_ptr, n, BLOCK: tl.constexpr, BAD: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.int32)
    end = n
    if BAD:
        end = n + BLOCK
    for first in range(0, end, BLOCK):
        total += tl.load(x_ptr + first + tl.arange(0, BLOCK))  # planted
    tl.store(y_ptr, tl.sum(total, 0))


@seeded("bounds", "*i32 *i32 i32 i32", ["1,1,1 z400 z1024 i10 i10"],
        ["1,1,1 z400 z1024 i10 i10", "1,1,1 z1024 z1024 i16 i16", "1,1,1 z60 z1024 i3 i5"], BLOCK=16)
@triton.jit
def block_without_check(x_ptr, y_ptr, rows, columns, BLOCK: tl.constexpr, BAD: tl.constexpr):
    block = tl.make_block_ptr(x_ptr, (rows, columns), (columns, 1), (0, 0), (BLOCK, BLOCK), (1, 0))
    if BAD:
        x = tl.load(block)  # planted
    else:
        x = tl.load(block, boundary_check=(0, 1), padding_option="zero")
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i[:, None] * BLOCK + i[None, :], x)


@seeded("bounds", "*i32 *i32 i32", ["1,1,1 m64%40 z128 i32"],
        ["1,1,1 m64%40 z128 i32", "1,1,1 m64%8 z128 i32", "1,1,1 m64%64 z256 i64"], BLOCK=64)
@triton.jit
def bins_of_a_histogram(x_ptr, bins_ptr, bins, BLOCK: tl.constexpr, BAD: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    if BAD:
        tl.atomic_add(bins_ptr + x, 1)  # planted
    else:
        tl.atomic_add(bins_ptr + x, 1, mask=x < bins)


@seeded("bounds", "*i32 *i32", ["4,1,1 z1024 z16"], ["4,1,1 z1024 z16", "1,1,1 z256 z4", "9,1,1 z2304 z36"], BLOCK=64)
@triton.jit
def slot_behind_the_last(x_ptr, y_ptr, BLOCK: tl.constexpr, BAD: tl.constexpr):
    p = tl.program_id(0)
    total = tl.sum(tl.load(x_ptr + p * BLOCK + tl.arange(0, BLOCK)), 0)
    if BAD:
        p += 1
    tl.store(y_ptr + p, total)  # planted


@seeded("bounds", "*i16 *i32", ["1,1,1 z128 z256"],
        ["1,1,1 z128 z256", "1,1,1 z130 z260", "1,1,1 z4096 z256"], BLOCK=64)
@triton.jit
def wider_than_it_is(x_ptr, y_ptr, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if BAD:
        x = tl.load(x_ptr.to(tl.pointer_type(tl.int32)) + i)  # planted
    else:
        x = tl.load(x_ptr + i).to(tl.int32)
    tl.store(y_ptr + i, x)


VIEWS = ["1,1,1 v512@0+160 z256 i40", "1,1,1 v512@128+256 z256 i64", "1,1,1 v512@256+4 z256 i1", "1,1,1 z160 z160 i40"]


@seeded("view", "*i32 *i32 i32", ["1,1,1 v512@128+160 z256 i40"], VIEWS, BLOCK=64)
@triton.jit
def load_behind_the_view(x_ptr, y_ptr, n, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if BAD:
        x = tl.load(x_ptr + i)  # planted
    else:
        x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, x, mask=i < n)


@seeded("view", "*i32 *i32 i32", ["1,1,1 v512@128+160 z256 i40"], VIEWS, BLOCK=64)
@triton.jit
def store_behind_the_view(x_ptr, y_ptr, n, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, BLOCK)
    y = tl.load(y_ptr + i, mask=i < n)
    if BAD:
        n += 1
    tl.store(x_ptr + i, y, mask=i < n)  # planted


@seeded("view", "*i32 *i32 i32", ["1,1,1 v512@128+160 z256 i40"], VIEWS, BLOCK=64)
@triton.jit
def load_before_the_view(x_ptr, y_ptr, n, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if BAD:
        x = tl.load(x_ptr + i - 1, mask=i < n)  # planted
    else:
        x = tl.load(x_ptr + i - 1, mask=(i < n) & (i > 0))
    tl.store(y_ptr + i, x, mask=i < n)


@seeded("view", "*i32 *i32 i32", ["1,1,1 v512@128+160 z256 i40"], VIEWS, BLOCK=64)
@triton.jit
def atomics_behind_the_view(x_ptr, y_ptr, n, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < n
    if BAD:
        mask = i < n * 2
    tl.atomic_max(x_ptr + i, 3, mask=mask)  # planted


@seeded("view", "*i32 *i32 i32", ["1,1,1 v1024@64+472 z96 i10"],
        ["1,1,1 v1024@64+472 z96 i10", "1,1,1 v1024@0+488 z96 i20", "1,1,1 v1024@512+32 z96 i10"], BLOCK=8)
@triton.jit
def rows_of_the_whole_matrix(x_ptr, y_ptr, stride, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if BAD:
        stride = stride * 2
        x = tl.load(x_ptr + i * stride)  # planted
    else:
        x = tl.load(x_ptr + i)
    tl.store(y_ptr + i, x)
