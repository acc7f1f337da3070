"""The oracle runs the trusted reference: what a candidate may see goes into one memory, what it may not into another."""

import torch

import layout
import sources
from failures import JobFailure, describe, line_in_file, traceback_text


def _refused(error, what):
    if isinstance(error, JobFailure):
        return error
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


def _fits(description, what):
    """The description, if all in it can be handed over; else the task is refused."""
    for kind, leaf in _leaves(description):
        if kind == "other":
            message = f"{what} holds a value of type {leaf}, which cannot be handed over"
            raise JobFailure("reference_error", "task", "reference", message)
        if kind == "tensor" and leaf["offset"] is None:
            known = leaf["layout"] == "strided" and getattr(torch, leaf["dtype"]) in layout.COMPARABLE
            reason = "does not fit into the memory for it" if known else "is of a kind that cannot be compared"
            tensor = f"a tensor of type {leaf['dtype']}, layout {leaf['layout']} and shape {tuple(leaf['shape'])}"
            raise JobFailure("reference_error", "task", "reference", f"{what}: {tensor} {reason}")
    return description


def _leaves(node):
    ((kind, value),) = node.items()
    if kind in ("list", "tuple"):
        return [leaf for item in value for leaf in _leaves(item)]
    if kind == "dict":
        return [leaf for _, item in value for leaf in _leaves(item)]
    return [(kind, value)]


def build(job, device):
    """(module, constructor arguments, model on the device) of the reference."""
    try:
        module = sources.load_reference(job["reference_source"])
    except BaseException as error:
        raise _refused(error, "does not load") from error
    try:
        arguments = sources.init_inputs(module)
        model = device.make(lambda: sources.build_model(module.Model, arguments, job["weights_seed"]))
    except BaseException as error:
        raise _refused(error, "cannot be constructed") from error
    return module, arguments, model


def run(job, device, result, check_time):
    """Fills in `result` of an oracle job: one entry in "calls" for each of job["calls"], a trial's number each."""
    visible, hidden = layout.Writer(job["fds"]["visible"]), layout.Writer(job["fds"]["hidden"])
    reader = layout.Reader(job["fds"]["visible"])
    module, arguments, model = build(job, device)
    state = sources.state_of(model)
    shown = {
        "arguments": _fits(visible.put(arguments), "get_init_inputs()"),
        "state": _fits(visible.put(state), "the reference's state"),
        "inputs": [],
    }
    for index, trial in enumerate(job["calls"]):
        check_time("reference")
        try:
            if trial == len(shown["inputs"]):
                made = device.make(lambda: list(_made_inputs(module, job["input_seeds"][trial])))
                shown["inputs"].append(_fits(visible.put(made), "get_inputs()"))
                del made
            # Read back, so that the reference gets exactly what a candidate will get.
            placed = device.read(reader, shown["inputs"][trial])
            before = layout.map_tensors(placed, lambda tensor: tensor.clone()) if index == 0 else None
            sources.seed_everything(job["forward_seeds"][trial])
            with torch.no_grad():
                output = device.reference_call(lambda: model(*placed), index)
            result["calls"].append({"trial": trial, "output": _fits(hidden.put(output), "forward's result")})
            if index == 0:
                result["mutates_inputs"] = not layout.same(before, placed)
                del before
        except BaseException as error:
            raise _refused(error, "does not run") from error
    if not any(kind == "tensor" for kind, _ in _leaves(result["calls"][0]["output"])):
        raise JobFailure("reference_error", "task", "reference", "the reference's forward returns no tensor")
    result["has_buffers"] = isinstance(model, torch.nn.Module) and any(True for _ in model.buffers())
    result["visible"] = shown


def _made_inputs(module, seed):
    sources.seed_everything(seed)
    return module.get_inputs()
