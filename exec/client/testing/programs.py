"""Small candidates for tests: each doubles its input in a kernel, in a style of its own."""

import textwrap

HEAD = """
import copy
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def twice_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)

def twice(x, out=None):
    y = torch.empty_like(x) if out is None else out
    twice_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
    return y
"""


def program(forward, init="pass", before=""):
    """A candidate whose forward(self, x) has the lines `forward`, with `init` in its constructor and `before` above."""
    parts = [HEAD, textwrap.dedent(before), "class ModelNew(nn.Module):", "    def __init__(self):"]
    parts += ["        super().__init__()", _block(init), "    def forward(self, x):", _block(forward)]
    return "\n".join(parts) + "\n"


def _block(lines):
    return textwrap.indent(textwrap.dedent(lines).strip("\n"), " " * 8)


def line_of(source, text):
    """Number of the first line that contains `text`."""
    return next(i for i, line in enumerate(source.split("\n"), 1) if text in line)
