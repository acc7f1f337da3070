"""Runs one job: see README.md in this folder for the formats. `run_job` never raises and is meant to be called once per process."""

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):  # a fork after a thread pool ran can hang
    os.environ.setdefault(_name, "1")

import platform
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch
import triton

import phases
from failures import JobFailure, describe, traceback_text
from interpreter_device import InterpreterDevice

_VERSIONS = {"torch": torch.__version__, "triton": triton.__version__, "python": platform.python_version()}
DEFAULTS = {
    "task_id": "",
    "reference_source": "",
    "candidate_source": "",
    "seed": 0,
    "trials": 5,
    "atol": 1e-2,
    "rtol": 1e-2,
    "device": "interpreter",
    "arch": 89,
    "device_model": "l40s",
    "time_limit_s": 60.0,
    "work_dir": "",
    "reference_only": False,
    "measure_time": True,
}


def blank_result():
    """A result with every field of the format."""
    return {
        "outcome": "internal_error",
        "fault": "ours",
        "phase": "reference",
        "message": "",
        "detail": "",
        "line": 0,
        "compiled": None,
        "correct": None,
        "trials_run": 0,
        "max_error": None,
        "mismatch": None,
        "launches": [],
        "aten_ops": [],
        "reference_ops": [],
        "modelled": True,
        "reference_seconds": None,
        "candidate_seconds": None,
        "speedup": None,
        "device_name": "",
        "seconds": {},
        "versions": dict(_VERSIONS),
    }


def complete_job(job):
    """The job with defaults filled in; ValueError names a field that is unknown or has an impossible value."""
    unknown = sorted(set(job) - set(DEFAULTS))
    if unknown:
        raise ValueError(f"unknown job field {unknown[0]!r}")
    full = {**DEFAULTS, **job}
    if full["device"] not in ("interpreter", "cuda"):
        raise ValueError(f"job field device is {full['device']!r}, expected interpreter or cuda")
    if int(full["trials"]) < 1:
        raise ValueError(f"job field trials is {full['trials']}, expected at least 1")
    return full


def _device(job, folder, deadline):
    if job["device"] == "cuda":
        from cuda_device import CudaDevice

        return CudaDevice(job, folder, deadline)
    return InterpreterDevice(job, folder, deadline)


def _run(job, folder, result, on_phase):
    deadline = time.monotonic() + job["time_limit_s"]
    clock = phases.Clock()

    def check_time(phase):
        if time.monotonic() > deadline:
            raise JobFailure(
                "timeout",
                "task" if phase == "reference" else "candidate",
                phase,
                f"the time limit of {job['time_limit_s']:g} s passed",
            )

    with _device(job, folder, deadline) as device:
        result["modelled"], result["device_name"] = device.modelled, device.name
        reference = phases.Reference()
        try:
            on_phase("reference")
            phases.run_reference(job, device, reference, check_time)
            clock.lap("reference")
            if not job["reference_only"]:
                _run_candidate(job, device, reference, folder, result, clock, check_time, on_phase)
            result.update(outcome="ok", fault="none", phase="done", message="")
        finally:
            reference.store.close()
            clock.lap("rest")
            result["seconds"] = clock.seconds
            if not job["reference_only"]:
                result["compiled"] = device.compiled
                result["launches"] = device.describe_launches()
                result["aten_ops"] = device.describe_ops("candidate")
            result["reference_ops"] = device.describe_ops("reference")


def _run_candidate(job, device, reference, folder, result, clock, check_time, on_phase):
    on_phase("import")
    model_class = phases.import_candidate(job, device, folder)
    clock.lap("import")
    on_phase("construct")
    model = phases.construct(job, device, model_class, reference, folder)
    clock.lap("construct")
    on_phase("forward")
    try:
        for trial in range(job["trials"]):
            check_time("forward")
            phases.check_trial(job, device, model, reference, trial, folder, result)
            clock.lap("first_forward" if trial == 0 else "other_forwards")
    except JobFailure as failure:
        if failure.outcome == "mismatch":
            result["correct"] = False
        raise
    result["correct"] = True
    if job["measure_time"]:
        on_phase("timing")
        seconds = device.measure(job, reference, model, check_time)
        clock.lap("timing")
        result["reference_seconds"], result["candidate_seconds"] = seconds
        if seconds[0] and seconds[1]:
            result["speedup"] = seconds[0] / seconds[1]


def run_job(job, on_phase=lambda name: None):
    """Result of the job (both as in README.md). on_phase(name) is called when a phase begins."""
    result = blank_result()
    folder, own = "", False
    try:
        job = complete_job(job)
        folder, own = job["work_dir"], not job["work_dir"]
        if own:
            folder = tempfile.mkdtemp(prefix="tritonrl-job-")
        os.environ["TRITON_CACHE_DIR"] = os.path.join(folder, "triton")
        _run(job, folder, result, on_phase)
    except JobFailure as failure:
        result.update(
            outcome=failure.outcome,
            fault=failure.fault,
            phase=failure.phase,
            message=failure.message,
            detail=failure.detail,
            line=failure.line,
        )
    except Exception as error:  # a bug of ours, or a machine without disk or memory
        result.update(
            outcome="internal_error",
            fault="ours",
            message=f"internal error: {describe(error)}",
            detail=traceback_text(error),
        )
    finally:
        if own and folder:
            shutil.rmtree(folder, ignore_errors=True)
    return result


_WARM_REFERENCE = """
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


def warm_up():
    """Once in a parent that forks jobs: imports everything and runs one job, so that LLVM and numpy are started."""
    torch.set_num_threads(1)
    result = run_job({"reference_source": _WARM_REFERENCE, "candidate_source": _WARM_CANDIDATE, "trials": 1})
    if result["outcome"] != "ok":
        raise RuntimeError(f"the warm-up job ended with {result['outcome']}: {result['message']}\n{result['detail']}")
