"""The fields of jobs and of their results, with defaults (formats: docs/protocol.md)."""

import platform

import torch
import triton

_VERSIONS = {"torch": torch.__version__, "triton": triton.__version__, "python": platform.python_version()}
_COMMON = {
    "role": None,
    "task_id": "",
    "fds": None,
    "weights_seed": 0,
    "forward_seeds": None,
    "device": "interpreter",
    "arch": 89,
    "device_model": "l40s",
    "time_limit_s": 60.0,
    "work_dir": "",
    "measure_time": True,
}
_WINDOWS = {"windows": False, "in_bytes": 0, "out_bytes": 0}
# Fields of a job by role, with their defaults; None: has to be there.
FIELDS = {
    "oracle": {
        **_COMMON,
        "reference_source": None,
        "input_seeds": None,
        "calls": None,
        "mode": "paper",
        "variant_seeds": [],
        "probes": False,
        "host": False,
        "has_all_memory": False,
        "keep_bytes": 4 << 30,
        "own_memory": 0,  # of a host for candidates without data: bytes of each of its two memories
    },
    "runner": {
        **_COMMON,
        **_WINDOWS,
        "candidate_source": None,
        "visible": None,
        "calls": None,
        "copy_parameters": True,
    },
}
# Further fields of the result of an oracle that is a reference host.
HOST_RESULT = {
    "in_bytes": 0,
    "out_bytes": 0,
    "call_bytes": 0,
    "device_bytes": 0,
    "out_of_memory": False,
}
_RESULT = {"modelled": True, "device_name": ""}
_RESULTS = {
    "oracle": {
        "visible": None,
        "calls": [],
        "trials": [],
        "left_out": [],
        "shares_memory": False,
        "mutates_inputs": False,
        "has_buffers": False,
        "reference_ops": [],
        "reference_seconds": None,
        "bytes_per_second": None,
    },
    "runner": {
        "compiled": None,
        "launches": [],
        "aten_ops": [],
        "own_parameters": [],
        "candidate_seconds": None,
    },
}


def blank_result(role):
    """A result with every field of the format for that role."""
    return {
        "outcome": "internal_error",
        "fault": "ours",
        "phase": "start",
        "message": "",
        "detail": "",
        "line": 0,
        **_RESULT,
        **{name: list(value) if isinstance(value, list) else value for name, value in _RESULTS[role].items()},
        "seconds": {},
        "versions": dict(_VERSIONS),
    }


def complete_job(job):
    """The job with defaults filled in; ValueError names a field that is unknown, missing or has an impossible value."""
    fields = FIELDS[job["role"]]
    unknown = sorted(set(job) - set(fields))
    if unknown:
        raise ValueError(f"unknown job field {unknown[0]!r}")
    full = {**fields, **job}
    missing = [name for name, value in full.items() if value is None]
    if missing:
        raise ValueError(f"job field {missing[0]} is missing")
    if full["device"] not in ("interpreter", "cuda"):
        raise ValueError(f"job field device is {full['device']!r}, expected interpreter or cuda")
    return full
