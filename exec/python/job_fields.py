"""The fields of jobs and of their results, with defaults (formats: docs/protocol.md)."""

import platform

import torch
import triton

_VERSIONS = {"torch": torch.__version__, "triton": triton.__version__, "python": platform.python_version()}
# Fields of a job with their defaults; None: has to be there.
_JOB = {
    "role": "oracle",
    "task_id": "",
    "fds": None,
    "work_dir": "",
    "device": "cpu",
    "time_limit_s": 60.0,
    "measure_time": True,
    "reference_source": None,
    "weights_seed": 0,
    "input_seeds": None,
    "forward_seeds": None,
    "variant_seeds": [],
    "calls": None,
    "mode": "paper",
    "probes": False,
    "host": False,
    "has_all_memory": False,
    "keep_bytes": 1 << 29,  # bytes of tensors that are kept; others are made again
    "own_memory": 1 << 32,  # of a host: bytes of each of its two memories, if they were full
    "whole_bytes": 1 << 28,  # of a host: tasks of more bytes stay there
}
# Further fields of a host's result.
HOST_RESULT = {"in_bytes": 0, "out_bytes": 0, "call_bytes": 0, "device_bytes": 0, "out_of_memory": False}


def blank_result():
    """A result with every field of the format."""
    return {
        **{"outcome": "internal_error", "fault": "ours", "phase": "start", "message": "", "detail": "", "line": 0},
        **{"modelled": True, "device_name": "", "visible": None, "calls": [], "trials": [], "left_out": []},
        **{"shares_memory": False, "mutates_inputs": False, "has_buffers": False, "reference_ops": []},
        **{"seconds": {}, "versions": dict(_VERSIONS)},
    }


def complete_job(job):
    """The job with defaults filled in; ValueError names a field that is unknown, missing or has an impossible value."""
    unknown = sorted(set(job) - set(_JOB))
    if unknown:
        raise ValueError(f"unknown job field {unknown[0]!r}")
    full = {**_JOB, **job}
    missing = [name for name, value in full.items() if value is None]
    if missing:
        raise ValueError(f"job field {missing[0]} is missing")
    if full["device"] not in ("cpu", "cuda"):
        raise ValueError(f"job field device is {full['device']!r}, expected cpu or cuda")
    return full
