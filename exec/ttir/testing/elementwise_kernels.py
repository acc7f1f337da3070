"""Kernels of the corpus: elementwise operations, casts, masks, mathematics, libdevice, assembly, random numbers."""

import triton
import triton.language as tl
from corpus_case import case
from triton.language.extra import libdevice


@case("*fp32 *fp32 *fp32 i32", BLOCK=1024)
@triton.jit
def vector_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask, other=0.0)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@case("*fp16 *bf16 *fp32 i32 fp32 fp64 i1", BLOCK=128)
@triton.jit
def float_arithmetic(a_ptr, b_ptr, out_ptr, n, scale, wide, flag, BLOCK: tl.constexpr):
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (i < n) & flag
    a = tl.load(a_ptr + i, mask, other=float("-inf"))
    b = tl.load(b_ptr + i, mask, other=float("nan"))
    x = a.to(tl.float32) * scale - b / 3.0
    x = tl.where(x != x, float("inf"), -x)
    x = tl.maximum(x, 0.1) + tl.minimum(x, b, propagate_nan=tl.PropagateNan.ALL)
    x = tl.clamp(x, -1.0, 1e30) + tl.fma(x, x, x)
    y = (x.to(tl.float64) * wide) % 7.5
    tl.store(out_ptr + i, y.to(tl.float32), mask=mask)


@case("*i8 *i16 *i32 *i64 *u32 i64 i32", BLOCK=256)
@triton.jit
def integer_arithmetic(a, b, c, d, e, big, small, BLOCK: tl.constexpr):
    i = tl.program_id(2).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(a + i).to(tl.int32) * 3 + tl.load(b + i)
    y = tl.load(c + i) // 7 + x % small
    z = tl.load(d + i) ^ (big << 3) | (y.to(tl.int64) >> 2) & -1
    u = tl.load(e + i)
    u = (u // 5 + u % 9) >> 3
    w = tl.umulhi(u, u) + tl.maximum(u, 17)
    tl.store(c + i, tl.abs(y) + tl.minimum(x, -2147483648))
    tl.store(d + i, z + tl.num_programs(1), mask=(z >= -9223372036854775807) & (y != 0))
    tl.store(e + i, ~w)
    tl.store(a + i, (x > y).to(tl.int8))


@case("*fp32 *i32", BLOCK=64)
@triton.jit
def casts(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    total = x.to(tl.int32) + x.to(tl.uint8).to(tl.int32) + x.to(tl.int32, bitcast=True)
    total += x.to(tl.float16).to(tl.int16, bitcast=True).to(tl.int32)
    total += (x.to(tl.bfloat16) + 1).to(tl.int64).to(tl.int32)
    total += total.to(tl.int1).to(tl.int32) + total.to(tl.uint32, bitcast=True).to(tl.float32).to(tl.int32)
    total += x.to(tl.float16, fp_downcast_rounding="rtz").to(tl.int32)
    total += total.to(tl.float64).to(tl.uint32).to(tl.uint64).to(tl.float16).to(tl.int32)
    tl.store(out_ptr + i, total)


@case("*fp32 *fp8e4nv *fp8e5 *fp16", BLOCK=64)
@triton.jit
def fp8_casts(x_ptr, a_ptr, b_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(a_ptr + i, x.to(tl.float8e4nv))
    tl.store(b_ptr + i, x.to(tl.float8e5, fp_downcast_rounding="rtz"))
    y = tl.load(a_ptr + i).to(tl.float16) + tl.load(b_ptr + i).to(tl.float32).to(tl.float16)
    tl.store(out_ptr + i, y + x.to(tl.float16).to(tl.float8e4nv).to(tl.float16))
    tl.store(a_ptr + i, x.to(tl.int8).to(tl.float8e4nv, bitcast=True))


@case("*fp16 *fp8e4b15 *fp32", capability=80, BLOCK=64)
@triton.jit
def fp8_b15_casts(x_ptr, a_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(a_ptr + i, tl.load(x_ptr + i).to(tl.float8e4b15))
    tl.store(out_ptr + i, tl.load(a_ptr + i).to(tl.float32))


@case("*fp32 *fp32 *fp32", BLOCK=128)
@triton.jit
def mathematics(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    y = tl.load(y_ptr + i)
    z = tl.exp(x) + tl.exp2(x) + tl.log(x) + tl.log2(x) + tl.sin(x) + tl.cos(x) + tl.sqrt(x) + tl.rsqrt(x)
    z += tl.erf(x) + tl.floor(x) + tl.ceil(x) + tl.abs(x) + tl.sigmoid(x) + tl.softmax(x)
    z += tl.sqrt_rn(y) + tl.div_rn(x, y) + tl.fdiv(x, y)
    tl.store(out_ptr + i, z)


@case("*fp32 *fp64 *i32", BLOCK=128)
@triton.jit
def library_calls(x_ptr, y_ptr, n_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    y = tl.load(y_ptr + i)
    n = tl.load(n_ptr + i)
    x = libdevice.tanh(x) + libdevice.pow(x, 2.5) + libdevice.fast_expf(x) + libdevice.atan2(x, x)
    x = x + libdevice.rint(x) + libdevice.float2int_rz(x).to(tl.float32) + libdevice.isnan(x).to(tl.float32)
    tl.store(x_ptr + i, x + libdevice.ffs(n).to(tl.float32) + libdevice.clz(n).to(tl.float32))
    tl.store(y_ptr + i, libdevice.lgamma(y) + libdevice.copysign(y, y))


@case("*i32 *fp32 *fp32", BLOCK=256)
@triton.jit
def inline_assembly(a_ptr, b_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i)
    b = tl.load(b_ptr + i)
    c, d = tl.inline_asm_elementwise(
        asm="""
        {
            // Quotes and brackets: "%x" }
            mov.b32 $0, $8;    mov.b32 $4, $12;
            mov.b32 $1, $9;    mov.b32 $5, $13;
            mov.b32 $2, $10;   mov.b32 $6, $14;
            mov.b32 $3, $11;   mov.b32 $7, $15;
        }
        """,
        constraints="=r,=r,=r,=r,=f,=f,=f,=f,r,r,r,r,f,f,f,f",
        args=[a, b],
        dtype=(tl.int32, tl.float32),
        is_pure=True,
        pack=4,
    )
    clock = tl.inline_asm_elementwise(
        "mov.u32 $0, %smid;", "=r", [], dtype=tl.int32, is_pure=False, pack=1
    )
    e = tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [d], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(out_ptr + i, e + c.to(tl.float32) + clock)


@case("*fp32 i32 fp32", BLOCK=512)
@triton.jit
def dropout(x_ptr, seed, p, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, i) > p
    x = tl.load(x_ptr + i)
    tl.store(x_ptr + i, tl.where(keep, x / (1 - p), 0.0))


@case("*fp32 *i32 i64", BLOCK=128)
@triton.jit
def random_numbers(x_ptr, y_ptr, seed, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.randn(seed, i))
    a, b, c, d = tl.randint4x(seed, i)
    tl.store(y_ptr + i, a ^ b ^ c ^ d)


@case("*fp32 *fp32 i32 i32 i32", M=16, N=64)
@triton.jit
def rows_and_columns(x_ptr, out_ptr, stride, rows, columns, M: tl.constexpr, N: tl.constexpr):
    r = tl.program_id(0) * M + tl.arange(0, M)[:, None]
    c = tl.arange(0, N)[None, :]
    mask = (r < rows) & (c < columns)
    x = tl.load(
        x_ptr + r * stride + c, mask=mask, other=1.0, cache_modifier=".cg", eviction_policy="evict_first"
    )
    x = tl.where(r > c, x, -1.0) + tl.broadcast_to(tl.arange(0, N)[None, :].to(tl.float32), (M, N))
    tl.store(out_ptr + r * stride + c, x, mask=mask, cache_modifier=".cs", eviction_policy="evict_last")


@case("*fp32 *fp32 i32")
@triton.jit
def scalars(x_ptr, out_ptr, n):
    x = tl.load(x_ptr + n, volatile=True)
    y = tl.load(x_ptr, mask=n > 3, other=2.0)
    z = tl.exp(x) * y + tl.math.fma(x, y, 0.5) if n % 2 == 0 else x
    tl.store(out_ptr, z)


@case("*fp32 *fp32 i32", BLOCK=128)
@triton.jit
def hints(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    tl.assume(n > 0)
    n = tl.multiple_of(n, 16)
    i = tl.max_contiguous(tl.multiple_of(n + tl.arange(0, BLOCK), 16), 16)
    tl.store(out_ptr + i, tl.load(x_ptr + i))
    tl.debug_barrier()
    tl.store(x_ptr + i, tl.load(out_ptr + i))


@case("*i64 *fp32", BLOCK=32)
@triton.jit
def pointer_tables(table_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    p = tl.load(table_ptr + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    q = tl.load(table_ptr + i).to(tl.pointer_type(tl.float32))
    address = out_ptr.to(tl.int64)
    tl.store(out_ptr + i, tl.load(p + i) + tl.load(q) + address)
    tl.store(out_ptr.to(tl.pointer_type(tl.int32), bitcast=True) + i, i)


@triton.jit
def _swap_pair(a, b):
    return b, a + 1


@case("*i32 *i32", BLOCK=128)
@triton.jit
def mapped(a_ptr, b_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.map_elementwise(_swap_pair, tl.load(a_ptr + i), tl.load(b_ptr + i))
    tl.store(a_ptr + i, a)
    tl.store(b_ptr + i, b)
