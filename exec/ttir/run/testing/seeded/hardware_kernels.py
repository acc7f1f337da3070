"""Arguments that are no multiples of what their declaration says, and descriptors that the hardware refuses."""

import triton
import triton.language as tl

from seeded_case import seeded


@seeded("divisibility", "*fp32:16 *fp32 i32", ["1,1,1 v512@4+256 z256 i64"],
        ["1,1,1 v512@16+256 z256 i64", "1,1,1 z256 z256 i64", "1,1,1 z256 v512@4+256 i3"], BLOCK=64)
@triton.jit
def address_of_numbers(x_ptr, y_ptr, n, BLOCK: tl.constexpr):  # planted
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


@seeded("divisibility", "*i8 *i8:16 i32", ["1,1,1 z64 v128@1+64 i64"],
        ["1,1,1 v128@1+64 z64 i64", "1,1,1 z64 v128@32+64 i64", "1,1,1 z64 z64 i7"], BLOCK=64)
@triton.jit
def address_of_bytes(x_ptr, y_ptr, n, BLOCK: tl.constexpr):  # planted
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


@seeded("divisibility", "*fp32 *fp32 i32:16", ["1,1,1 z256 z256 i40"],
        ["1,1,1 z256 z256 i48", "1,1,1 z256 z256 i0", "1,1,1 z256 z256 i64"], BLOCK=64)
@triton.jit
def number_of_elements(x_ptr, y_ptr, n, BLOCK: tl.constexpr):  # planted
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


@seeded("divisibility", "*fp32 *fp32 i64:16", ["2,1,1 z512 z512 i63"],
        ["2,1,1 z512 z512 i64", "1,1,1 z512 z512 i16", "2,1,1 z512 z512 i48"], BLOCK=64)
@triton.jit
def stride_of_rows(x_ptr, y_ptr, stride, BLOCK: tl.constexpr):  # planted
    i = tl.arange(0, BLOCK)
    at = tl.program_id(0) * stride + i
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=i < stride), mask=i < stride)


DESCRIPTORS = ["1,1,1 z4096 z1024 i32", "1,1,1 v4096@16+2048 z1024 i16", "1,1,1 z4096 z1024 i20"]


@seeded("descriptor", "*fp32 *fp32 i64", ["1,1,1 v4096@4+2048 z1024 i32"], DESCRIPTORS, capability=90, BLOCK=16)
@triton.jit
def descriptor_of_an_odd_address(x_ptr, y_ptr, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.make_tensor_descriptor(x_ptr, [16, 16], [stride, 1], [BLOCK, BLOCK])  # planted
    tl.store(y_ptr + i[:, None] * BLOCK + i[None, :], x.load([0, 0]))


@seeded("descriptor", "*fp32 *fp32 i64", ["1,1,1 z4096 z1024 i33"], DESCRIPTORS, capability=90, BLOCK=16)
@triton.jit
def descriptor_of_odd_rows(x_ptr, y_ptr, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.make_tensor_descriptor(x_ptr, [16, 16], [stride, 1], [BLOCK, BLOCK])  # planted
    tl.store(y_ptr + i[:, None] * BLOCK + i[None, :], x.load([0, 0]))


@seeded("descriptor", "*fp16 *fp16 i64", ["1,1,1 z4096 z512 i20"],
        ["1,1,1 z4096 z512 i24", "1,1,1 z4096 z512 i16", "1,1,1 v4096@32+4000 z512 i64"], capability=90, BLOCK=16)
@triton.jit
def descriptor_to_store_halves(x_ptr, y_ptr, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    y = tl.load(y_ptr + i[:, None] * BLOCK + i[None, :])
    x = tl.make_tensor_descriptor(x_ptr, [16, 16], [stride, 1], [BLOCK, BLOCK])  # planted
    x.store([0, 0], y)


@seeded("descriptor", "*fp32 *fp32 i64", ["1,1,1 z4096 z1024 i18"], ["1,1,1 z4096 z1024 i32", "1,1,1 z4096 z1024 i16",
        "1,1,1 v4096@16+4080 z1024 i20"], capability=90, BLOCK=16)
@triton.jit
def descriptor_of_three_axes(x_ptr, y_ptr, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.make_tensor_descriptor(x_ptr, [2, 16, 16], [stride * 16, stride, 1], [1, BLOCK, BLOCK])  # planted
    tl.store(y_ptr + i[:, None] * BLOCK + i[None, :], x.load([1, 0, 0]).reshape(BLOCK, BLOCK))


@seeded("descriptor", "*fp32 *fp32 i32", ["1,1,1 z4096 z1024 i1"], ["1,1,1 z4096 z1024 i0", "1,1,1 z4096 z1024 i4",
        "1,1,1 z4096 z1024 i64"], capability=90, BLOCK=16)
@triton.jit
def descriptor_behind_an_offset(x_ptr, y_ptr, first, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.make_tensor_descriptor(x_ptr + first, [16, 16], [16, 1], [BLOCK, BLOCK])  # planted
    tl.store(y_ptr + i[:, None] * BLOCK + i[None, :], x.load([0, 0]))
