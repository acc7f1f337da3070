"""Element types: what array holds a value of a Triton type, how it is rounded, and how it lies in memory.

bf16 and fp8 values are held in float32 arrays that contain only representable numbers: arithmetic is float32 arithmetic
followed by one rounding, which is what the GPU does. All other types have a numpy type of their own.
"""

import numpy as np
import torch

from failures import NotExecutable

FP8 = {
    "f8E4M3FN": (torch.float8_e4m3fn, 448.0),
    "f8E5M2": (torch.float8_e5m2, 57344.0),
    "f8E4M3FNUZ": (torch.float8_e4m3fnuz, 240.0),
    "f8E5M2FNUZ": (torch.float8_e5m2fnuz, 57344.0),
}

_VALUE_TYPES = {
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "index": np.int64,
    "f16": np.float16,
    "bf16": np.float32,
    "f32": np.float32,
    "f64": np.float64,
    "ptr": np.int64,
}
_MEMORY_TYPES = {"i1": np.uint8, "bf16": np.uint16, "ptr": np.int64}


def value_dtype(elem):
    """numpy type of the array that holds values of this element type."""
    if elem in FP8:
        return np.dtype(np.float32)
    if elem not in _VALUE_TYPES:
        raise NotExecutable(f"element type {elem} is not supported")
    return np.dtype(_VALUE_TYPES[elem])


def memory_dtype(elem):
    """numpy type of the bits in memory."""
    if elem in FP8:
        return np.dtype(np.uint8)
    return np.dtype(_MEMORY_TYPES[elem]) if elem in _MEMORY_TYPES else value_dtype(elem)


def bits(elem):
    """Width in bits (1 for i1)."""
    return 1 if elem == "i1" else memory_dtype(elem).itemsize * 8


def is_float(elem):
    return elem[0] == "f" or elem == "bf16"


def round_bf16(x):
    """float array -> float32 array of bf16 numbers, to nearest even; NaN stays NaN."""
    x = np.ascontiguousarray(x, dtype=np.float32)
    u = x.view(np.uint32)
    rounded = (u + np.uint32(0x7FFF) + ((u >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    result = rounded.view(np.float32)
    nan = np.isnan(x)
    return np.where(nan, np.float32(np.nan), result) if nan.any() else result


def truncate_bf16(x):
    """float array -> float32 array of bf16 numbers, towards zero."""
    x = np.ascontiguousarray(x, dtype=np.float32)
    return (x.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def _fp8_bits(x, elem):
    torch_type, largest = FP8[elem]
    clipped = np.clip(np.ascontiguousarray(x, dtype=np.float32), -largest, largest)
    return torch.from_numpy(clipped).to(torch_type).view(torch.uint8).numpy()


_fp8_tables = {}


def _fp8_values(raw, elem):
    if elem not in _fp8_tables:
        codes = torch.arange(256, dtype=torch.int32).to(torch.uint8)
        _fp8_tables[elem] = codes.view(FP8[elem][0]).float().numpy()
    return _fp8_tables[elem][raw]


def to_float(x, elem):
    """Any float or integer array -> array of the float type `elem`, rounded to nearest even."""
    if elem == "bf16":
        return round_bf16(x)
    if elem in FP8:
        return _fp8_values(_fp8_bits(x, elem), elem)
    return np.asarray(x).astype(value_dtype(elem), copy=False)


def from_memory(raw, elem):
    """Array of memory bits -> array of values."""
    if elem == "bf16":
        return (raw.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if elem in FP8:
        return _fp8_values(raw, elem)
    return raw != 0 if elem == "i1" else raw


def to_memory(values, elem):
    """Array of values -> array of memory bits."""
    if elem == "bf16":
        return (np.ascontiguousarray(values, dtype=np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    if elem in FP8:
        return _fp8_bits(values, elem)
    return values.astype(np.uint8) if elem == "i1" else values


def join_bits(parts, width):
    """(..., n) array of unsigned numbers -> (...) array of `width` bits, the first number in the lowest ones."""
    joined, size = np.zeros(parts.shape[:-1], np.uint64), parts.dtype.itemsize * 8
    for i in range(parts.shape[-1]):
        joined |= parts[..., i].astype(np.uint64) << np.uint64(i * size)
    return joined.astype(f"u{width // 8}")


def split_bits(joined, count, width):
    """(...) array -> (..., count) array of unsigned numbers of `width` bits, the lowest bits first."""
    joined = joined.astype(np.uint64)
    return np.stack([(joined >> np.uint64(i * width)).astype(f"u{width // 8}") for i in range(count)], axis=-1)


def rounder(elem):
    """Function that brings an arithmetic result back to the type, or None where numpy's own type does it."""
    return (lambda x: to_float(x, elem)) if elem == "bf16" or elem in FP8 else None


def bitcast(x, source, target):
    """Reinterprets values of one element type as values of another of the same width."""
    raw = np.ascontiguousarray(to_memory(x, source))
    return from_memory(raw.view(memory_dtype(target)), target)


def literal(text, elem):
    """One number as MLIR prints it ('1.0e+00', '0x7F800000', 'true', '-3') -> 0-d array of the value type."""
    text = text.strip()
    if text in ("true", "false"):
        return np.asarray(text == "true", dtype=value_dtype(elem))
    if is_float(elem):
        if text.startswith(("0x", "0X")):
            width = memory_dtype(elem)
            raw = np.asarray(int(text, 16), dtype=f"u{width.itemsize}").view(width)
            return np.asarray(from_memory(raw.reshape(1), elem)[0])
        return np.asarray(to_float(np.asarray([float(text)]), elem)[0])
    return integer(int(text, 0), elem).reshape(())


def integer(number, elem):
    """A Python integer -> 1-element array of the integer type, wrapped around."""
    if elem == "i1":
        return np.array([bool(number)])
    width = bits(elem)
    number &= (1 << width) - 1
    return np.array([number - (1 << width) if number >> (width - 1) else number], dtype=value_dtype(elem))
