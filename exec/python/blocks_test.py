"""Reductions, scans, dots and shape operations, executed from their Triton IR and compared with torch."""

import unittest

import torch
import triton
import triton.language as tl

from testing import DeviceTest


@triton.jit
def softmax(x, o, n, stride, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    m = c < n
    v = tl.load(x + r * stride + c, mask=m, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(o + r * stride + c, e / tl.sum(e, 0), mask=m)


@triton.jit
def layer_norm_loop(x, w, b, o, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    square = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        c = start + tl.arange(0, BLOCK)
        v = tl.load(x + r * n + c, mask=c < n, other=0.0)
        total += v
        square += v * v
    mean = tl.sum(total, 0) / n
    scale = tl.rsqrt(tl.sum(square, 0) / n - mean * mean + 1e-5)
    for start in range(0, n, BLOCK):
        c = start + tl.arange(0, BLOCK)
        m = c < n
        v = (tl.load(x + r * n + c, mask=m) - mean) * scale
        tl.store(o + r * n + c, v * tl.load(w + c, mask=m) + tl.load(b + c, mask=m), mask=m)


@triton.jit
def matmul(
    a,
    b,
    c,
    M,
    N,
    K,
    sam,
    sak,
    sbk,
    sbn,
    scm,
    scn,
    PRECISION: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    pa = a + rm[:, None] * sam + rk[None, :] * sak
    pb = b + rk[:, None] * sbk + rn[None, :] * sbn
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        va = tl.load(pa, mask=(rm[:, None] < M) & (rk[None, :] + k < K), other=0.0)
        vb = tl.load(pb, mask=(rk[:, None] + k < K) & (rn[None, :] < N), other=0.0)
        acc = tl.dot(va, vb, acc, input_precision=PRECISION)
        pa += BK * sak
        pb += BK * sbk
    tl.store(
        c + rm[:, None] * scm + rn[None, :] * scn,
        acc.to(c.dtype.element_ty),
        mask=(rm[:, None] < M) & (rn[None, :] < N),
    )


@triton.jit
def int8_dot(a, b, c, B: tl.constexpr):
    i = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    tl.store(c + i, tl.dot(tl.load(a + i), tl.load(b + i), out_dtype=tl.int32))


@triton.jit
def block_pointer_copy(x, o, M, N, B: tl.constexpr):
    p = tl.make_block_ptr(x, (M, N), (N, 1), (tl.program_id(0) * B, 0), (B, B), (1, 0))
    d = tl.make_tensor_descriptor(o, [M, N], [N, 1], [B, B])
    for i in range(0, N, B):
        d.store([tl.program_id(0) * B, i], tl.load(p, boundary_check=(0, 1), padding_option="zero") * 2)
        p = tl.advance(p, (0, B))


@triton.jit
def transpose(x, o, M, N, B: tl.constexpr):
    r = tl.program_id(0) * B + tl.arange(0, B)
    c = tl.program_id(1) * B + tl.arange(0, B)
    v = tl.load(x + r[:, None] * N + c[None, :], mask=(r[:, None] < M) & (c[None, :] < N))
    tl.store(o + c[:, None] * M + r[None, :], tl.trans(v), mask=(c[:, None] < N) & (r[None, :] < M))


@triton.jit
def reductions(x, f, g, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0)
    low = tl.where(i < n, v, float("inf"))
    high = tl.where(i < n, v, -float("inf"))
    tl.store(f + 0, tl.sum(v))
    tl.store(f + 1, tl.max(high))
    tl.store(f + 2, tl.min(low))
    best, where = tl.max(high, 0, return_indices=True)
    tl.store(f + 3, best)
    tl.store(g + 0, where)
    tl.store(g + 1, tl.argmin(low, 0))
    tl.store(g + 2, tl.xor_sum(i, 0))
    tl.store(g + 3, tl.sum((v > 0).to(tl.int32)))


@triton.jit
def add_pair(a, b, c, d):
    return a + c, b * 0.5 + d


@triton.jit
def first_order(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def scans(x, o, n: tl.constexpr):
    i = tl.arange(0, n)
    v = tl.load(x + i)
    tl.store(o + i, tl.cumsum(v, 0))
    tl.store(o + n + i, tl.cumsum(v, 0, reverse=True))
    tl.store(o + 2 * n + i, tl.cumprod(v * 0.1 + 1, 0))
    a, b = tl.associative_scan((tl.full((n,), 0.9, tl.float32), v), 0, first_order)
    tl.store(o + 3 * n + i, b)
    tl.store(o + 4 * n + i, tl.sort(v))


@triton.jit
def shapes(x, o, n: tl.constexpr):
    i = tl.arange(0, n)
    v = tl.load(x + i)
    a, b = tl.split(tl.reshape(v, (n // 2, 2)))
    tl.store(o + i, tl.reshape(tl.join(b, a), (n,)))
    t = tl.permute(tl.reshape(v, (4, 2, n // 8)), (2, 0, 1))
    tl.store(o + n + i, tl.reshape(t, (n,)))
    tl.store(o + 2 * n + i, tl.gather(v, (i * 7) % n, 0))
    tl.store(o + 3 * n + i, tl.flip(v, 0))
    tl.store(o + 4 * n + tl.arange(0, 16), tl.histogram((tl.abs(v) * 5).to(tl.int32) % 16, 16).to(tl.float32))
    tl.store(o + 4 * n + 16 + tl.arange(0, 4), tl.max(tl.reshape(v, (4, n // 4)), 1))


@triton.jit
def low_precision_sum(x, o, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(o + tl.program_id(0), tl.sum(tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=0.0), 0))


class BlocksTest(DeviceTest):
    def test_softmax(self):
        x = torch.randn(37, 300, device="cuda")
        o = torch.empty_like(x)
        softmax[(37,)](x, o, 300, x.stride(0), BLOCK=512)
        self.assert_close(o, x.softmax(-1), atol=1e-6)

    def test_two_pass_layer_norm(self):
        x, w, b = torch.randn(19, 333), torch.randn(333), torch.randn(333)
        o = torch.empty_like(x)
        layer_norm_loop[(19,)](x, w, b, o, 333, BLOCK=128)
        self.assert_close(o, torch.nn.functional.layer_norm(x, (333,), w, b), atol=2e-5, rtol=1e-4)

    def test_matmul_with_masks_and_strides(self):
        for dtype, precision in (
            (torch.float32, "ieee"),
            (torch.float32, "tf32"),
            (torch.float16, "tf32"),
            (torch.bfloat16, "tf32"),
        ):
            a, b = torch.randn(70, 50).to(dtype), torch.randn(90, 50).to(dtype).t()
            c = torch.empty(70, 90, dtype=dtype)
            matmul[(3, 3)](
                a, b, c, 70, 90, 50, *a.stride(), *b.stride(), *c.stride(), PRECISION=precision, BM=32, BN=32, BK=16
            )
            want = (a.float() @ b.float()).to(dtype)
            self.assert_close(
                c, want, atol=1e-4 if dtype == torch.float32 else 0.05, rtol=1e-5 if dtype == torch.float32 else 0.01
            )
            flops = 2 * 96 * 96 * 64
            counted = self.counters()
            self.assertEqual(
                (counted.dot_flops, counted.tensor_flops), (flops, 0) if precision == "ieee" else (0, flops)
            )

    def test_int8_dot(self):
        a, b = (torch.randint(-100, 100, (32, 32), dtype=torch.int8) for _ in range(2))
        c = torch.empty(32, 32, dtype=torch.int32)
        int8_dot[(1,)](a, b, c, B=32)
        self.assertTrue(torch.equal(c, a.int() @ b.int()))

    def test_block_pointers_and_descriptors(self):
        x = torch.randn(40, 48)
        o = torch.empty_like(x)
        block_pointer_copy[(3,)](x, o, 40, 48, B=16)
        self.assert_close(o, x * 2)

    def test_transpose(self):
        x = torch.randn(50, 70)
        o = torch.empty(70, 50)
        transpose[(2, 3)](x, o, 50, 70, B=32)
        self.assertTrue(torch.equal(o, x.t()))

    def test_reductions(self):
        x = torch.randn(100)
        f, g = torch.empty(4), torch.empty(4, dtype=torch.int32)
        reductions[(1,)](x, f, g, 100, BLOCK=128)
        self.assert_close(f, torch.stack([x.sum(), x.max(), x.min(), x.max()]))
        self.assertEqual(g.tolist(), [int(x.argmax()), int(x.argmin()), 0, int((x > 0).sum())])

    def test_scans_and_sort(self):
        x = torch.randn(64)
        o = torch.empty(5, 64)
        scans[(1,)](x, o, n=64)
        recurrence, state = [], 0.0
        for value in x.tolist():
            state = state * 0.9 + value
            recurrence.append(state)
        want = torch.stack(
            [
                x.cumsum(0),
                x.flip(0).cumsum(0).flip(0),
                (x * 0.1 + 1).cumprod(0),
                torch.tensor(recurrence),
                x.sort().values,
            ]
        )
        self.assert_close(o, want, atol=1e-5, rtol=1e-5)

    def test_shape_operations(self):
        x = torch.randn(64)
        o = torch.empty(4 * 64 + 20)
        shapes[(1,)](x, o, n=64)
        i = torch.arange(64)
        self.assertTrue(torch.equal(o[:64], x.reshape(32, 2).flip(1).reshape(-1)))
        self.assertTrue(torch.equal(o[64:128], x.reshape(4, 2, 8).permute(2, 0, 1).reshape(-1)))
        self.assertTrue(torch.equal(o[128:192], x[(i * 7) % 64]))
        self.assertTrue(torch.equal(o[192:256], x.flip(0)))
        self.assertTrue(torch.equal(o[256:272], torch.bincount((x.abs() * 5).int() % 16, minlength=16).float()))
        self.assertTrue(torch.equal(o[272:276], x.reshape(4, 16).max(1).values))

    def test_low_precision_sums(self):
        for dtype in (torch.bfloat16, torch.float16):
            x = torch.randn(5, 200).to(dtype)
            o = torch.empty(5, dtype=dtype)
            low_precision_sum[(5,)](x, o, 200, BLOCK=256)
            self.assert_close(o, x.float().sum(1).to(dtype), atol=1e-2, rtol=1e-2)


if __name__ == "__main__":
    unittest.main()
