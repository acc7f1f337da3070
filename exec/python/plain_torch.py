"""torch without any mode: what our own code runs under while a candidate's world is faked and watched."""

import contextlib

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes


class _Noticing(TorchFunctionMode):
    called = False

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.called = True
        return function(*args, **(kwargs or {}))


def check_modes():
    """RuntimeError where function modes are off: what is made there would be made without the device that was set, by
    another generator of random numbers."""
    with _Noticing() as noticing:
        torch.empty(0)
    if not noticing.called:
        raise RuntimeError("inputs and weights are made while torch's function modes are off")


@contextlib.contextmanager
def plain_torch():
    """Inside it no function mode and no dispatch mode is active. Also usable as a decorator."""
    with torch._C.DisableTorchFunction(), _disable_current_modes():
        yield
