"""Triton's own interpreter on the kernels of ttir_bench: the best time of a launch, and whether the result is torch's.

`TRITON_INTERPRET=1 PYTHONPATH=exec/ttir/testing python interpreter_peer.py ROUNDS` prints one JSON object for each
kernel.
"""

import json
import sys
import time

import bench_kernels
import elementwise_kernels
import tensor_kernels
import torch


def uniform(*shape):
    return torch.rand(shape) * 2 - 1


def cases():
    """Name, launch, output and expected output of each kernel, with the shapes and grids of ttir_bench."""
    n, rows, columns, size = 1 << 20, 4096, 1024, 1024
    x, y, out = uniform(n), uniform(n), torch.empty(n)
    yield "vector_add", lambda: elementwise_kernels.vector_add[(n // 1024,)](x, y, out, n, BLOCK=1024), out, x + y
    x, out = uniform(rows, columns), torch.empty(rows, columns)
    yield "softmax", lambda: tensor_kernels.softmax[(rows,)](x, out, columns, BLOCK=1024), out, torch.softmax(x, 1)
    a, b, c = uniform(size, size).half(), uniform(size, size).half(), torch.empty(size, size)
    tiles = {"BM": 64, "BN": 64, "BK": 32, "GROUP": 8}
    grid = ((size // 64) ** 2,)
    yield (
        "grouped_matmul",
        lambda: bench_kernels.grouped_matmul[grid](a, b, c, size, size, size, **tiles),
        c,
        a.float() @ b.float(),
    )


def main():
    rounds = int(sys.argv[1])
    torch.manual_seed(1)
    for name, launch, output, expected in cases():
        times, right = [], True
        for _ in range(rounds):
            output.fill_(-7)
            start = time.perf_counter()
            launch()
            times.append((time.perf_counter() - start) * 1e3)
            right = right and torch.allclose(output, expected, rtol=1e-4, atol=1e-4)
        print(json.dumps({"kernel": name, "ms": min(times), "right": right}), flush=True)


if __name__ == "__main__":
    main()
