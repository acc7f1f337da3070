"""Elementwise kernels, types and rounding, executed from their Triton IR and compared with torch."""

import unittest

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from testing import DeviceTest


@triton.jit
def math_kernel(x, o, n, OP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    v = tl.load(x + i, mask=m, other=1.0)
    if OP == "exp":
        r = tl.exp(v)
    elif OP == "log":
        r = tl.log(tl.abs(v))
    elif OP == "sigmoid":
        r = tl.sigmoid(v)
    elif OP == "tanh":
        r = libdevice.tanh(v)
    elif OP == "erf":
        r = tl.erf(v)
    elif OP == "rsqrt":
        r = tl.math.rsqrt(tl.abs(v) + 1)
    elif OP == "sincos":
        r = tl.sin(v) * tl.cos(v)
    elif OP == "floorceil":
        r = tl.floor(v) + tl.ceil(v * 2)
    elif OP == "minmax":
        r = tl.maximum(tl.minimum(v, 0.5), -0.25)
    elif OP == "clamp":
        r = tl.clamp(v, -0.5, 0.5)
    elif OP == "where":
        r = tl.where(v > 0, v, v * 0.01)
    elif OP == "exp2log2":
        r = tl.exp2(v) + tl.log2(tl.abs(v) + 1)
    elif OP == "fma":
        r = tl.fma(v, v, v)
    elif OP == "div":
        r = tl.div_rn(v, v * v + 1) + tl.sqrt_rn(tl.abs(v)) + v / 3.0
    elif OP == "pow":
        r = libdevice.pow(tl.abs(v), 1.5) + libdevice.log1p(tl.abs(v))
    else:
        r = -v
    tl.store(o + i, r, mask=m)


MATH = {
    "exp": torch.exp,
    "log": lambda v: v.abs().log(),
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "erf": torch.erf,
    "rsqrt": lambda v: (v.abs() + 1).rsqrt(),
    "sincos": lambda v: v.sin() * v.cos(),
    "floorceil": lambda v: v.floor() + (v * 2).ceil(),
    "minmax": lambda v: v.clamp(-0.25, 0.5),
    "clamp": lambda v: v.clamp(-0.5, 0.5),
    "where": lambda v: torch.where(v > 0, v, v * 0.01),
    "exp2log2": lambda v: v.exp2() + (v.abs() + 1).log2(),
    "fma": lambda v: v * v + v,
    "div": lambda v: v / (v * v + 1) + v.abs().sqrt() + v / 3,
    "pow": lambda v: v.abs() ** 1.5 + v.abs().log1p(),
    "neg": lambda v: -v,
}


@triton.jit
def axpy(x, y, o, n, alpha, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(o + i, tl.load(x + i, mask=m) * alpha + tl.load(y + i, mask=m), mask=m)


@triton.jit
def integers(a, b, o, n, OP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    m = i < n
    x = tl.load(a + i, mask=m, other=1)
    y = tl.load(b + i, mask=m, other=1)
    if OP == "div":
        r = x // y
    elif OP == "mod":
        r = x % y
    elif OP == "udiv":
        r = (x.to(tl.uint32) // y.to(tl.uint32)).to(tl.int32)
    elif OP == "shift":
        r = ((x << 3) >> 1) ^ (x.to(tl.uint32) >> 5).to(tl.int32)
    elif OP == "bits":
        r = (x & y) | (~x)
    elif OP == "umulhi":
        r = tl.umulhi(x.to(tl.uint32), y.to(tl.uint32)).to(tl.int32)
    elif OP == "ucompare":
        r = (x.to(tl.uint32) < y.to(tl.uint32)).to(tl.int32)
    elif OP == "float":
        r = (x.to(tl.float32) * 0.7).to(tl.int32)
    else:
        r = x * 1000003 + y
    tl.store(o + i, r, mask=m)


@triton.jit
def cast(x, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0)
    tl.store(o + i, v.to(o.dtype.element_ty), mask=i < n)


@triton.jit
def double_twice(x, o, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(o + i, v * v + v, mask=i < n)


@triton.jit
def greater(x, y, o, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n) > tl.load(y + i, mask=i < n)
    tl.store(o + i, v, mask=i < n)


@triton.jit
def flip_bool(x, o, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(o + i, ~tl.load(x + i, mask=i < n), mask=i < n)


class ElementwiseTest(DeviceTest):
    def test_math_functions(self):
        x = torch.randn(3000, device="cuda") * 2
        for name, function in MATH.items():
            with self.subTest(name):
                o = torch.empty_like(x)
                math_kernel[(3,)](x, o, 3000, OP=name, BLOCK=1024)
                self.assert_close(o, function(x), atol=2e-6, rtol=2e-6)

    def test_scalar_arguments_and_float64(self):
        for dtype in (torch.float32, torch.float64):
            x, y = torch.randn(500, dtype=dtype), torch.randn(500, dtype=dtype)
            o = torch.empty_like(x)
            axpy[(2,)](x, y, o, 500, 0.75, BLOCK=256)
            self.assert_close(o, x * 0.75 + y)

    def test_integers_as_in_c(self):
        a = torch.randint(-(2**31), 2**31 - 1, (256,), dtype=torch.int64).to(torch.int32)
        b = torch.randint(1, 1000, (256,), dtype=torch.int32) * torch.where(torch.rand(256) > 0.5, 1, -1).to(
            torch.int32
        )
        wide = lambda t: t.to(torch.int64) & 0xFFFFFFFF
        wrap = lambda t: ((t + 2**31) % 2**32 - 2**31).to(torch.int32)
        expected = {
            "div": torch.div(a, b, rounding_mode="trunc"),
            "mod": torch.fmod(a, b),
            "udiv": wrap(wide(a) // wide(b)),
            "shift": wrap((a.long() << 3)) // 1 >> 1 ^ wrap(wide(a) >> 5),
            "bits": (a & b) | ~a,
            "ucompare": (wide(a) < wide(b)).int(),
            "float": (a.float() * 0.7).int(),
            "wrap": wrap(a.long() * 1000003 + b.long()),
            "umulhi": wrap(torch.tensor([(int(p) * int(q)) >> 32 for p, q in zip(wide(a), wide(b))])),
        }
        for name, want in expected.items():
            with self.subTest(name):
                o = torch.empty(256, dtype=torch.int32)
                integers[(1,)](a, b, o, 256, OP=name, BLOCK=256)
                self.assertTrue(torch.equal(o, want), (o - want).nonzero()[:3])

    def test_casts_round_as_torch_does(self):
        x = torch.cat(
            [torch.randn(900) * 100, torch.tensor([0.0, -0.0, float("inf"), float("nan"), 1e-40, 65519.0, 3.0e38])]
        )
        for dtype in (torch.bfloat16, torch.float16, torch.float64):
            o = torch.empty(x.numel(), dtype=dtype)
            cast[(1,)](x, o, x.numel(), BLOCK=1024)
            self.assertTrue(torch.equal(o.nan_to_num(7), x.to(dtype).nan_to_num(7)), dtype)
            back = torch.empty_like(x)
            cast[(1,)](o, back, x.numel(), BLOCK=1024)
            self.assertTrue(torch.equal(back.nan_to_num(7), o.float().nan_to_num(7)), dtype)

    def test_float_to_int_saturates_as_the_gpu_does(self):
        x = torch.tensor([1.9, -1.9, 3e9, -3e9, float("nan"), 0.0])
        o = torch.empty(6, dtype=torch.int32)
        cast[(1,)](x, o, 6, BLOCK=8)
        self.assertEqual(o.tolist(), [1, -1, 2**31 - 1, -(2**31), 0, 0])

    def test_low_precision_rounds_after_each_operation(self):
        for dtype in (torch.bfloat16, torch.float16):
            x = torch.randn(512).to(dtype)
            o = torch.empty_like(x)
            double_twice[(1,)](x, o, 512, BLOCK=512)
            self.assertTrue(torch.equal(o, x * x + x), dtype)

    def test_fp8(self):
        for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
            x = torch.randn(256)
            o = torch.empty(256, dtype=dtype)
            cast[(1,)](x, o, 256, BLOCK=256)
            self.assertTrue(torch.equal(o.float(), x.to(dtype).float()), dtype)

    def test_bool_tensors(self):
        x, y = torch.randn(200), torch.randn(200)
        o = torch.empty(200, dtype=torch.bool)
        greater[(1,)](x, y, o, 200, BLOCK=256)
        self.assertTrue(torch.equal(o, x > y))
        p = torch.empty_like(o)
        flip_bool[(1,)](o, p, 200, BLOCK=256)
        self.assertTrue(torch.equal(p, ~o))

    def test_int64_and_int8(self):
        for dtype in (torch.int64, torch.int8, torch.int16, torch.uint8):
            x = torch.randint(0, 100, (100,)).to(dtype)
            o = torch.empty(100, dtype=torch.float32)
            cast[(1,)](x, o, 100, BLOCK=128)
            self.assertTrue(torch.equal(o, x.float()), dtype)


if __name__ == "__main__":
    unittest.main()
