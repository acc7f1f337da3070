"""The bound of a kernel's shared memory holds, and what it needs is what Triton's binary says."""

import os
import sys
import unittest

_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(_HERE, ".."), os.path.join(_HERE, "..", "workers", "python")]

import triton
import triton.language as tl
from client import shared_memory, triton_driver
from client.session import SESSION
from triton.compiler import ASTSource

LIMIT = 101376


@triton.jit
def matmul(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    a += m[:, None] * K + k[None, :]
    b += k[:, None] * BN + n[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        acc = tl.dot(tl.load(a), tl.load(b), acc)
        a += BK
        b += BK * BN
    tl.store(c + m[:, None] * BN + n[None, :], acc)


@triton.jit
def two_dots(q, k, v, o, N, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    m, n, d = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    x = tl.load(q + m[:, None] * D + d[None, :])
    acc = tl.zeros((BM, D), tl.float32)
    for i in range(0, N, BN):
        s = tl.dot(x, tl.trans(tl.load(k + (i + n)[:, None] * D + d[None, :])))
        s = tl.exp(s - tl.max(s, 1)[:, None])
        acc = tl.dot(s.to(tl.float16), tl.load(v + (i + n)[:, None] * D + d[None, :]), acc)
    tl.store(o + m[:, None] * D + d[None, :], acc.to(tl.float16))


@triton.jit
def turn(x, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    m, n = tl.arange(0, BM), tl.arange(0, BN)
    v = tl.load(x + m[:, None] * N + n[None, :])
    tl.store(y + n[:, None] * M + m[None, :], tl.trans(v))


@triton.jit
def rows(x, y, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, BLOCK)
    v = tl.load(x + i)
    v = tl.sort(tl.cumsum(v / tl.sum(tl.exp(v - tl.max(v, 0)), 0), 0))
    tl.store(y + i, v)


@triton.jit
def piped(x, y, N, STAGES: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for at in tl.range(0, N, BLOCK, num_stages=STAGES):
        tl.store(y + at + i, tl.load(x + at + i) + 1)


def made(function, *shape, kind="fp16", **options):
    """The kernel, whose shared memory is known."""
    names = function.arg_names
    numbers = dict(zip(names[len(names) - len(shape) :], shape))
    pointer = lambda name: name in "abcqkvoxy"
    types = {n: "constexpr" if n in numbers else f"*{kind}" if pointer(n) else "i32" for n in names}
    attributes = {(i,): [["tt.divisibility", 16]] for i, n in enumerate(names) if n not in numbers}
    source = ASTSource(function, types, {(names.index(n),): v for n, v in numbers.items()}, attributes)
    return triton_driver.compile_to_ir(source, triton_driver.target(), options)


KERNELS = [
    (matmul, (64, 64, 32), {"num_stages": 3}),
    (matmul, (128, 128, 64), {"num_stages": 3, "num_warps": 8}),
    (matmul, (128, 256, 64), {"num_stages": 2, "num_warps": 8}),
    (matmul, (256, 256, 128), {"num_stages": 4, "num_warps": 8}),
    (matmul, (256, 128, 32), {"num_stages": 1, "kind": "fp32"}),
    (matmul, (32, 32, 32), {"num_stages": 5, "kind": "fp32"}),
    (two_dots, (128, 64, 64), {"num_stages": 3}),
    (two_dots, (64, 128, 128), {"num_stages": 4, "num_warps": 8}),
    (turn, (128, 64), {}),
    (turn, (256, 256), {"kind": "fp32"}),
    (rows, (1024,), {"kind": "fp32"}),
    (rows, (16384,), {"kind": "fp32", "num_warps": 8}),
    (piped, (4, 1024), {"kind": "fp32"}),
    (piped, (6, 8192), {"kind": "fp32"}),
]


class SharedMemoryTest(unittest.TestCase):
    def setUp(self):
        self.device = SESSION.device
        SESSION.device = dict(self.device, compiles=False, shared_bytes=0)
        self.addCleanup(setattr, SESSION, "device", self.device)

    def test_the_bound_holds(self):
        for function, shape, options in KERNELS:
            with self.subTest(kernel=function.fn.__name__, shape=shape, **options):
                kernel = made(function, *shape, **options)
                bound = shared_memory.bound(kernel.asm["ttir"], options.get("num_stages", 3))
                needed = kernel.metadata.shared
                self.assertGreaterEqual(bound, needed)
                self.assertLessEqual(bound, 30 * needed + 65536)

    def test_it_is_what_the_binary_needs(self):
        from triton.compiler.compiler import make_backend

        for function, shape, options in KERNELS[:2] + KERNELS[8:9] + KERNELS[10:11]:
            with self.subTest(kernel=function.fn.__name__):
                kernel = made(function, *shape, **options)
                backend, metadata = make_backend(kernel.target), {}
                with triton_driver._context() as context:
                    module = triton_driver._ir(kernel.src, kernel.target, kernel.options, backend, context)
                    module = backend.make_ttgir(module, metadata, kernel.options, kernel.target.arch)
                    backend.make_llir(module, metadata, kernel.options, kernel.target.arch)
                self.assertEqual(kernel.metadata.shared, metadata["shared"])

    def test_only_kernels_that_may_need_too_much_are_passed_on(self):
        SESSION.device["shared_bytes"] = LIMIT
        small = made(matmul, 64, 64, 32, num_stages=3)
        self.assertIsNone(small._shared)
        self.assertGreater(small.metadata.shared, 0)
        large = made(matmul, 256, 256, 128, num_stages=4, num_warps=8)
        self.assertGreater(large._shared, LIMIT)
        legal = made(matmul, 128, 128, 64, num_stages=3, num_warps=8)
        self.assertLessEqual(legal._shared, LIMIT)
        SESSION.device["compiles"] = True
        self.assertIsNone(made(matmul, 256, 256, 128, num_stages=4, num_warps=8)._shared)


if __name__ == "__main__":
    unittest.main()
