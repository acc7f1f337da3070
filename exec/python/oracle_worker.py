"""What an oracle's worker imports: the jobs of runner.py, warmed up for references alone (no kernel is compiled)."""

import torch

import one_process
from runner import WARM_REFERENCE, run_job

__all__ = ["run_job", "warm_up"]


def warm_up():
    """Once in a parent that forks jobs."""
    torch.set_num_threads(1)
    (result,) = one_process.run_both(WARM_REFERENCE, None, trials=1).results
    if result["outcome"] != "ok":
        raise RuntimeError(f"the warm-up job ended with {result['outcome']}: {result['message']}\n{result['detail']}")
