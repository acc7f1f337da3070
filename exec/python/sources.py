"""Loads the reference and the candidate as modules and builds their models and inputs."""

import copy
import importlib.util
import inspect
import linecache
import os
import random
import sys
import types

import numpy as np
import torch

import affine
import older_inductor

REFERENCE_FILE = "<reference>"
MOST_OWN = 4  # parameters that copy_state names


def seed_everything(seed):
    """Seeds Python, numpy and torch; torch.manual_seed does the same for torch but walks all device types first (1 ms)."""
    random.seed(seed)
    np.random.seed(seed & 0xFFFFFFFF)
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)


def load_reference(source):
    """Module from text; tracebacks show its lines, no file holds it."""
    linecache.cache[REFERENCE_FILE] = (len(source), None, source.splitlines(True), REFERENCE_FILE)
    module = types.ModuleType("reference")
    module.__file__ = REFERENCE_FILE
    exec(compile(source, REFERENCE_FILE, "exec"), module.__dict__)
    if not callable(getattr(module, "Model", None)):
        module.Model = _only_model(module)
    for name in ("Model", "get_inputs", "get_init_inputs"):
        if not callable(getattr(module, name, None)):
            raise AttributeError(f"the reference defines no {name}")
    return module


def _only_model(module):
    """The module's one own nn.Module class with a forward, as in tasks/loader.h; None if there is another number."""
    own = set()
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, torch.nn.Module) and value.__module__ == module.__name__:
            if "forward" in vars(value):
                own.add(value)
    return own.pop() if len(own) == 1 else None


def load_candidate(source, folder):
    """(module, path). Triton needs the kernels' source in a real file."""
    path = os.path.join(folder, "candidate.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    spec = importlib.util.spec_from_file_location("candidate", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["candidate"] = module
    linecache.checkcache(path)
    sys.dont_write_bytecode = True
    older_inductor.provide_names(source)
    spec.loader.exec_module(module)
    return module, path


def candidate_path(folder):
    return os.path.join(folder, "candidate.py")


def init_inputs(module):
    """Arguments of the model's constructor, as (args, kwargs).

    get_init_inputs() returns a list of positional arguments (KernelBench), a dict of named ones, or [args, kwargs]
    (KernelBook). A list of a list and a dict is [args, kwargs] unless only the other reading fits the constructor.
    """
    value = module.get_init_inputs()
    if isinstance(value, dict):
        return [], value
    value = list(value)
    if not _is_args_and_kwargs(value):
        return value, {}
    args, kwargs = list(value[0]), dict(value[1])
    if not _fits(module.Model, args, kwargs) and _fits(module.Model, value, {}):
        return value, {}
    return args, kwargs


def _is_args_and_kwargs(value):
    if len(value) != 2 or not isinstance(value[0], (list, tuple)) or not isinstance(value[1], dict):
        return False
    return all(isinstance(name, str) for name in value[1])


def _fits(model_class, args, kwargs):
    """Whether the constructor takes these arguments; True where its signature cannot be read."""
    try:
        inspect.signature(model_class).bind(*args, **kwargs)
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def build_model(model_class, arguments, seed):
    """The model with weights drawn from `seed`; a class that is no nn.Module only has to be callable."""
    args, kwargs = copy.deepcopy(arguments)
    seed_everything(seed)
    return model_class(*args, **kwargs)


def copy_state(source_state, model, varied=None):
    """Gives `model` the reference's parameters and buffers wherever name and shape agree. Sentences on the
    parameters that have nothing from there.

    `varied` tells which of the reference's were 0 or 1 everywhere before they got other values: {name: 0 or 1}. One whose
    name the model does not have goes to a tensor of another name that holds the same constant and as many elements."""
    if not isinstance(model, torch.nn.Module):
        return []
    own, targets = [], model.state_dict(keep_vars=True)
    renamed = {name: was for name, was in (varied or {}).items() if not _fits_in(targets.get(name), source_state[name])}
    with torch.no_grad():
        for name, target in targets.items():
            value = source_state.get(name)
            if not _fits_in(target, value):
                value = affine.renamed_value(source_state, renamed, target)
            if value is not None:
                target.data.copy_(value.reshape(target.shape))
            elif isinstance(target, torch.nn.Parameter):
                own.append(_own_value(name, target, source_state.get(name)))
    if len(own) > MOST_OWN:
        own[MOST_OWN:] = [f"so do {len(own) - MOST_OWN} more"]
    return own


def _fits_in(target, value):
    return isinstance(value, torch.Tensor) and isinstance(target, torch.Tensor) and value.shape == target.shape


def _own_value(name, target, value):
    what = f"parameter {str(name)[:100]!r} of ModelNew"
    if not isinstance(value, torch.Tensor):
        return f"{what} has no counterpart in Model, it keeps its own initial value"
    shapes = f"the shape {tuple(target.shape)}, its counterpart in Model {tuple(value.shape)}"
    return f"{what} has {shapes}, it keeps its own initial value"


def state_of(model):
    """Copies of the model's parameters and buffers by name."""
    if not isinstance(model, torch.nn.Module):
        return {}
    return {
        name: value.detach().clone() for name, value in model.state_dict().items() if isinstance(value, torch.Tensor)
    }
