"""Nested Python values with their tensors as bytes in memory, and a description of their layout (docs/protocol.md)."""

import math
import mmap
import os

import numpy as np
import torch

from mock_config import MockConfig
from plain_torch import plain_torch
from populate import populate

ALIGNMENT = 64
# Element types that the supervisor can compare.
COMPARABLE = {
    getattr(torch, name)
    for name in (
        "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float8_e4m3fn float8_e5m2 float16 bfloat16 float32 "
        "float64 complex64 complex128"
    ).split()
}


def flatten(value, path=""):
    """[(path, leaf)] of nested lists, tuples, dictionaries and configurations."""
    if isinstance(value, (list, tuple)):
        return [leaf for i, item in enumerate(value) for leaf in flatten(item, f"{path}[{i}]")]
    if isinstance(value, (dict, MockConfig)):
        return [leaf for key, item in value.items() for leaf in flatten(item, f"{path}[{key!r}]")]
    return [(path, value)]


def tensors(value):
    return [leaf for _, leaf in flatten(value) if isinstance(leaf, torch.Tensor)]


def map_tensors(value, function):
    """The structure with `function` applied to its tensors."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, (list, tuple)):
        items = [map_tensors(item, function) for item in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, (dict, MockConfig)):
        items = {key: map_tensors(item, function) for key, item in value.items()}
        return items if isinstance(value, dict) else MockConfig(items)
    return value


@plain_torch()
def same(a, b):
    """Whether two structures hold bitwise the same tensors (NaN equals NaN)."""
    return all(x.shape == y.shape and _raw(x).equal(_raw(y)) for x, y in zip(tensors(a), tensors(b)))


def _raw(tensor):
    return tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8)


def _leaf(value):
    """Description of a value that is neither a container nor a tensor."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 1 << 63:
        return {"other": "int"}
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return {"value": kind(value)}
    if value is None:
        return {"value": None}
    if isinstance(value, complex):
        return {"complex": [repr(value.real), repr(value.imag)]}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    return {"other": type(value).__name__[:80]}


def _key(key):
    return key if key is None or isinstance(key, (str, bool)) or type(key) is int else repr(key)


def share_memory(a, b):
    """Whether two strided tensors have bytes in common: the same place and form, or dense ranges that overlap. Views of
    one buffer that interleave without meeting do not count."""
    if a is b:
        return True
    if not a.numel() or not b.numel() or a.layout != torch.strided or b.layout != torch.strided:
        return False
    if a.data_ptr() == b.data_ptr():
        return True
    if not a.is_contiguous() or not b.is_contiguous() or a.device != b.device:
        return False
    ends = [t.data_ptr() + t.numel() * t.element_size() for t in (a, b)]
    return a.data_ptr() < ends[1] and b.data_ptr() < ends[0]


class Describer:
    """Describes values; what becomes of their tensors is a subclass's `_store(tensor)`: an offset, or None."""

    @plain_torch()
    def put(self, value):
        """The value's description. A tensor that cannot be compared or does not fit has no offset in it."""
        return self._put(value)

    def _put(self, value):
        if isinstance(value, torch.Tensor):
            return {"tensor": self._tensor(value.detach())}
        if isinstance(value, (list, tuple)):
            return {"list" if isinstance(value, list) else "tuple": [self._put(item) for item in value]}
        if isinstance(value, (dict, MockConfig)):
            kind = "dict" if isinstance(value, dict) else "config"
            return {kind: [[_key(key), self._put(item)] for key, item in value.items()]}
        return _leaf(value)

    def _tensor(self, tensor):
        strided = tensor.layout == torch.strided
        description = {
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "shape": list(tensor.shape),
            "stride": list(tensor.stride()) if strided else [1] * tensor.dim(),
            "device": tensor.device.type,
            "layout": str(tensor.layout).removeprefix("torch."),
            "offset": None,
        }
        if strided and tensor.dtype in COMPARABLE and tensor.device.type in ("cpu", "cuda"):
            description["offset"] = self._store(tensor)
        return description


class Writer(Describer):
    """Puts values one behind the other into shared memory of a fixed size, given by its descriptor."""

    def __init__(self, fd):
        self._present = 0  # pages up to here were written before
        self._size = os.fstat(fd).st_size
        self._bytes = torch.frombuffer(mmap.mmap(fd, self._size), dtype=torch.uint8)
        self._end = 0

    @plain_torch()
    def put_flat(self, flat):
        """(offset of a dense tensor,): None if it does not fit."""
        return (self._store(flat),)

    def _store(self, tensor):
        start = aligned(self._end)
        size = tensor.numel() * tensor.element_size()
        if start + size > self._size:
            return None
        if size:
            dense = tensor.resolve_conj().resolve_neg().contiguous()
            place = self._bytes[start : start + size]
            if dense.device.type == "cuda" and start + size > self._present:
                populate(place)
                self._present = start + size
            place.copy_(dense.reshape(-1).view(torch.uint8))
            self._end = start + size
        return start


class Builder:
    """Makes values of descriptions; where a tensor's elements come from is a subclass's `_dense(node, dtype, size)`, a
    flat tensor that is nobody else's."""

    @plain_torch()
    def get(self, node):
        return self._get(node)

    def _get(self, node):
        ((kind, value),) = node.items()
        if kind == "tensor":
            return self._tensor(value)
        if kind in ("list", "tuple"):
            items = [self._get(item) for item in value]
            return items if kind == "list" else tuple(items)
        if kind == "dict":
            return {key: self._get(item) for key, item in value}
        if kind == "config":
            return MockConfig({key: self._get(item) for key, item in value})
        if kind == "value":
            return value
        if kind == "float":
            return float(value)
        if kind == "complex":
            return complex(*(float(part) for part in value))
        if kind == "dtype":
            return getattr(torch, value)
        if kind == "device":
            return torch.device(value)
        raise ValueError(f"a value of type {value} cannot be handed over")

    def _tensor(self, node):
        dtype, shape, stride = getattr(torch, node["dtype"]), node["shape"], node["stride"]
        if node["offset"] is None:
            raise ValueError(f"a tensor of type {node['dtype']} and layout {node['layout']} cannot be handed over")
        size = math.prod(shape) * dtype.itemsize
        dense = self._dense(node, dtype, size).reshape(shape)
        return _strided(dense, stride) if size else dense


def aligned(offset):
    """The next place where a tensor may lie."""
    return -(-offset // ALIGNMENT) * ALIGNMENT


def leaves_of(node):
    """[(kind, value)] of a description, in the order of flatten()."""
    ((kind, value),) = node.items()
    if kind in ("list", "tuple"):
        return [leaf for item in value for leaf in leaves_of(item)]
    if kind in ("dict", "config"):
        return [leaf for _, item in value for leaf in leaves_of(item)]
    return [(kind, value)]


def _strided(dense, stride):
    """The same values with these strides, where every element can have a place of its own."""
    if list(dense.stride()) == stride:
        return dense
    try:
        return torch.empty_strided(dense.shape, stride, dtype=dense.dtype, device=dense.device).copy_(dense)
    except RuntimeError:
        return dense  # elements shared one place (an expanded tensor); each has its own now
