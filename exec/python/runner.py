"""Runs one job (formats: docs/protocol.md). `run_job` never raises and is meant to be called once per process.

A job has one of two roles: "oracle" runs the reference and makes inputs and expected outputs, "runner" runs a candidate
on inputs it is given.
"""

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):  # a fork after a thread pool ran can hang
    os.environ.setdefault(_name, "1")

import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch
import triton  # noqa: F401  (imported here once for all jobs)

import ablation
import host_tasks
import layout
import oracle
import outlets
import phases
import reference_host
import timed_host
import timing
from channel import Control
from failures import JobFailure, describe, memory_outcome, traceback_text
from gpu_memory import Window
from interpreter_device import InterpreterDevice
from job_fields import HOST_RESULT, blank_result, complete_job

WARMED_BY = "warm"  # the module whose warm_up() a worker calls before it forks jobs
def _device(job, folder, deadline):
    if job["device"] == "cuda":
        from cuda_device import CudaDevice

        return CudaDevice(job, folder, deadline)
    return InterpreterDevice(job, folder, deadline)


class _Run:
    """One job on its device."""

    def __init__(self, job, folder, result, on_phase, on_result, serve):
        self.job = job
        self.folder = folder
        self.result = result
        self.on_phase = on_phase
        self.on_result = on_result
        self.serve = serve  # a reference host's orders
        self.clock = phases.Clock()
        self._windows = []  # mapped as long as the job lives
        self._control = self._recorder = None
        self._limit = self.deadline = time.monotonic() + job["time_limit_s"]

    def check_time(self, phase):
        if self._control is not None:  # what it waits for the supervisor is not its own time
            self.deadline = self._recorder.deadline = self._limit + self._control.waited
        if time.monotonic() > self.deadline:
            message = f"the time limit of {self.job['time_limit_s']:g} s passed"
            if phase == "reference":
                raise JobFailure("reference_error", "task", phase, f"the reference is too slow: {message}")
            raise JobFailure("timeout", "candidate", phase, message)

    def run(self):
        with _device(self.job, self.folder, self.deadline) as device:
            self.result["modelled"], self.result["device_name"] = device.modelled, device.name
            try:
                getattr(self, self.job["role"])(device)
            finally:
                self.clock.lap("rest")
                self.result["seconds"] = self.clock.seconds

    def oracle(self, device):
        self.on_phase("reference")
        job, result, host = self.job, self.result, None
        if job["host"]:
            result.update(HOST_RESULT)
            kind = timed_host.TimedHost if job["own_memory"] else reference_host.Host
            host = kind(job, device, result, self.check_time)
            host.make()
        else:
            outlet = outlets.SharedOutlet(device, job["fds"])
            made = oracle.Oracle(job, device, result, self.check_time, outlet)
            made.run()
            result["visible"] = made.visible(outlet.inputs)
        self.clock.lap("reference")
        result["reference_ops"] = device.describe_ops("reference")
        result["bytes_per_second"] = device.bytes_per_second()
        if job["measure_time"]:
            result["reference_seconds"] = device.modelled_seconds("reference")
        result.update(outcome="ok", fault="none", phase="done")
        if host is not None:
            self.serve(host, {**result, "seconds": dict(self.clock.seconds)})
            result.update(visible={}, calls=[])

    def runner(self, device):
        rest = None
        try:
            rest = self._run_candidate(device)
        finally:
            self.result["compiled"] = device.compiled
            self.result["launches"] = device.describe_launches()
            self.result["aten_ops"] = device.describe_ops("candidate")
        if rest is not None:
            # Handed over before, so that nothing that happens in these calls can spoil it.
            self.result["seconds"] = dict(self.clock.seconds)
            self.on_result(self.result)
            rest.serve()

    def _lines(self):
        """(reader of what was made for this job, writer of what it hands over, control channel)."""
        job, fds = self.job, self.job["fds"]
        sides = fds["visible"], fds["memory"]
        if job["windows"]:
            sizes = job["in_bytes"], job["out_bytes"]
            self._windows = [Window.open(fd, size, job["device"]) for fd, size in zip(sides, sizes)]
            sides = [window.bytes for window in self._windows]
        return layout.Reader(sides[0]), layout.Writer(sides[1], addresses=True), Control(fds["control"])

    def _state(self, reader):
        """The reference's state: from a window straight to where it is needed."""
        on_gpu = self.job["windows"] and self.job["device"] == "cuda"
        return reader.get(self.job["visible"]["state"], "cuda" if on_gpu else "cpu")

    def _serve_rounds(self, device, model, reader, writer, control):
        clock, watch, extra = device.clock()
        visible = self.job["visible"]
        inputs = visible["inputs"]
        read = lambda trial: clock.place(reader, inputs[trial])
        in_turn = visible.get("in_turn", False)
        rounds = timing.Rounds(model, clock, self.job["forward_seeds"], read, len(inputs), in_turn, watch)
        timing.serve(rounds, writer, control, self.check_time, extra)
        self.clock.lap("timing")

    def _run_candidate(self, device):
        """All calls that the result depends on. What is still to be served then, None if the supervisor has enough."""
        job, visible = self.job, self.job["visible"]
        reader, writer, control = self._lines()
        self._control, self._recorder = control, device.recorder
        self.on_phase("import")
        model_class = phases.import_candidate(job, device, self.folder)
        self.clock.lap("import")
        self.on_phase("construct")
        arguments, state = reader.get(visible["arguments"]), self._state(reader)
        model, self.result["own_parameters"] = phases.construct(job, device, model_class, arguments, state, self.folder)
        self.clock.lap("construct")
        self.on_phase("forward")
        inputs = None
        for index, trial in enumerate(job["calls"]):
            self.check_time("forward")
            fresh = device.read(reader, visible["inputs"][trial])
            # The first calls share their addresses: the same content again, then another one.
            inputs = phases.in_place(inputs, fresh) if index in (1, 2) else fresh
            inputs_now = device.watch_inputs(inputs, writer)
            device.pattern = index % 2
            output = phases.forward(job, device, model, inputs, job["forward_seeds"][trial], index, self.folder)
            if index == 0:
                device.name_arguments(inputs, model, output)
            writer.reset()
            described = phases.hand_over(writer, device, output, self.folder)
            reply = control.ask({"call": index, "output": described, "inputs": inputs_now()})
            output = inputs_now = None  # gigabytes at full size
            self.clock.lap("other_forwards" if index else "first_forward")
            if not reply["go"]:
                self.result.update(outcome="stopped", fault="none", phase="compare")
                return None
        inputs = fresh = None
        device.release()
        if job["measure_time"]:
            self.on_phase("timing")
            if device.modelled:
                self.result["candidate_seconds"] = device.modelled_seconds("candidate")
            else:
                try:
                    self._serve_rounds(device, model, reader, writer, control)
                except JobFailure:
                    raise
                except Exception as error:
                    outcome = memory_outcome(error) or "runtime_error"
                    raise JobFailure(
                        outcome, "candidate", "timing", f"a timed run failed: {describe(error)}"
                    ) from error
        self.result.update(outcome="ran", fault="none", phase="done")
        return ablation.Ablation(job, device, model, reader, writer, control, self.folder)


def run_job(job, on_phase=lambda name: None, on_result=lambda result: None):
    """Result of the job (both as in docs/protocol.md). on_phase(name) is called when a phase begins. A runner whose calls all
    went well calls on_result(result) before it serves ablated calls, which change nothing in the result any more. A
    reference host goes on with other tasks as long as it is given some."""
    if not job.get("host"):
        return _run_one(job, on_phase, on_result, None)
    on_phases = iter([on_phase])  # of the first task alone: of later ones the control channel tells
    run_one = lambda task, serve: _run_one(task, next(on_phases, lambda name: None), on_result, serve)
    return host_tasks.Tasks(job, run_one).run(job)


def _run_one(job, on_phase, on_result, serve):
    result = blank_result(job["role"])
    folder, own = "", False
    try:
        job = complete_job(job)
        folder, own = job["work_dir"], not job["work_dir"]
        if own:
            folder = tempfile.mkdtemp(prefix="tritonrl-job-")
        os.environ["TRITON_CACHE_DIR"] = os.path.join(folder, "triton")
        _Run(job, folder, result, on_phase, on_result, serve).run()
    except JobFailure as failure:
        result.update(
            outcome=failure.outcome,
            fault=failure.fault,
            phase=failure.phase,
            message=failure.message,
            detail=failure.detail,
            line=failure.line,
        )
        if failure.out_of_memory and job.get("host"):
            result["out_of_memory"] = True
    except Exception as error:  # a bug of ours, or a machine without disk or memory
        full = job["role"] == "runner" and memory_outcome(error)  # by copies of ours for it: tried alone then
        result.update(
            outcome=full or "internal_error",
            fault="candidate" if full else "ours",
            message=f"internal error: {describe(error)}",
            detail=traceback_text(error),
        )
    finally:
        if own and folder:
            shutil.rmtree(folder, ignore_errors=True)
    return result
