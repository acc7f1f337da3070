"""Loads the trusted reference, and says what is wrong with a task whose reference cannot be used."""

import torch

import layout
import sources
from failures import JobFailure, describe, is_device_full, line_in_file, traceback_text


def refused(error, what):
    """JobFailure for what the reference raised; `what` says what it does not do."""
    if isinstance(error, JobFailure):
        return error
    line = line_in_file(error, sources.REFERENCE_FILE)
    where = f" at line {line}" if line else ""
    message = f"the reference {what}{where}: {describe(error)}"
    failure = JobFailure("reference_error", "task", "reference", message, traceback_text(error), line)
    failure.out_of_memory = is_device_full(error)
    return failure


def task_fault(message):
    return JobFailure("reference_error", "task", "reference", message)


def fits(description, what):
    """The description, if all in it can be handed over; else the task is refused."""
    for kind, leaf in layout.leaves_of(description):
        if kind == "other":
            raise task_fault(f"{what} holds a value of type {leaf}, which cannot be handed over")
        if kind == "tensor" and leaf["offset"] is None:
            known = leaf["layout"] == "strided" and getattr(torch, leaf["dtype"]) in layout.COMPARABLE
            reason = "does not fit into the memory for it" if known else "is of a kind that cannot be compared"
            tensor = f"a tensor of type {leaf['dtype']}, layout {leaf['layout']} and shape {tuple(leaf['shape'])}"
            raise task_fault(f"{what}: {tensor} {reason}")
    return description


def inputs_of(module):
    """What get_inputs() returns, as a list."""
    inputs = module.get_inputs()
    if isinstance(inputs, dict):
        raise task_fault("the reference's get_inputs returned a dict, it must return a list of positional arguments")
    return list(inputs)


def build(job, device):
    """(module, constructor arguments, model on the device) of the reference."""
    try:
        module = sources.load_reference(job["reference_source"])
    except BaseException as error:
        raise refused(error, "does not load") from error
    try:
        arguments = sources.init_inputs(module)
        model = device.make(lambda: sources.build_model(module.Model, arguments, job["weights_seed"]))
    except BaseException as error:
        raise refused(error, "cannot be constructed") from error
    return module, arguments, model
