"""Inline assembly, code for single elements and what is rare in libdevice, executed and compared with torch."""

import unittest

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from testing import DeviceTest

SIZE = 256


@triton.jit
def unary_asm(x, y, ASM: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    r = tl.inline_asm_elementwise(ASM, "=f,f", [tl.load(x + i)], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(y + i, r)


@triton.jit
def unpack_asm(bytes_, x, whole, largest, B: tl.constexpr):
    i = tl.arange(0, B)
    as_int, as_float = tl.inline_asm_elementwise(
        """
        {
            // The four bytes one by one.
            .reg .b8 part<4>;
            mov.b32 {part0, part1, part2, part3}, $8;
            cvt.u32.u8 $0, part0;
            cvt.u32.u8 $1, part1;
            cvt.u32.u8 $2, part2;
            cvt.u32.u8 $3, part3;
        }
        cvt.rn.f32.s32 $4, $0;
        cvt.rn.f32.s32 $5, $1;
        cvt.rn.f32.s32 $6, $2;
        cvt.rn.f32.s32 $7, $3;
        max.f32 $4, $4, $9;
        max.f32 $5, $5, $10;
        max.f32 $6, $6, $11;
        max.f32 $7, $7, $12;
        """,
        "=r,=r,=r,=r,=r,=r,=r,=r,r,r,r,r,r",
        [tl.load(bytes_ + i), tl.load(x + i)],
        dtype=(tl.int32, tl.float32),
        is_pure=True,
        pack=4,
    )
    tl.store(whole + i, as_int)
    tl.store(largest + i, as_float)


@triton.jit
def predicate_asm(x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    r = tl.inline_asm_elementwise(
        """
        {
        .reg .pred big;
        .reg .f32 t;
        setp.gt.f32 big, $1, 0f3F000000;
        mov.f32 t, $1;
        @big mul.f32 t, t, 0f40000000;
        @!big add.f32 t, t, 1.0;
        selp.f32 $0, t, t, big;
        }
        """,
        "=f,f",
        [tl.load(x + i)],
        dtype=tl.float32,
        is_pure=True,
        pack=1,
    )
    tl.store(y + i, r)


@triton.jit
def half_pairs_asm(x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    r = tl.inline_asm_elementwise(
        "fma.rn.f16x2 $0, $1, $1, $1;", "=r,r", [tl.load(x + i)], dtype=tl.float16, is_pure=True, pack=2
    )
    tl.store(y + i, r)


@triton.jit
def bits_asm(x, y, ASM: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    tl.store(y + i, tl.inline_asm_elementwise(ASM, "=r,r", [v], dtype=tl.int32, is_pure=True, pack=1))


@triton.jit
def steps(v, w):
    r = v * w
    n = 0
    if v > 0:
        while r > 0.5:
            r = r * 0.5
            n += 1
    else:
        r = v - w
    return r, n


@triton.jit
def mapped(x, w, y, count, SHIFT: tl.constexpr, B: tl.constexpr):
    p = tl.program_id(0)
    i = p * B + tl.arange(0, B)
    r, n = tl.map_elementwise(steps, tl.load(x + i), tl.load(w + i))
    tl.store(y + i, r)
    tl.store(count + i, n)


@triton.jit
def swap(a, b):
    return b, a


@triton.jit
def mapped_pairs(x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    (swapped,) = tl.map_elementwise(swap, tl.load(x + i), pack=2)
    tl.store(y + i, swapped)


@triton.jit
def rare(x, k, o, n, OP: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    v, j = tl.load(x + i), tl.load(k + i)
    if OP == "bits":
        tl.store(n + i, libdevice.clz(j) + libdevice.ffs(j) + libdevice.brev(j) + libdevice.float_as_int(v))
    elif OP == "convert":
        tl.store(n + i, libdevice.float2int_rd(v) + libdevice.float2int_ru(v) * 100 + libdevice.float2int_rz(v) * 10000)
    elif OP == "directed":
        tl.store(o + i, libdevice.add_ru(v, 0.1) - libdevice.add_rd(v, 0.1))
    else:
        tl.store(o + i, libdevice.rhypot(v, 2.0) + libdevice.rcbrt(v) + libdevice.norm3d(v, v, v) + libdevice.y0(tl.abs(v)))


def _leading_zeros(j):
    return 32 - len(f"{j & 0xFFFFFFFF:b}") if j else 32


class AsmTest(DeviceTest):
    def test_approximate_functions(self):
        x = torch.rand(SIZE) + 0.5
        for asm, function in {
            "tanh.approx.f32 $0, $1;": torch.tanh,
            "ex2.approx.ftz.f32 $0, $1;": torch.exp2,
            "lg2.approx.f32 $0, $1;": torch.log2,
            "rcp.approx.ftz.f32 $0, $1;": torch.reciprocal,
            "rsqrt.approx.f32 $0, $1;": torch.rsqrt,
            "{ .reg .f32 t; sin.approx.f32 t, $1; fma.rn.f32 $0, t, t, -1.5; }": lambda v: v.sin() ** 2 - 1.5,
        }.items():
            y = torch.empty(SIZE)
            unary_asm[(1,)](x, y, ASM=asm, B=SIZE)
            torch.testing.assert_close(y, function(x), msg=asm)

    def test_bytes_are_unpacked_four_at_a_time(self):
        raw, x = torch.randint(0, 256, (SIZE,), dtype=torch.uint8), torch.randn(SIZE) * 100
        whole, largest = torch.empty(SIZE, dtype=torch.int32), torch.empty(SIZE)
        unpack_asm[(1,)](raw, x, whole, largest, B=SIZE)
        self.assertTrue(torch.equal(whole, raw.int()))
        torch.testing.assert_close(largest, torch.maximum(raw.float(), x))

    def test_predicates(self):
        x, y = torch.randn(SIZE), torch.empty(SIZE)
        predicate_asm[(1,)](x, y, B=SIZE)
        torch.testing.assert_close(y, torch.where(x > 0.5, x * 2, x + 1))

    def test_pairs_of_halves(self):
        x, y = torch.randn(SIZE).half(), torch.empty(SIZE, dtype=torch.float16)
        half_pairs_asm[(1,)](x, y, B=SIZE)
        torch.testing.assert_close(y, (x.float() * x.float() + x.float()).half())

    def test_bits(self):
        x = torch.randint(-(2**31), 2**31 - 1, (SIZE,), dtype=torch.int32)
        for asm, function in {
            "bfe.u32 $0, $1, 4, 8;": lambda v: (v >> 4) & 255,
            "prmt.b32 $0, $1, 0, 0x3;": lambda v: (v >> 24) & 255 | (v & 255) << 8 | (v & 255) << 16 | (v & 255) << 24,
            "lop3.b32 $0, $1, 15, 3, 0xEA;": lambda v: (v & 15) | 3,
            "shr.s32 $0, $1, 5;": lambda v: v >> 5,
            "mad.lo.s32 $0, $1, 3, 7;": lambda v: v * 3 + 7,
            "popc.b32 $0, $1;": lambda v: torch.tensor([bin(n & 0xFFFFFFFF).count("1") for n in v.tolist()]).int(),
        }.items():
            y = torch.empty(SIZE, dtype=torch.int32)
            bits_asm[(1,)](x, y, ASM=asm, B=SIZE)
            expected = function(x)
            if asm.startswith("prmt"):
                expected = torch.from_numpy(expected.numpy())
                self.assertTrue(torch.equal(y & 255, (x >> 24) & 255), asm)
                self.assertTrue(torch.equal((y >> 8) & 255, x & 255), asm)
            else:
                self.assertTrue(torch.equal(y, expected), asm)

    def test_elements_take_branches_of_their_own(self):
        x, w = torch.randn(2, SIZE), torch.rand(2, SIZE) * 4
        y, count = torch.empty(2, SIZE), torch.empty(2, SIZE, dtype=torch.int32)
        mapped[(2,)](x, w, y, count, SHIFT=0, B=SIZE)
        for got, n, v, u in zip(y.ravel().tolist(), count.ravel().tolist(), x.ravel(), w.ravel()):
            r, k = v * u, 0
            while v > 0 and r > 0.5:
                r, k = r * 0.5, k + 1
            self.assertAlmostEqual(got, float(r if v > 0 else v - u), places=5)
            self.assertEqual(n, k)

    def test_neighbours_are_mapped_together(self):
        x, y = torch.randn(SIZE), torch.empty(SIZE)
        mapped_pairs[(1,)](x, y, B=SIZE)
        self.assertTrue(torch.equal(y, x.view(-1, 2).flip(1).reshape(-1)))

    def test_rare_functions(self):
        x = torch.randn(SIZE) * 5
        k = torch.randint(1, 2**31 - 1, (SIZE,), dtype=torch.int32)
        o, n = torch.empty(SIZE), torch.empty(SIZE, dtype=torch.int32)
        rare[(1,)](x, k, o, n, OP="bits", B=SIZE)
        for got, j, bits in zip(n.tolist(), k.tolist(), x.view(torch.int32).tolist()):
            reverse = int(f"{j:032b}"[::-1], 2)
            expected = _leading_zeros(j) + (j & -j).bit_length() + reverse + bits
            self.assertEqual(got & 0xFFFFFFFF, expected & 0xFFFFFFFF)
        rare[(1,)](x, k, o, n, OP="convert", B=SIZE)
        expected = x.floor() + x.ceil() * 100 + x.trunc() * 10000
        self.assertTrue(torch.equal(n, expected.int()))
        rare[(1,)](x, k, o, n, OP="directed", B=SIZE)
        self.assertTrue(bool((o >= 0).all()) and bool((o > 0).float().mean() > 0.9) and float(o.max()) < 1e-5)
        rare[(1,)](x, k, o, n, OP="other", B=SIZE)
        wide = x.double()
        roots = torch.sign(wide) * wide.abs() ** (-1 / 3)
        expected = (wide**2 + 4) ** -0.5 + roots + 3**0.5 * wide.abs() + torch.special.bessel_y0(wide.abs())
        torch.testing.assert_close(o, expected.float(), rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
    unittest.main()
