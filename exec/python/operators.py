"""What a program registers as implementations of operators through torch.library.Library.

A handler of a mode runs without its mode, so that what such an operator does would not be seen. AtenCounter calls the
function that is found here itself instead; one that torch calls above it, as for Autograd, finds the function mode of
the audit entered again.
"""

import contextlib
import functools

import torch

_library_impl = torch.library.Library.impl
_DEVICES = {"cpu": "CPU", "cuda": "CUDA"}  # dispatch keys
_ANY_DEVICE = ("CompositeExplicitAutograd", "CompositeImplicitAutograd")
_audits = []  # what makes the function mode of each audit that goes on
_implementations = {}  # "namespace::name.overload" -> {dispatch key: function, None if it cannot be called as it is}


def register(library, op_name, fn, dispatch_key="", **options):
    """Library.impl that notes what is registered."""
    is_function = callable(fn) and fn is not torch.library.fallthrough_kernel
    result = _library_impl(library, op_name, _audited(fn) if is_function else fn, dispatch_key, **options)
    callable_as_it_is = is_function and not options.get("with_keyset")
    key = dispatch_key or library.dispatch_key or "CompositeImplicitAutograd"
    _implementations.setdefault(_full_name(library, op_name), {})[key] = fn if callable_as_it_is else None
    return result


def _audited(fn):
    @functools.wraps(fn)
    def audited(*args, **kwargs):
        if not _audits or torch._C._len_torch_function_stack() > 0:
            return fn(*args, **kwargs)
        with _audits[-1]():
            return fn(*args, **kwargs)

    return audited


@contextlib.contextmanager
def audit(inside):
    """Registered functions run in a context of inside() meanwhile, where no function mode is entered."""
    _audits.append(inside)
    try:
        yield
    finally:
        _audits.pop()


@contextlib.contextmanager
def noted():
    """Registrations inside are noted."""
    torch.library.Library.impl = register
    try:
        yield
    finally:
        torch.library.Library.impl = _library_impl


def find(function, device):
    """(whether the program registered it, what it registered for tensors on `device` or None) of an OpOverload."""
    by_key = _implementations.get(_name_of(function._schema))
    if by_key is None:
        return False, None
    for key in (_DEVICES.get(device, device), *_ANY_DEVICE):
        if key in by_key:
            return True, by_key[key]
    return False, None


def _name_of(schema):
    return schema.name + (f".{schema.overload_name}" if schema.overload_name else "")


def _full_name(library, op_name):
    name = op_name if isinstance(op_name, str) else _name_of(op_name._schema)
    return name if "::" in name else f"{library.ns}::{name}"
