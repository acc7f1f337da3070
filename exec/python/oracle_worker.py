"""What an oracle's worker imports: the jobs of runner.py, warmed up for references alone (no kernel is compiled)."""

import torch

import one_process
from runner import run_job
from warm import WARM_REFERENCE

__all__ = ["run_job", "warm_up"]

# Loads what float64, other inputs and probes take: over a second in a fresh process.
_ROBUST = {"mode": "robust", "variant_seeds": [1, 2, 3, 4], "probes": True}


def warm_up():
    """Once in a parent that forks jobs."""
    torch.set_num_threads(1)
    convolutions, products = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    for oracle_fields in ({}, _ROBUST):
        _run(oracle_fields)
    # The robust rules need results without tf32. Other rules take torch as it is.
    torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = convolutions, products


def _run(oracle_fields):
    seeds = list(range(8))  # of the trial, and of its variants
    both = one_process.run_both(WARM_REFERENCE, None, trials=1, oracle_fields=oracle_fields, forward_seeds=seeds)
    (result,) = both.results
    if result["outcome"] != "ok":
        raise RuntimeError(f"the warm-up job ended with {result['outcome']}: {result['message']}\n{result['detail']}")
