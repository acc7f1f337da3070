"""The phases of a job, the same for every device: reference, import, construct, forward, compare, timing.

Each function ends with its result or raises JobFailure. The device object says how code runs:
  place(value)                tensors or modules where the code is to run
  reference_call(f), candidate_call(f)   run f() while watching it
  fetch(value)                a copy of an output on the CPU
  misplaced(output)           Mismatch if an output is not on the device, else None
  check_swallowed()           raises an error that forward hid
  explain(error)              (outcome, fault, message, detail, line) of an error of the device's own, or None
"""

import time

import torch

import compare
import sources
from failures import JobFailure, describe, line_in_file, traceback_text


class Reference:
    """What is kept of the reference: bytes of inputs and outputs by trial, and the weights to copy."""

    def __init__(self):
        self.store = compare.Store()
        self.inputs = []
        self.outputs = []
        self.mutates_inputs = False
        self.arguments = None
        self.state = {}


def _refused_by_task(error, what):
    line = line_in_file(error, sources.REFERENCE_FILE)
    where = f" at line {line}" if line else ""
    return JobFailure(
        "reference_error",
        "task",
        "reference",
        f"the reference {what}{where}: {describe(error)}",
        traceback_text(error),
        line,
    )


def run_reference(job, device, result, check_time):
    """Runs the reference on all trials and keeps in `result` what the comparison needs."""
    try:
        module = sources.load_reference(job["reference_source"])
    except BaseException as error:
        raise _refused_by_task(error, "does not load") from error
    try:
        result.arguments = sources.init_inputs(module)
        model = device.place(sources.build_model(module.Model, result.arguments, job["seed"]))
        result.state = sources.state_of(model)
    except BaseException as error:
        raise _refused_by_task(error, "cannot be constructed") from error
    for trial in range(job["trials"]):
        check_time("reference")
        try:
            sources.seed_everything(sources.mix(job["seed"], trial))
            inputs = list(module.get_inputs())
            key = result.store.put(inputs)
            placed = device.place(inputs)
            sources.seed_everything(sources.mix(job["seed"], trial, 1))
            with torch.no_grad():
                output = device.reference_call(lambda: model(*placed), trial)
            result.inputs.append(key)
            result.outputs.append(result.store.put(device.fetch(output)))
            if trial == 0:
                result.mutates_inputs = not compare.same_bits(result.store.get(key), device.fetch(placed))
        except BaseException as error:
            raise _refused_by_task(error, "does not run") from error
    if job["trials"] and not sources.tensor_count(result.store.get(result.outputs[0])):
        raise JobFailure("reference_error", "task", "reference", "the reference's forward returns no tensor")
    sources.forget_reference()


def _refused(error, device, outcome, phase, what, path):
    """JobFailure for an error that candidate code raised."""
    if isinstance(error, JobFailure):
        return error
    known = device.explain(error)
    if known is not None:
        outcome, fault, message, detail, line = known
        return JobFailure(outcome, fault, phase, message, detail, line)
    line = line_in_file(error, path)
    if (
        isinstance(error, MemoryError)
        or isinstance(error, torch.OutOfMemoryError)
        or "can't allocate memory" in str(error)
    ):
        outcome, what = "out_of_memory", "ran out of memory"
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


def construct(job, device, model_class, reference, folder):
    """A ModelNew with the reference's weights."""
    path = sources.candidate_path(folder)
    try:
        model = device.candidate_call(lambda: sources.build_model(model_class, reference.arguments, job["seed"]), None)
        model = device.place(model)
        sources.copy_state(reference.state, model)
    except BaseException as error:
        raise _refused(error, device, "construct_error", "construct", "ModelNew cannot be constructed", path) from error
    return model


def forward(job, device, model, inputs, trial, folder):
    """One forward of the candidate on `inputs`; its output as it came."""
    path = sources.candidate_path(folder)
    sources.seed_everything(sources.mix(job["seed"], trial, 1))
    try:
        with torch.no_grad():
            output = device.candidate_call(lambda: model(*inputs), trial)
        device.check_swallowed()
    except BaseException as error:
        raise _refused(error, device, "runtime_error", "forward", "forward failed", path) from error
    return output


def check_trial(job, device, model, reference, trial, folder, result):
    """Runs the candidate on one trial's inputs and compares; JobFailure with `mismatch` filled in `result` if they differ."""
    inputs = device.place(reference.store.get(reference.inputs[trial]))
    output = forward(job, device, model, inputs, trial, folder)
    compare_trial(job, device, reference, trial, result, inputs, output)


def compare_trial(job, device, reference, trial, result, inputs, output):
    """Compares one output; JobFailure if it differs."""
    got = device.fetch(output)
    want = reference.store.get(reference.outputs[trial])
    mismatch, largest = compare.compare_outputs(want, got, job["atol"], job["rtol"])
    if mismatch is None:
        mismatch = device.misplaced(output)
    if largest is not None and largest == largest and largest != float("inf"):
        result["max_error"] = max(largest, result["max_error"] or 0.0)
    if mismatch is None and not reference.mutates_inputs:
        if not compare.same_bits(reference.store.get(reference.inputs[trial]), device.fetch(inputs)):
            mismatch = compare.Mismatch(0, "input_changed", "forward changed its inputs in place")
    result["trials_run"] = trial + 1
    if mismatch is not None:
        result["mismatch"] = mismatch.as_dict(trial)
        raise JobFailure(
            "mismatch", "candidate", "compare", f"trial {trial + 1} of {job['trials']}: {mismatch.message}"
        )


class Clock:
    """Wall seconds by phase."""

    def __init__(self):
        self.seconds = {}
        self._last = time.monotonic()

    def lap(self, name):
        now = time.monotonic()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self._last
        self._last = now
