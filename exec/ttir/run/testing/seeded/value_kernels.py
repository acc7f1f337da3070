"""Bad elements that something depends on: of memory that nobody wrote, of divisions by zero, of wide shifts."""

import triton
import triton.language as tl

from seeded_case import seeded

PADDED = ["1,1,1 u256@160 z256 i40", "1,1,1 u256@256 z256 i64", "1,1,1 u256@4 z256 i1", "1,1,1 m64%50 z256 i33"]


@seeded("unwritten", "*i32 *i32 i32", ["1,1,1 u256@160 z256 i40"], PADDED, BLOCK=64)
@triton.jit
def sum_with_padding(x_ptr, y_ptr, n, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)  # planted
    if not BAD:
        x = tl.where(i < n, x, 0)
    tl.store(y_ptr, tl.sum(x, 0))


@seeded("unwritten", "*i32 *i32 i32", ["1,1,1 z256 u256@0 i64"],
        ["1,1,1 z256 u256@0 i64", "1,1,1 z256 u256@0 i10", "1,1,1 z256 u256@100 i64"], BLOCK=64)
@triton.jit
def accumulate_into_empty(x_ptr, y_ptr, n, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask)
    if BAD:
        x += tl.load(y_ptr + i, mask=mask)  # planted
    tl.store(y_ptr + i, x, mask=mask)


@seeded("unwritten", "*i32 *i32 i32", ["1,1,1 u256@160 z256 i40"], PADDED, BLOCK=64)
@triton.jit
def copy_of_padding(x_ptr, y_ptr, n, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)  # planted
    mask = i < n
    if BAD:
        mask = i < n + 1
    tl.store(y_ptr + i, x, mask=mask)


@seeded("unwritten", "*i32 *i32 *i32 i32", ["1,1,1 u256@160 m64%64 z256 i40"],
        ["1,1,1 u256@160 m64%64 z256 i40", "1,1,1 u256@256 m64%64 z256 i64", "1,1,1 u256@8 m64%64 z256 i2"], BLOCK=64)
@triton.jit
def unwritten_index(index_ptr, x_ptr, y_ptr, n, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, BLOCK)
    index = tl.load(index_ptr + i)  # planted
    if BAD:
        x = tl.load(x_ptr + index)
    else:
        x = tl.load(x_ptr + index, mask=i < n, other=0)
    tl.store(y_ptr + i, x, mask=i < n)


@seeded("unwritten", "*i32 *i32 i32", ["1,1,1 u8@4 z256 i1"],
        ["1,1,1 u8@4 z256 i0", "1,1,1 u8@8 z256 i1", "1,1,1 u8@4 z256 i0"],
        BLOCK=64)
@triton.jit
def branch_on_a_flag(flag_ptr, y_ptr, which, BLOCK: tl.constexpr):
    if tl.load(flag_ptr + which) == 0:  # planted
        tl.store(y_ptr + tl.arange(0, BLOCK), 1)


@seeded("unwritten", "*i32 *i32 i32", ["1,1,1 u8@4 z256 i1"],
        ["1,1,1 u8@4 z256 i0", "1,1,1 u8@8 z256 i1", "1,1,1 m9%9 z256 i7"],
        BLOCK=64)
@triton.jit
def bound_of_a_loop(count_ptr, y_ptr, which, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.int32)
    end = tl.load(count_ptr + which)  # planted
    for k in range(0, end):
        total += k
    tl.store(y_ptr + tl.arange(0, BLOCK), total)


@seeded("unwritten", "*i32 *i32 i32", ["1,1,1 z256 u256@160 i64"],
        ["1,1,1 z256 u256@160 i40", "1,1,1 z256 u256@256 i64", "1,1,1 z256 u256@4 i1"], BLOCK=64)
@triton.jit
def atomics_on_empty(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.atomic_add(y_ptr + i, x, mask=i < n)  # planted


@seeded("unwritten", "*fp32 *fp32 *fp32 i32", ["1,1,1 u1024@640 z1024 z1024 i10"],
        ["1,1,1 u1024@640 z1024 z1024 i10", "1,1,1 u1024@1024 z1024 z1024 i16",
        "1,1,1 u1024@64 z1024 z1024 i1"], BLOCK=16)
@triton.jit
def rows_of_a_product(a_ptr, b_ptr, c_ptr, rows, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, BLOCK)[:, None]
    j = tl.arange(0, BLOCK)[None, :]
    a = tl.load(a_ptr + i * BLOCK + j)  # planted
    c = tl.dot(a, tl.load(b_ptr + i * BLOCK + j))
    mask = i < rows
    if BAD:
        mask = i < rows + 1
    tl.store(c_ptr + i * BLOCK + j, c, mask=mask & (j < BLOCK))


@seeded("unwritten", "*fp32 *fp32 *fp32 i32", ["1,1,1 z1024 u1024@640 z1024 i10"],
        ["1,1,1 z1024 u1024@640 z1024 i10", "1,1,1 z1024 u1024@1024 z1024 i16",
        "1,1,1 z1024 u1024@64 z1024 i1"], BLOCK=16)
@triton.jit
def depth_of_a_product(a_ptr, b_ptr, c_ptr, depth, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, BLOCK)[:, None]
    j = tl.arange(0, BLOCK)[None, :]
    b = tl.load(b_ptr + i * BLOCK + j)  # planted
    if not BAD:
        b = tl.where(i < depth, b, 0.0)
    tl.store(c_ptr + i * BLOCK + j, tl.dot(tl.load(a_ptr + i * BLOCK + j), b))


@seeded("unwritten", "*i32 *i32 i32", ["1,1,1 u256@160 z256 i40"], PADDED, BLOCK=64)
@triton.jit
def sums_up_to_each(x_ptr, y_ptr, n, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)  # planted
    sums = tl.cumsum(x, 0)
    if BAD:
        tl.store(y_ptr + i, sums)
    else:
        tl.store(y_ptr + i, sums, mask=i < n)


@seeded("unwritten", "*i32 *i32 i32", ["1,1,1 u256@160 z256 i40"], PADDED, BLOCK=64)
@triton.jit
def largest_and_where(x_ptr, y_ptr, n, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if BAD:
        x = tl.load(x_ptr + i)  # planted
    else:
        x = tl.load(x_ptr + i, mask=i < n, other=-1)
    largest, where = tl.max(x, 0, return_indices=True)
    tl.store(y_ptr, largest)
    tl.store(y_ptr + 1, where)


DIVISORS = ["1,1,1 m64%9 z256 i60", "1,1,1 m64%1 z256 i60", "1,1,1 m64%64 z256 i7", "1,1,1 m64%2 z256 i64"]


@seeded("division", "*i32 *i32 i32", ["1,1,1 m64%9 z256 i60"], DIVISORS, BLOCK=64)
@triton.jit
def quotient(x_ptr, y_ptr, n, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    y = n // x  # planted
    if not BAD:
        y = tl.where(x != 0, y, 0)
    tl.store(y_ptr + i, y)


@seeded("division", "*i32 *i32 i32", ["1,1,1 m64%9 z256 i60"], DIVISORS, BLOCK=64)
@triton.jit
def remainder_in_an_address(x_ptr, y_ptr, n, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    at = i % x & BLOCK - 1  # planted
    if BAD:
        y = tl.load(x_ptr + at)
    else:
        y = tl.load(x_ptr + at, mask=x > 0, other=0)
    tl.store(y_ptr + i, y)


@seeded("division", "*i32 *i32 i32", ["2,1,1 m64%9 z256 i0"],
        ["2,1,1 m64%9 z256 i3", "1,1,1 m64%9 z256 i1", "2,1,1 m64%9 z256 i-7"],
        BLOCK=32)
@triton.jit
def size_of_a_group(x_ptr, y_ptr, group, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    row = p // group * group + p % group  # planted
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + (row & 1) * BLOCK + i, tl.load(x_ptr + i))


@seeded("division", "*i32 *i32 i32", ["1,1,1 m64%9 z256 i0"],
        ["1,1,1 m64%9 z256 i3", "1,1,1 m64%9 z256 i64", "1,1,1 m64%9 z256 i1"],
        BLOCK=64)
@triton.jit
def turns_of_a_loop(x_ptr, y_ptr, step, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.load(x_ptr + i)
    turns = (BLOCK + step - 1) // step  # planted
    for k in range(0, turns):
        total += k
    tl.store(y_ptr + i, total)


@seeded("division", "*i32 *i32 i32", ["1,1,1 m64%9 z256 i60"], DIVISORS, BLOCK=64)
@triton.jit
def unsigned_remainder(x_ptr, y_ptr, n, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i).to(tl.uint32, bitcast=True)
    y = i.to(tl.uint32) % x  # planted
    mask = x > 0
    if BAD:
        mask = x >= 0
    tl.store(y_ptr + i, y, mask=mask)


@seeded("division", "*i32 *i64 i32", ["1,1,1 m64%9 z512 i60"],
        ["1,1,1 m64%9 z512 i60", "1,1,1 m64%1 z512 i60", "1,1,1 m64%64 z512 i7"],
        BLOCK=64)
@triton.jit
def quotient_of_64_bits(x_ptr, y_ptr, n, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i).to(tl.int64)
    if not BAD:
        x = tl.maximum(x, 1)
    tl.store(y_ptr + i, n.to(tl.int64) * 3 // x)  # planted


@seeded("division", "*i32 *i32 i32", ["1,1,1 m64%9 z256 i60"], DIVISORS, BLOCK=64)
@triton.jit
def quotient_in_a_mask(x_ptr, y_ptr, n, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    few = n // x < 10  # planted
    if not BAD:
        few = few & (x > 0)
    tl.store(y_ptr + i, 1, mask=few)


@seeded("division", "*i32 *i32 i32", ["1,1,1 m64%9 z256 i60"], DIVISORS, BLOCK=64)
@triton.jit
def sum_of_quotients(x_ptr, y_ptr, n, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    y = n // x  # planted
    if not BAD:
        y = y * (x > 0).to(tl.int32)
    tl.store(y_ptr, tl.sum(y, 0))


@seeded("division", "*i32 *i32 i32", ["1,1,1 m64%9 z256 i60"], DIVISORS, BLOCK=64)
@triton.jit
def quotient_of_masked_lanes(x_ptr, y_ptr, n, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask, other=0) + mask.to(tl.int32)
    y = i // x  # planted
    if BAD:
        tl.store(y_ptr + i, y)
    else:
        tl.store(y_ptr + i, y, mask=mask)


SHIFTS = ["1,1,1 m64%40 z256 i20", "1,1,1 m64%32 z256 i32", "1,1,1 m64%64 z256 i1", "1,1,1 m64%3 z256 i31"]


@seeded("shift", "*i32 *i32 i32", ["1,1,1 m64%40 z256 i20"], SHIFTS, BLOCK=64)
@triton.jit
def power_of_two(x_ptr, y_ptr, n, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    y = 1 << x  # planted
    if not BAD:
        y = tl.where(x < 32, y, 0)
    tl.store(y_ptr + i, y)


@seeded("shift", "*i32 *i32 i32", ["1,1,1 m64%40 z256 i0"],
        ["1,1,1 m64%40 z256 i1", "1,1,1 m64%40 z256 i31", "1,1,1 m64%9 z256 i32"],
        BLOCK=64)
@triton.jit
def highest_bits(x_ptr, y_ptr, bits, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i) >> 32 - bits)  # planted


@seeded("shift", "*i8 *i8 i32", ["1,1,1 z64 z64 i9"],
        ["1,1,1 z64 z64 i7", "1,1,1 z64 z64 i0", "1,1,1 z64 z64 i3"], BLOCK=64)
@triton.jit
def shift_of_bytes(x_ptr, y_ptr, by, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(y_ptr + i, x << by.to(tl.int8))  # planted


@seeded("shift", "*i32 *i32 i32", ["1,1,1 m64%40 z256 i40"],
        ["1,1,1 m64%40 z256 i4", "1,1,1 m64%9 z256 i0", "1,1,1 m64%9 z256 i31"],
        BLOCK=64)
@triton.jit
def unsigned_shift(x_ptr, y_ptr, by, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i).to(tl.uint32, bitcast=True)
    tl.store(y_ptr + i, x >> by.to(tl.uint32))  # planted


@seeded("shift", "*i32 *i64 i32", ["1,1,1 m64%40 z512 i30"],
        ["1,1,1 m64%40 z512 i24", "1,1,1 m64%9 z512 i55", "1,1,1 m64%64 z512 i0"],
        BLOCK=64)
@triton.jit
def shift_of_64_bits(x_ptr, y_ptr, more, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i).to(tl.int64)
    tl.store(y_ptr + i, x << x + more)  # planted


@seeded("shift", "*i32 *i32 i32", ["1,1,1 m64%40 z256 i20"], SHIFTS, BLOCK=64)
@triton.jit
def shift_in_a_sum(x_ptr, y_ptr, n, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    y = i << x  # planted
    if not BAD:
        y = tl.where(x < 32, y, 0)
    tl.store(y_ptr, tl.sum(y, 0))
