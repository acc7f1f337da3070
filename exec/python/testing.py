"""What the tests of this folder share: the import path, and small sources."""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
# As in a reference's worker.
sys.path[:0] = [_HERE, *(os.path.join(_HERE, "..", folder, "python") for folder in ("workers", "compare"))]

import torch

import layout

torch.set_num_threads(1)


class Reader(layout.Builder):
    """Fresh copies of values that a Writer put into memory, read through its descriptor."""

    def __init__(self, fd):
        self._fd = fd

    def _dense(self, node, dtype, size):
        raw = torch.empty(size, dtype=torch.uint8)
        target, done = memoryview(raw.numpy()), 0
        while done < size:
            done += os.preadv(self._fd, [target[done : done + 1 << 30]], node["offset"] + done)
        return raw.view(dtype)


def task_source(forward, inputs="[torch.randn(32, 512)]", init="[]", body=""):
    """A KernelBench file whose Model.forward is `forward` (an expression of x, and y if there are two inputs)."""
    return f"""
import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def __init__(self, *args):
        super().__init__()
{body}
    def forward(self, x, *rest):
        y = rest[0] if rest else None
        return {forward}

def get_inputs():
    return {inputs}

def get_init_inputs():
    return {init}
"""
