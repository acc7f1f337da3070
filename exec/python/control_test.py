"""Loops, branches, calls, atomics and waiting between programs, executed from their Triton IR."""

import unittest

import torch
import triton
import triton.language as tl

from failures import DeviceAssert, KernelError, NotExecutable
from testing import DeviceTest


@triton.jit
def early_return(x, o, n, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    if p % 2 == 1:
        return
    i = p * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i, mask=i < n) + p, mask=i < n)


@triton.jit
def different_trips(x, o, n):
    p = tl.program_id(0)
    total = 0.0
    count = 0
    for i in range(p, n, 3):
        total += tl.load(x + i)
        count += 1
    tl.store(o + 2 * p, total)
    tl.store(o + 2 * p + 1, count)


@triton.jit
def collatz(x, o):
    p = tl.program_id(0)
    n = tl.load(x + p)
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    tl.store(o + p, steps)


@triton.jit
def branches(x, o, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + p * BLOCK + i)
    if p == 0:
        v = v * 2
    elif p < 3:
        for k in range(p):
            v += k + 1
    else:
        if p == 4:
            tl.store(o + 5 * BLOCK + i, v)
        v = -v
    tl.store(o + p * BLOCK + i, v)


@triton.jit
def persistent(x, o, n, tiles, BLOCK: tl.constexpr):
    for t in range(tl.program_id(0), tiles, tl.num_programs(0)):
        i = t * BLOCK + tl.arange(0, BLOCK)
        tl.store(o + i, tl.load(x + i, mask=i < n) * 3, mask=i < n)


@triton.jit(noinline=True)
def both(a, n):
    if a > n:
        return a, a * n
    return n, a + n


@triton.jit
def calls(x, o):
    p = tl.program_id(0)
    a, b = both(tl.load(x + p), 1.0)
    tl.store(o + 2 * p, a)
    tl.store(o + 2 * p + 1, b)


@triton.jit
def atomic_sum(x, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(o, tl.sum(tl.load(x + i, mask=i < n, other=0.0), 0))


@triton.jit
def scatter(index, values, o, m, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    k = tl.load(index + i, mask=i < n)
    v = tl.load(values + i, mask=i < n)
    tl.atomic_add(o + k, v, mask=i < n)
    tl.atomic_max(m + k, v, mask=i < n)


@triton.jit
def last_program(x, partial, counter, o, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    tl.store(partial + p, tl.sum(tl.load(x + p * BLOCK + i), 0))
    ticket = tl.atomic_add(counter, 1)
    if ticket == tl.num_programs(0) - 1:
        tl.store(o, tl.sum(tl.load(partial + i, mask=i < tl.num_programs(0), other=0.0), 0))


@triton.jit
def locked(x, lock, o, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    v = tl.sum(tl.load(x + p * BLOCK + tl.arange(0, BLOCK)), 0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(o, tl.load(o) + v)
    tl.atomic_xchg(lock, 0)


@triton.jit
def asserts(x, n):
    tl.device_assert(tl.load(x + tl.program_id(0)) < n, "too large")


@triton.jit
def assembly(x, o):
    v = tl.load(x + tl.arange(0, 16))
    r = tl.inline_asm_elementwise("{ .reg .u32 t; mov.u32 t, %laneid; cvt.rn.f32.u32 $0, t; }", "=f,f", [v], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(o + tl.arange(0, 16), r)


@triton.jit
def through_integers(table, o, BLOCK: tl.constexpr):
    p = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    i = tl.arange(0, BLOCK)
    tl.store(o + tl.program_id(0) * BLOCK + i, tl.load(p + i))


@triton.jit
def either(x, y, o, flag, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if tl.load(flag + tl.program_id(0)) > 0:
        p = x
    else:
        p = y
    tl.store(o + tl.program_id(0) * BLOCK + i, tl.load(p + i))


@triton.autotune(
    [triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 256})], key=["n"]
)
@triton.heuristics({"TWICE": lambda args: args["n"] > 100})
@triton.jit
def tuned(x, o, n, BLOCK: tl.constexpr, TWICE: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(o + i, v * 2 if TWICE else v, mask=i < n)


class ControlTest(DeviceTest):
    def test_early_return(self):
        x = torch.randn(200)
        o = torch.zeros(200)
        early_return[(4,)](x, o, 200, BLOCK=64)
        want = torch.zeros(200)
        want[:64], want[128:192] = x[:64], x[128:192] + 2
        self.assert_close(o, want)

    def test_loops_of_different_length(self):
        x = torch.randn(11)
        o = torch.empty(16, 2)
        different_trips[(16,)](x, o, 11)
        self.assert_close(o, torch.tensor([[x[p::3].sum() if p < 11 else 0.0, len(x[p::3])] for p in range(16)]))

    def test_while(self):
        x = torch.arange(1, 31, dtype=torch.int32)
        o = torch.empty_like(x)
        collatz[(30,)](x, o)
        self.assertEqual(o.tolist()[:10], [0, 1, 7, 2, 5, 8, 16, 3, 19, 6])
        self.assertEqual(int(o[26]), 111)

    def test_branches(self):
        x = torch.randn(6, 16)
        o = torch.zeros(6, 16)
        branches[(5,)](x, o, BLOCK=16)
        want = torch.stack([x[0] * 2, x[1] + 1, x[2] + 3, -x[3], -x[4], x[4]])
        self.assert_close(o, want)

    def test_persistent_grid(self):
        x = torch.randn(1000)
        o = torch.empty_like(x)
        persistent[(5,)](x, o, 1000, 16, BLOCK=64)
        self.assert_close(o, x * 3)

    def test_function_call_with_returns(self):
        x = torch.tensor([0.5, 2.0, 1.0])
        o = torch.empty(3, 2)
        calls[(3,)](x, o)
        self.assert_close(o, torch.tensor([[1.0, 1.5], [2.0, 2.0], [1.0, 2.0]]))

    def test_atomics(self):
        x, o = torch.randn(1000), torch.zeros(1)
        atomic_sum[(8,)](x, o, 1000, BLOCK=128)
        self.assert_close(o, x.sum().reshape(1), atol=1e-4)
        index, values = torch.randint(0, 10, (300,)), torch.randn(300).abs()
        sums, most = torch.zeros(10), torch.zeros(10)
        scatter[(2,)](index, values, sums, most, 300, BLOCK=256)
        self.assert_close(sums, torch.zeros(10).index_add(0, index, values), atol=1e-4)
        self.assert_close(most, torch.zeros(10).scatter_reduce(0, index, values, "amax"))
        self.assertEqual(
            self.counters().atomic_bytes, 2 * 300 * 4
        )  # the maximum is two integer atomics, one for each sign

    def test_last_program_finishes(self):
        x, o = torch.randn(8, 32), torch.empty(1)
        last_program[(8,)](x, torch.empty(8), torch.zeros(1, dtype=torch.int32), o, BLOCK=32)
        self.assert_close(o, x.sum().reshape(1), atol=1e-4)

    def test_spin_lock(self):
        x, o = torch.randn(8, 32), torch.zeros(1)
        locked[(8,)](x, torch.zeros(1, dtype=torch.int32), o, BLOCK=32)
        self.assert_close(o, x.sum().reshape(1), atol=1e-4)

    def test_device_assert(self):
        x = torch.tensor([1.0, 5.0])
        asserts[(2,)](x, 9, debug=True)
        with self.assertRaises(DeviceAssert):
            asserts[(2,)](x, 3, debug=True)

    def test_what_has_no_model_is_our_fault(self):
        with self.assertRaises(NotExecutable) as caught:
            assembly[(1,)](torch.randn(16), torch.empty(16))
        self.assertIn("%laneid", str(caught.exception))
        self.assertIsInstance(self.recorder.kernel_errors[0], KernelError)

    def test_pointers_through_integers(self):
        rows = [torch.randn(16) for _ in range(4)]
        table = torch.tensor([row.data_ptr() for row in rows])
        o = torch.empty(4, 16)
        through_integers[(4,)](table, o, BLOCK=16)
        self.assertTrue(torch.equal(o, torch.stack(rows)))

    def test_pointer_chosen_at_run_time(self):
        x, y, o = torch.randn(16), torch.randn(16), torch.empty(3, 16)
        either[(3,)](x, y, o, torch.tensor([1, 0, 1]), BLOCK=16)
        self.assertTrue(torch.equal(o, torch.stack([x, y, x])))

    def test_autotune_and_heuristics(self):
        x = torch.randn(500)
        o = torch.empty_like(x)
        tuned[lambda meta: (triton.cdiv(500, meta["BLOCK"]),)](x, o, 500)
        self.assert_close(o, x * 2)
        self.assertEqual(len(self.recorder.records), 1)  # trial runs of the autotuner are not part of the forward


if __name__ == "__main__":
    unittest.main()
