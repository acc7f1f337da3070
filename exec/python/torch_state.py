"""What a reference may leave behind in a process that goes on to the next task: settings, which are put back, and changed
functions and classes, which are noticed."""

import builtins
import math
import random

import numpy as np
import torch

_MODULES = (torch, torch.nn, torch.nn.functional, torch.nn.init, torch.autograd, torch.cuda, builtins, math, random, np)


def _settings():
    """{name: (value now, how to set it)}."""
    cudnn, products = torch.backends.cudnn, torch.backends.cuda.matmul
    found = {
        "default_dtype": (torch.get_default_dtype(), torch.set_default_dtype),
        "grad_enabled": (torch.is_grad_enabled(), torch.set_grad_enabled),
        "threads": (torch.get_num_threads(), torch.set_num_threads),
        "deterministic": (torch.are_deterministic_algorithms_enabled(), torch.use_deterministic_algorithms),
    }
    for owner, names in (
        (cudnn, ("enabled", "benchmark", "deterministic", "allow_tf32")),
        (products, ("allow_tf32", "allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction")),
    ):
        for name in names:
            set_it = lambda value, owner=owner, name=name: setattr(owner, name, value)
            found[f"{id(owner)}.{name}"] = (getattr(owner, name), set_it)
    return found


def _owners():
    """Modules and classes whose functions references use."""
    classes = [value for value in vars(torch.nn).values() if isinstance(value, type)]
    return [*_MODULES, torch.Tensor, torch.Generator, np.random, *classes]


class TorchState:
    """The state at the time of its making."""

    def __init__(self):
        self._settings = _settings()
        self._owners = [(owner, {name: v for name, v in vars(owner).items() if callable(v)}) for owner in _owners()]

    def restore(self):
        """Puts the settings back. False if a function or class was exchanged for another one: not to be mended here."""
        now = _settings()
        for name, (value, set_it) in self._settings.items():
            if now[name][0] != value:
                set_it(value)
        torch.set_default_device(None)
        return all(
            vars(owner).get(name) is value for owner, functions in self._owners for name, value in functions.items()
        )
