"""Compares a candidate's outputs with the expected ones, and keeps expected outputs out of reach until they are needed."""

import math
import os

import numpy as np
import torch

from plain_torch import plain_torch


class Mismatch:
    """Why outputs differ. `kind` is one of value, nan, shape, dtype, count, type, device, input_changed."""

    def __init__(self, output, kind, message, max_error=None, bad=0, elements=0, want="", got=""):
        self.output = output
        self.kind = kind
        self.message = message
        self.max_error = max_error if max_error is not None and math.isfinite(max_error) else None
        self.bad_elements = bad
        self.elements = elements
        self.want = str(want)
        self.got = str(got)

    def as_dict(self, trial):
        return {
            "trial": trial,
            "output": self.output,
            "kind": self.kind,
            "max_error": self.max_error,
            "bad_elements": self.bad_elements,
            "elements": self.elements,
            "want": self.want,
            "got": self.got,
        }


def flatten(value, path=""):
    """[(path, leaf)] of nested lists, tuples and dictionaries."""
    if isinstance(value, (list, tuple)):
        return [leaf for i, item in enumerate(value) for leaf in flatten(item, f"{path}[{i}]")]
    if isinstance(value, dict):
        return [leaf for key, item in value.items() for leaf in flatten(item, f"{path}[{key!r}]")]
    return [(path, value)]


def _type_name(value):
    return "tensor" if isinstance(value, torch.Tensor) else "number" if _is_number(value) else type(value).__name__


def _is_number(value):
    return isinstance(value, (int, float, bool))


def compare_tensors(index, want, got, atol, rtol):
    """(Mismatch or None, largest absolute error). Tensors on one device; an element is right if
    |got - want| <= atol + rtol * |want|, if both are NaN, or if they are equal (infinities)."""
    want, got = want.detach(), got.detach()
    if tuple(want.shape) != tuple(got.shape):
        return (
            Mismatch(
                index,
                "shape",
                f"output {index} has shape {tuple(got.shape)}, expected {tuple(want.shape)}",
                want=tuple(want.shape),
                got=tuple(got.shape),
            ),
            None,
        )
    if want.dtype != got.dtype:
        names = [str(t.dtype).removeprefix("torch.") for t in (want, got)]
        return (
            Mismatch(
                index, "dtype", f"output {index} has type {names[1]}, expected {names[0]}", want=names[0], got=names[1]
            ),
            None,
        )
    if want.numel() == 0:
        return None, 0.0
    if want.dtype == torch.float32:  # the common case, four times as fast; anything odd goes the long way
        error = (got - want).abs()
        if bool((error <= atol + rtol * want.abs()).all()) and bool(want.isfinite().all()):
            return None, float(error.max())
    wide = torch.complex128 if want.is_complex() else torch.float64
    a, b = want.to(wide), got.to(wide)
    error = (b - a).abs()
    same = (a == b) | (torch.isnan(a) & torch.isnan(b))
    error = torch.where(same, torch.zeros_like(error), error)
    bad = ~same & (~(error <= atol + rtol * a.abs()) | torch.isinf(a))
    largest = float(torch.nan_to_num(error, nan=math.inf, posinf=math.inf).max())
    count = int(bad.sum())
    if not count:
        return None, largest
    where = int(torch.argmax(bad.reshape(-1).to(torch.int8)))
    want_value, got_value = a.reshape(-1)[where].item(), b.reshape(-1)[where].item()
    is_nan = bool((torch.isnan(b) & ~torch.isnan(a)).any())
    message = (
        f"output {index}: {count} of {want.numel()} elements differ, largest error {largest:.3g}; "
        f"element {where} is {got_value:.6g}, expected {want_value:.6g}"
    )
    return (
        Mismatch(
            index,
            "nan" if is_nan else "value",
            message,
            largest,
            count,
            want.numel(),
            f"{want_value:.9g}",
            f"{got_value:.9g}",
        ),
        largest,
    )


@plain_torch()
def compare_outputs(want, got, atol, rtol):
    """(Mismatch or None, largest absolute error or None) of two outputs of forward."""
    wants, gots = flatten(want), flatten(got)
    if len(wants) != len(gots):
        return Mismatch(0, "count", f"{len(gots)} outputs, expected {len(wants)}", want=len(wants), got=len(gots)), None
    largest = None
    for index, ((_, a), (_, b)) in enumerate(zip(wants, gots)):
        if _type_name(a) != _type_name(b):
            return (
                Mismatch(
                    index,
                    "type",
                    f"output {index} is a {_type_name(b)}, expected a {_type_name(a)}",
                    want=_type_name(a),
                    got=_type_name(b),
                ),
                largest,
            )
        if isinstance(a, torch.Tensor):
            if a.device != b.device:
                return (
                    Mismatch(
                        index,
                        "device",
                        f"output {index} is on {b.device}, expected {a.device}",
                        want=a.device,
                        got=b.device,
                    ),
                    largest,
                )
            if b.layout != torch.strided or a.layout != torch.strided:
                return (
                    Mismatch(
                        index,
                        "type",
                        f"output {index} has layout {b.layout}, expected {a.layout}",
                        want=a.layout,
                        got=b.layout,
                    ),
                    largest,
                )
            mismatch, error = compare_tensors(index, a, b, atol, rtol)
        elif _is_number(a):
            mismatch, error = compare_tensors(index, torch.tensor(float(a)), torch.tensor(float(b)), atol, rtol)
        else:
            error = 0.0
            mismatch = None if a == b else Mismatch(index, "value", f"output {index} is {b!r:.80}, expected {a!r:.80}")
        largest = error if largest is None else largest if error is None else max(largest, error)
        if mismatch is not None:
            return mismatch, largest
    return None, largest


class Store:
    """Keeps nested structures of CPU tensors as bytes in an anonymous file: no tensor object stays alive meanwhile, so
    that neither the garbage collector's lists nor reused memory hold the values."""

    def __init__(self):
        self._file = os.fdopen(os.memfd_create("store"), "w+b")

    def close(self):
        self._file.close()

    @plain_torch()
    def put(self, value):
        """A key for `get`."""
        return self._put(value)

    def _put(self, value):
        if isinstance(value, torch.Tensor):
            dense = value.detach().contiguous() if value.layout == torch.strided else value
            if dense.layout != torch.strided or dense.device.type != "cpu" or dense.is_quantized:
                return ("object", value)
            raw = dense.reshape(-1).view(torch.uint8) if dense.numel() else torch.empty(0, dtype=torch.uint8)
            offset = self._file.seek(0, os.SEEK_END)
            self._file.write(memoryview(raw.numpy()))
            return ("tensor", dense.dtype, tuple(value.shape), tuple(value.stride()), offset, raw.numel())
        if isinstance(value, (list, tuple)):
            return (type(value) if type(value) in (list, tuple) else tuple, [self._put(item) for item in value])
        if isinstance(value, dict):
            return (dict, {key: self._put(item) for key, item in value.items()})
        return ("object", value)

    @plain_torch()
    def get(self, key):
        """A fresh copy of what was put."""
        return self._get(key)

    def _get(self, key):
        kind = key[0]
        if kind == "tensor":
            _, dtype, shape, stride, offset, size = key
            self._file.seek(offset)
            data = bytearray(self._file.read(size))
            flat = torch.frombuffer(data, dtype=torch.uint8).view(dtype) if size else torch.empty(0, dtype=dtype)
            dense = flat.reshape(shape)
            if dense.stride() == stride or dense.numel() == 0:
                return dense.clone()
            return torch.empty_strided(shape, stride, dtype=dtype).copy_(dense)
        if kind == "object":
            return key[1]
        if kind is dict:
            return {name: self._get(item) for name, item in key[1].items()}
        return kind(self._get(item) for item in key[1])


@plain_torch()
def same_bits(a, b):
    """Whether two structures hold bitwise the same tensors."""
    for (_, x), (_, y) in zip(flatten(a), flatten(b)):
        if isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor) and x.layout == torch.strided:
            if x.shape != y.shape or x.dtype != y.dtype:
                return False
            if not np.array_equal(
                x.contiguous().reshape(-1).view(torch.uint8).numpy(),
                y.contiguous().reshape(-1).view(torch.uint8).numpy(),
            ):
                return False
    return True
