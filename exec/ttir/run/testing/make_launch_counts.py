"""Counts launches of kernels of the corpus with exec/python's executor: make_launch_counts.py EXEC_PYTHON > TABLE.

A line of the table: kernel, grid, arguments, and the counts in the order of `NAMES`. An argument is a tensor's size in
bytes ("b4096", of zeros, or "m256%16" of 256 int32 numbers i % 16), an integer ("i5") or a float ("f0.5").
"""

import os
import sys

LAUNCHES = [
    "vector_add 5,1,1 b20000 b20000 b20000 i5000",
    "vector_add 3,1,1 b16384 b16384 b16384 i2049",
    "softmax 7,1,1 b21868 b21868 i781",
    "layer_norm 4,1,1 b16000 b4000 b16000 i1000 f0.5",
    "matmul 2,3,1 b18000 b12600 b28000 i100 i70 i90",
    "grouped_matmul 6,1,1 b33000 b23100 b77000 i150 i110 i105",
    "attention 3,1,1 b5120 b5120 b5120 b5120 i80 f0.5",
    "reductions 1,1,1 b1024 b128 b128",
    "arg_reductions 2,1,1 b2048 b96 b32",
    "scans 3,1,1 b512 b512 b512",
    "welford 1,1,1 b1024 b8 i200",
    "mapped 2,1,1 b65536 b65536",
    "atomics 5,1,1 b256 b256 m64%10 b128 b256 b1024 i40",
    "histogram 2,1,1 m256%40 b128 i100",
    "gathers 1,1,1 b1024 m256%8 b1024",
    "sorting 1,1,1 b256 m64%7",
    "dots 2,1,1 b4096 b2048 b2048 b1024 b1024 b1024 b4096 b4096 b8192",
    "batched_dot 1,1,1 b2048 b2048 b4096",
    "dropout 3,1,1 b6144 i7 f0.5",
    "random_numbers 1,1,1 b512 b512 i7",
    "integer_arithmetic 1,1,3 b768 m384%9 m768%9 b6144 m768%9 i12 i5",
    "float_arithmetic 1,2,1 b512 b512 b1024 i200 f1.5 f2.5 i1",
    "mathematics 2,1,1 b512 b512 b512",
    "rows_and_columns 4,2,1 b65536 b65536 i200 i60 i100",
    "block_pointers 3,2,1 b7200 b7200 b14400 i80 i45 i45",
    "rewritten_descriptors 1,1,1 b12800 b12800 i50 i128",
    "nested_loops 2,1,1 b65536 i3 i7",
    "while_loops 2,1,1 b4 b128 i100",
    "branches 2,1,1 b1024 i7 i1",
    "early_return 9,1,1 b4096 i6",
    "several_returns 2,1,1 b128 i7",
    "calls 2,1,1 b256 f0.5",
    "persistent 3,1,1 b8192 i16 i3",
    "last_block 5,1,1 b4 b64 i5",
    "spin_lock 4,1,1 b4 b4 b256",
    "scalars 2,1,1 b4096 b4096 i20",
]
NAMES = ["load_bytes", "store_bytes", "atomic_bytes", "sector_bytes", "unique_bytes", "flops", "dot_flops", "tensor_flops"]


def argument_of(text):
    import torch

    kind, text = text[0], text[1:]
    if kind == "b":
        return torch.zeros(int(text), dtype=torch.uint8)
    if kind == "m":
        count, modulus = (int(part) for part in text.split("%"))
        return (torch.arange(count) % modulus).to(torch.int32)
    return int(text) if kind == "i" else float(text)


def main(executor):
    sys.path.insert(0, executor)
    from counters import LaunchCounters
    from failures import KernelError
    from ttir_executor import Kernel

    corpus = os.path.join("exec", "ttir", "testing", "corpus")
    for launch in LAUNCHES:
        name, grid, *arguments = launch.split()
        counters = LaunchCounters()
        try:
            with open(os.path.join(corpus, name + ".ttir")) as file:
                kernel = Kernel(file.read())
            kernel.launch([argument_of(text) for text in arguments], [int(n) for n in grid.split(",")], counters)
        except KernelError as error:
            print(f"{launch}: {error}", file=sys.stderr)
            continue
        print(f"{launch} = {' '.join(str(getattr(counters, count)) for count in NAMES)}")


if __name__ == "__main__":
    main(sys.argv[1])
