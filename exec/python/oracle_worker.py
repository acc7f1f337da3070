"""Runs references: inputs and expected outputs of a task's trials (formats: docs/protocol.md).

`run_job` never raises and is called once in a process, which a worker forked that has called `warm_up` before.
"""

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):  # a fork after a thread pool ran can hang
    os.environ.setdefault(_name, "1")

import time

import torch

import devices
import host_tasks
import layout
import operator_counts
import oracle
import reference_host
from failures import JobFailure, describe, traceback_text
from job_fields import HOST_RESULT, blank_result, complete_job
from kept import KeptOutlet

_WARM_REFERENCE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x): return torch.softmax(x, -1) + 1
def get_inputs(): return [torch.randn(8, 33)]
def get_init_inputs(): return []
"""
_WARM_BYTES = 1 << 20
# Loads what float64, other inputs and probes take: over a second in a fresh process.
_ROBUST = {"mode": "robust", "variant_seeds": [1, 2, 3, 4], "probes": True}


def warm_up():
    """Once in a parent that forks jobs: imports and starts what they need."""
    torch.set_num_threads(1)
    convolutions, products = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    for fields in ({}, _ROBUST):
        _run_warm_job(fields)
    # The robust rules need results without tf32. Other rules take torch as it is.
    torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = convolutions, products


def _run_warm_job(fields):
    fds = {name: os.memfd_create(name) for name in ("visible", "hidden")}
    for fd in fds.values():
        os.ftruncate(fd, _WARM_BYTES)
    seeds = {"input_seeds": [1], "forward_seeds": list(range(8))}  # of the trial, and of its variants
    job = {"role": "oracle", "reference_source": _WARM_REFERENCE, "calls": [0, 0], "fds": fds, **seeds, **fields}
    result = run_job(job)
    for fd in fds.values():
        os.close(fd)
    if result["outcome"] != "ok":
        raise RuntimeError(f"the warm-up job ended with {result['outcome']}: {result['message']}\n{result['detail']}")


def run_job(job, on_phase=lambda name: None):
    """Result of the job (both as in docs/protocol.md). on_phase("reference") is called when the first begins. A host goes
    on with other tasks as long as it is given some."""
    if not job.get("host"):
        on_phase("reference")
        return _run_one(job, None)
    tasks = host_tasks.Tasks(job, _run_one)
    on_phase("reference")  # of later tasks the control channel tells
    return tasks.run(job)


def _run_one(job, serve):
    result = blank_result()
    try:
        _run(complete_job(job), result, serve)
    except JobFailure as failure:
        for name in ("outcome", "fault", "phase", "message", "detail", "line"):
            result[name] = getattr(failure, name)
        if failure.out_of_memory and job.get("host"):
            result["out_of_memory"] = True
    except Exception as error:  # a bug of ours, or a machine without disk or memory
        result.update(message=f"internal error: {describe(error)}", detail=traceback_text(error))
    return result


def _run(job, result, serve):
    begin = time.monotonic()
    limit = job["time_limit_s"]

    def check_time(phase):
        if time.monotonic() > begin + limit:
            message = f"the reference is too slow: the time limit of {limit:g} s passed"
            raise JobFailure("reference_error", "task", phase, message)

    with devices.of_job(job) as device:
        result["modelled"], result["device_name"], host = device.modelled, device.name, None
        if job["host"]:
            result.update(HOST_RESULT)
            host = reference_host.Host(job, device, result, check_time)
            host.make()
        else:
            outlet, fds = KeptOutlet(device, job["keep_bytes"]), job["fds"]
            made = oracle.Oracle(job, device, result, check_time, outlet)
            made.run()
            shown = outlet.hand_over(result, layout.Writer(fds["visible"]), layout.Writer(fds["hidden"]))
            result["visible"] = {**shown, "varied": made.varied}
        result["reference_ops"] = operator_counts.describe(device.ops)
        result["seconds"] = {"reference": time.monotonic() - begin}
        result.update(outcome="ok", fault="none", phase="done")
        if host is not None:
            serve(host, result)
            result.update(visible={}, calls=[])
