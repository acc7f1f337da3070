"""Custom operators that say "cuda", for machines without one: what is registered for CUDA runs, what is for the CPU does not.

`stubs()` gives (owner, name, replacement) for fake_cuda.
"""

import torch
from torch._library.custom_ops import CustomOpDef

import operators

_custom_op, _impl, _register_kernel = torch.library.custom_op, torch.library.impl, CustomOpDef.register_kernel
_KEYS = {"CUDA": "CPU"}  # dispatch keys


def _names(devices):
    return {devices.lower()} if isinstance(devices, str) else {name.lower() for name in devices or ()}


def _unused(function=None):
    """Registers nothing, also as a decorator."""
    return (lambda f: f) if function is None else function


def custom_op(name, fn=None, /, *, device_types=None, **options):
    if _names(device_types) <= {"cpu", "cuda"}:  # then what is registered for CUDA comes first
        device_types = None
    return _custom_op(name, fn, device_types=device_types, **options)


def register_kernel(self, device_types, fn=None, /):
    names = _names(device_types)
    if names == {"cpu"}:
        return _unused(fn)
    return _register_kernel(self, "cpu" if "cuda" in names else device_types, fn)


def impl(qualname, types, func=None, **options):
    if not isinstance(qualname, str):  # a Library: the older form, impl(library, name, key)
        return _impl(qualname, types, *(() if func is None else (func,)), **options)
    names = _names(types)
    if names == {"cpu"}:
        return _unused(func)
    return _impl(qualname, "cpu" if "cuda" in names else types, func, **options)


def library_impl(self, op_name, fn, dispatch_key="", **options):
    dispatch_key = dispatch_key or self.dispatch_key
    taken = self.__dict__.setdefault("_ops_for_cuda", set())
    if dispatch_key == "CPU" and op_name in taken:
        return None
    if dispatch_key == "CUDA":
        taken.add(op_name)
        options["allow_override"] = True
    return operators.register(self, op_name, fn, _KEYS.get(dispatch_key, dispatch_key), **options)


def stubs():
    return [
        (torch.library, "custom_op", custom_op),
        (torch.library, "impl", impl),
        (torch.library.Library, "impl", library_impl),
        (CustomOpDef, "register_kernel", register_kernel),
    ]
