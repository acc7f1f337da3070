"""Loads the reference as a module and builds its models and inputs."""

import copy
import inspect
import linecache
import random
import types

import numpy as np
import torch

REFERENCE_FILE = "<reference>"


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


@torch.no_grad()
def copy_state(source_state, model):
    """Gives `model`, another of the reference's, its parameters and buffers."""
    if not isinstance(model, torch.nn.Module):
        return
    for name, target in model.state_dict(keep_vars=True).items():
        if name in source_state:
            target.data.copy_(source_state[name])


def state_of(model):
    """Copies of the model's parameters and buffers by name."""
    if not isinstance(model, torch.nn.Module):
        return {}
    return {
        name: value.detach().clone() for name, value in model.state_dict().items() if isinstance(value, torch.Tensor)
    }
