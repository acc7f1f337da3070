"""CUDA's libdevice as functions on numpy arrays: `find(symbol)` for the name without "__nv_" and without the suffix of its type.

Functions of mathematics are in math_functions; here are the families that differ by rounding (`fadd_rd`), conversions
(`float2int_rn`), bits and what is rare. Rounding other than to nearest is exact for float32; float64 is rounded to nearest.
"""

import re

import numpy as np
import torch

from failures import NotExecutable
from math_functions import LIBDEVICE, mulhi, unsigned

_BASIC = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "fma": lambda a, b, c: a * b + c,
    "rcp": lambda x: 1 / x,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
}
_TO_WHOLE = {"n": np.rint, "d": np.floor, "u": np.ceil, "z": np.trunc}
_INTEGERS = {"int": np.int32, "uint": np.uint32, "ll": np.int64, "ull": np.uint64}
_FLOATS = {"float": np.float32, "double": np.float64}
_BASIC_NAME = re.compile(r"[fd]?(add|sub|mul|div|fma|rcp|sqrt|rsqrt)f?_r([nduz])")
_CONVERSION = re.compile(r"(float|double|int|uint|ll|ull)2(float|double|int|uint|ll|ull)_r([nduz])")


def _directed(exact, mode):
    """float64 array -> float32 array rounded down, up or towards zero."""
    near = exact.astype(np.float32)
    toward = np.sign(-exact) * np.inf if mode == "z" else np.full(exact.shape, -np.inf if mode == "d" else np.inf)
    wide = near.astype(np.float64)
    beyond = np.where(toward < 0, wide > exact, wide < exact) & (toward != 0)
    return np.where(beyond, np.nextafter(near, toward.astype(np.float32)), near)


def _basic(function, mode):
    def f(*arrays):
        if mode == "n" or arrays[0].dtype != np.float32:
            return function(*arrays)
        return _directed(np.asarray(function(*[a.astype(np.float64) for a in arrays])), mode)

    return f


def _to_integer(x, dtype, mode):
    whole = _TO_WHOLE[mode](np.nan_to_num(x.astype(np.float64), nan=0.0))
    info = np.iinfo(dtype)
    inside = (whole > info.min) & (whole < float(info.max))
    result = np.where(inside, whole, 0).astype(dtype)
    result = np.where(whole >= float(info.max), dtype(info.max), np.where(whole <= info.min, dtype(info.min), result))
    return result.view(np.dtype(f"i{result.dtype.itemsize}"))


def _convert(source, target, mode):
    if source in _FLOATS:
        return lambda x: _to_integer(x, _INTEGERS[target], mode)
    from_unsigned = source.startswith("u")

    def f(x):
        x = unsigned(x) if from_unsigned else x
        if _FLOATS[target] is np.float64 or mode == "n":
            return x.astype(_FLOATS[target])
        return _directed(x.astype(np.float64), mode)

    return f


def _bits(dtype):
    return lambda x: np.ascontiguousarray(x).view(dtype)


def _count_leading_zeros(x):
    width = x.dtype.itemsize * 8
    rest, zeros = unsigned(x).astype(np.uint64), np.full(x.shape, width, np.int32)
    for bit in range(width):
        zeros = np.where((rest >> np.uint64(bit)) & np.uint64(1), np.int32(width - 1 - bit), zeros)
    return zeros


def _find_first_set(x):
    lowest = x & -x
    return np.where(x == 0, 0, x.dtype.itemsize * 8 - _count_leading_zeros(lowest)).astype(np.int32)


def _reverse_bits(x):
    rest, result = unsigned(x), np.zeros_like(unsigned(x))
    one = rest.dtype.type(1)
    for _ in range(x.dtype.itemsize * 8):
        result = (result << one) | (rest & one)
        rest = rest >> one
    return result.view(x.dtype)


def _byte_perm(a, b, selector):
    both = unsigned(a).astype(np.uint64) | (unsigned(b).astype(np.uint64) << np.uint64(32))
    result = np.zeros(np.broadcast(a, b, selector).shape, np.uint64)
    for byte in range(4):
        which = (unsigned(selector).astype(np.uint64) >> np.uint64(4 * byte)) & np.uint64(7)
        result |= ((both >> (which * np.uint64(8))) & np.uint64(255)) << np.uint64(8 * byte)
    return result.astype(np.uint32).view(np.int32)


def _norm(*parts):
    return np.sqrt(sum(p.astype(np.float64) ** 2 for p in parts))


def _wide(function):
    """In 64 bits; the caller brings the result back to the type."""
    return lambda *arrays: function(*[a.astype(np.int64) for a in arrays])


def _wide_unsigned(function):
    return lambda *arrays: function(*[unsigned(a).astype(np.int64) for a in arrays])


def _torch64(function):
    return lambda x: function(torch.from_numpy(x.astype(np.float64))).numpy()


def _low24(x, signed):
    x = x.astype(np.int64) & 0xFFFFFF
    return np.where(x >> 23, x - (1 << 24), x) if signed else x


_MORE = {
    "float_as_int": _bits(np.int32),
    "float_as_uint": _bits(np.int32),
    "int_as_float": _bits(np.float32),
    "uint_as_float": _bits(np.float32),
    "double_as_longlong": _bits(np.int64),
    "longlong_as_double": _bits(np.float64),
    "double2hiint": lambda x: _bits(np.int64)(x) >> 32,
    "double2loint": lambda x: (_bits(np.int64)(x) & 0xFFFFFFFF).astype(np.uint32).view(np.int32),
    "hiloint2double": lambda hi, lo: _bits(np.float64)((hi.astype(np.int64) << 32) | unsigned(lo).astype(np.int64)),
    "clz": _count_leading_zeros,
    "ffs": _find_first_set,
    "brev": _reverse_bits,
    "byte_perm": _byte_perm,
    "nextafter": np.nextafter,
    "ilogb": lambda x: np.floor(np.log2(np.abs(x.astype(np.float64)))),
    "scalbn": np.ldexp,
    "llrint": np.rint,
    "llround": lambda x: np.copysign(np.floor(np.abs(x.astype(np.float64)) + 0.5), x),
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "rcp64h": lambda x: 1 / x,
    "rhypot": lambda a, b: 1 / np.hypot(a, b),
    "norm3d": _norm,
    "norm4d": _norm,
    "rnorm3d": lambda *parts: 1 / _norm(*parts),
    "rnorm4d": lambda *parts: 1 / _norm(*parts),
    "mul24": lambda a, b: _low24(a, True) * _low24(b, True),
    "umul24": lambda a, b: _low24(a, False) * _low24(b, False),
    "mul64hi": lambda a, b: mulhi(a, b, True),
    "umul64hi": lambda a, b: mulhi(a, b, False),
    "hadd": _wide(lambda a, b: (a + b) >> 1),
    "rhadd": _wide(lambda a, b: (a + b + 1) >> 1),
    "uhadd": _wide_unsigned(lambda a, b: (a + b) >> 1),
    "urhadd": _wide_unsigned(lambda a, b: (a + b + 1) >> 1),
    "sad": lambda a, b, c: np.abs(a.astype(np.int64) - b) + c,
    "usad": lambda a, b, c: _wide_unsigned(lambda x, y: np.abs(x - y))(a, b) + c,
    "erfcinv": _torch64(lambda x: torch.special.erfinv(1 - x)),
    "y0": _torch64(torch.special.bessel_y0),
    "y1": _torch64(torch.special.bessel_y1),
}


def _named(name):
    if LIBDEVICE.get(name) is not None:
        return LIBDEVICE[name]
    if name in _MORE:
        return _MORE[name]
    basic = _BASIC_NAME.fullmatch(name)
    if basic:
        return _basic(_BASIC[basic.group(1)], basic.group(2))
    conversion = _CONVERSION.fullmatch(name)
    if conversion and conversion.group(1) != conversion.group(2):
        source, target, mode = conversion.groups()
        if source in _FLOATS and target in _FLOATS:
            return lambda x: _directed(x, mode) if mode != "n" else x.astype(_FLOATS[target])
        return _convert(source, target, mode)
    return None


def find(op):
    """Function on arrays for a tt.extern_elementwise operation. NotExecutable names one that has no model."""
    symbol = (op.attribute("symbol") or "").removeprefix("__nv_")
    for name in (
        symbol,
        symbol[:-1] if symbol.endswith(("f", "d")) else "",
        symbol[:-2] if symbol.endswith("ll") else "",
    ):
        function = _named(name)
        if function is not None:
            return function
    raise NotExecutable(f"libdevice function __nv_{symbol} has no model", op.loc)
