"""The phases of a candidate, the same for every device: import, construct, forward.

Each function ends with its result or raises JobFailure. The device object says how code runs:
  place(value)                tensors or modules where the code is to run
  make(f), read(reader, node) what f() builds, and what was handed over, there
  watch_inputs(inputs, put)   called before forward; the result called after it describes the inputs as they are then
  reference_call(f, index), candidate_call(f, index)   run f() while watching it; call 0 of forward is counted
  pattern                     0 or 1: what fresh memory of integers holds in these calls
  name_arguments(inputs, model, output)   after call 0: what the tensors are that kernels were launched with
  fetch(value)                a copy of tensors on the CPU
  check_swallowed()           raises an error that forward hid
  explain(error)              (outcome, fault, message, detail, line) of an error of the device's own, or None
"""

import time

import torch

import layout
import sources
from failures import JobFailure, describe, line_in_file, memory_outcome, traceback_text
from plain_torch import plain_torch


def _refused(error, device, outcome, phase, what, path):
    """JobFailure for an error that candidate code raised."""
    if isinstance(error, JobFailure):
        return error
    known = device.explain(error)
    if known is not None:
        outcome, fault, message, detail, line = known
        return JobFailure(outcome, fault, phase, message, detail, line)
    line = line_in_file(error, path)
    full = memory_outcome(error)
    if full is not None:
        outcome, what = full, "ran out of memory"
    where = f" at line {line}" if line else ""
    return JobFailure(outcome, "candidate", phase, f"{what}{where}: {describe(error)}", traceback_text(error), line)


def import_candidate(job, device, folder):
    """The candidate's ModelNew class."""
    path = sources.candidate_path(folder)
    try:
        module = device.candidate_call(lambda: sources.load_candidate(job["candidate_source"], folder)[0], None)
    except BaseException as error:
        raise _refused(error, device, "import_error", "import", "the candidate does not import", path) from error
    model_class = getattr(module, "ModelNew", None)
    if not callable(model_class):
        raise JobFailure("no_model_new", "candidate", "import", "the candidate defines no class ModelNew")
    return model_class


def construct(job, device, model_class, arguments, state, folder):
    """A ModelNew with the weights that were handed over, and sentences on those that it has of its own. Without
    copy_parameters it keeps what it drew from the seed, which is the reference's."""
    path = sources.candidate_path(folder)
    try:
        build = lambda: sources.build_model(model_class, arguments, job["weights_seed"])  # noqa: E731
        model = device.make(lambda: device.candidate_call(build, None))
        varied = job["visible"].get("varied")
        own = sources.copy_state(state, model, varied) if job["copy_parameters"] else []
    except BaseException as error:
        raise _refused(error, device, "construct_error", "construct", "ModelNew cannot be constructed", path) from error
    return model, own


def forward(job, device, model, inputs, seed, index, folder):
    """Call number `index` of the candidate's forward; its output as it came."""
    path = sources.candidate_path(folder)
    sources.seed_everything(seed)
    try:
        with torch.no_grad():
            output = device.candidate_call(lambda: model(*inputs), index)
        device.check_swallowed()
    except BaseException as error:
        raise _refused(error, device, "runtime_error", "forward", "forward failed", path) from error
    return output


def hand_over(writer, device, value, folder):
    """The description of an output, whose own code may run while it is copied (a tensor subclass)."""
    path = sources.candidate_path(folder)
    try:
        return writer.put(value)
    except BaseException as error:
        raise _refused(
            error, device, "runtime_error", "forward", "forward's result cannot be copied", path
        ) from error


@plain_torch()
@torch.no_grad()
def in_place(old, new):
    """`new` in the storages of `old` where types, shapes and strides agree: the same addresses with other content."""
    kept = []
    for before, after in zip(layout.tensors(old), layout.tensors(new)):
        same = before.shape == after.shape and before.dtype == after.dtype and before.stride() == after.stride()
        kept.append(before.copy_(after) if same else after)
    remaining = iter(kept)
    return layout.map_tensors(new, lambda tensor: next(remaining, tensor))


class Clock:
    """Wall seconds by phase."""

    def __init__(self):
        self.seconds = {}
        self._last = time.monotonic()

    def lap(self, name):
        now = time.monotonic()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self._last
        self._last = now
