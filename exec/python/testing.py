"""What the tests of this folder share: a test case inside the fake CUDA world, and small sources."""

import os
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
os.environ.setdefault("TRITON_CACHE_DIR", tempfile.mkdtemp(prefix="tritonrl-test-"))

import torch

from compile_watch import Recorder
from fake_cuda import FakeCuda
from stub_driver import StubDriver

torch.set_num_threads(1)


class DeviceTest(unittest.TestCase):
    """Launches `kernel[grid](...)` go to the executor; `self.recorder` holds what they did."""

    source_path = ""

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(os.environ["TRITON_CACHE_DIR"], ignore_errors=True)

    def setUp(self):
        torch.manual_seed(0)
        self.recorder = Recorder(self.source_path)
        self.recorder.counting = True
        self.driver = StubDriver(89, self.recorder, lambda record: float(record.programs))
        self.fake = FakeCuda()
        self.driver.__enter__()
        self.fake.__enter__()

    def tearDown(self):
        self.fake.__exit__(None, None, None)
        self.driver.__exit__(None, None, None)

    def counters(self):
        """Counters of the last launch."""
        return self.recorder.records[-1].counters

    def assert_close(self, got, want, atol=1e-5, rtol=1e-5):
        torch.testing.assert_close(got, want, atol=atol, rtol=rtol, equal_nan=True)


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


def elementwise_candidate(expression, mask="i < n", grid="triton.cdiv(n, 1024)", before="", result="o", head=""):
    """A candidate with one elementwise kernel; `expression` is of v."""
    return f"""
import torch
import torch.nn as nn
import triton
import triton.language as tl
{head}
@triton.jit
def kernel(x, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask={mask})
    tl.store(o + i, {expression}, mask={mask})

class ModelNew(nn.Module):
    def forward(self, x):
        {before}
        o = torch.empty_like(x)
        n = x.numel()
        kernel[({grid},)](x, o, n, BLOCK=1024)
        return {result}
"""
