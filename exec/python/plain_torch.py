"""torch without any mode: what our own code runs under while a candidate's world is faked and watched."""

import contextlib

import torch
from torch.utils._python_dispatch import _disable_current_modes


@contextlib.contextmanager
def plain_torch():
    """Inside it no function mode and no dispatch mode is active. Also usable as a decorator."""
    with torch._C.DisableTorchFunction(), _disable_current_modes():
        yield
