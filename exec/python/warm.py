"""Warms up a worker before it forks jobs: everything is imported and compiled once."""

import os
import sys
import tempfile

import torch

import one_process
from failures import describe

WARM_REFERENCE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x): return torch.softmax(x, -1) + 1
def get_inputs(): return [torch.randn(8, 33)]
def get_init_inputs(): return []
"""
_WARM_CANDIDATE = """
import torch, triton, triton.language as tl
@triton.jit
def warm(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + tl.program_id(0) * n + i, e / tl.sum(e, 0) + 1, mask=i < n)
class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        warm[(x.shape[0],)](x, y, x.shape[1], BLOCK=64)
        return y
"""


def _build_driver_once():
    """Triton's own binding to the driver is compiled by gcc for a new cache folder, that is, for every job: here it is
    compiled before they fork. Nothing of CUDA is started by that. Where it does not work jobs do it themselves."""
    try:
        from triton.backends.nvidia.driver import CudaUtils

        with tempfile.TemporaryDirectory() as folder:
            os.environ["TRITON_CACHE_DIR"] = folder
            CudaUtils()
    except Exception as error:
        print(f"Triton's binding to the driver is not built ahead: {describe(error)}", file=sys.stderr)
    else:
        CudaUtils.__init__ = lambda self: None  # of the one instance there is


def warm_up():
    """Once in a parent that forks jobs: imports everything and runs one job, so that LLVM and numpy are started."""
    torch.set_num_threads(1)
    if os.environ.get("TRITONRL_DEVICE") == "cuda":
        _build_driver_once()
    for result in one_process.run_both(WARM_REFERENCE, _WARM_CANDIDATE, trials=1).results:
        if result["outcome"] not in ("ok", "ran"):
            raise RuntimeError(
                f"the warm-up job ended with {result['outcome']}: {result['message']}\n{result['detail']}"
            )
