"""Elementwise operations of Triton IR (arith, math, libdevice and a few of tt) as functions on numpy arrays.

`build(op, types)` returns a function of the operands' arrays. Arrays have the number of programs (or 1) as first
dimension, so that one call computes an operation for all programs of a launch.
"""

import numpy as np

import libdevice
import numeric
from math_functions import MATH, mulhi, unsigned


def _on_unsigned(f):
    def g(a, b):
        result = f(unsigned(a), unsigned(b))
        return result.astype(np.bool_) if a.dtype == np.bool_ else result.view(a.dtype)

    return g


def _compare_unsigned(f):
    return lambda a, b: f(unsigned(a), unsigned(b))


def _divsi(a, b):
    return ((a - np.fmod(a, b)) // b).astype(a.dtype, copy=False)


_INTEGER = {
    "addi": np.add,
    "subi": np.subtract,
    "muli": np.multiply,
    "divsi": _divsi,
    "remsi": np.fmod,
    "floordivsi": np.floor_divide,
    "ceildivsi": lambda a, b: -(-a // b),
    "divui": _on_unsigned(np.floor_divide),
    "remui": _on_unsigned(np.remainder),
    "ceildivui": _on_unsigned(lambda a, b: (a + (b - a.dtype.type(1))) // b),
    "andi": np.bitwise_and,
    "ori": np.bitwise_or,
    "xori": np.bitwise_xor,
    "shli": np.left_shift,
    "shrsi": np.right_shift,
    "shrui": _on_unsigned(np.right_shift),
    "maxsi": np.maximum,
    "minsi": np.minimum,
    "maxui": _on_unsigned(np.maximum),
    "minui": _on_unsigned(np.minimum),
}
_BOOLEAN = {
    "addi": np.logical_xor,
    "subi": np.logical_xor,
    "muli": np.logical_and,
    "maxsi": np.logical_and,
    "minsi": np.logical_or,
}
_FLOAT = {
    "addf": np.add,
    "subf": np.subtract,
    "mulf": np.multiply,
    "divf": np.divide,
    "remf": np.fmod,
    "maxnumf": np.fmax,
    "minnumf": np.fmin,
    "maximumf": np.maximum,
    "minimumf": np.minimum,
    "negf": np.negative,
}
_COMPARE_INT = {
    "eq": np.equal,
    "ne": np.not_equal,
    "slt": np.less,
    "sle": np.less_equal,
    "sgt": np.greater,
    "sge": np.greater_equal,
    "ult": _compare_unsigned(np.less),
    "ule": _compare_unsigned(np.less_equal),
    "ugt": _compare_unsigned(np.greater),
    "uge": _compare_unsigned(np.greater_equal),
}
_COMPARE_FLOAT = {
    "oeq": np.equal,
    "ogt": np.greater,
    "oge": np.greater_equal,
    "olt": np.less,
    "ole": np.less_equal,
    "one": lambda a, b: (a < b) | (a > b),
    "ord": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "ueq": lambda a, b: ~((a < b) | (a > b)),
    "ugt": lambda a, b: ~(a <= b),
    "uge": lambda a, b: ~(a < b),
    "ult": lambda a, b: ~(a >= b),
    "ule": lambda a, b: ~(a > b),
    "une": np.not_equal,
    "uno": lambda a, b: np.isnan(a) | np.isnan(b),
    "true": lambda a, b: np.ones_like(a == b),
    "false": lambda a, b: np.zeros_like(a == b),
}
_CASTS = {
    "extsi",
    "extui",
    "trunci",
    "extf",
    "truncf",
    "sitofp",
    "uitofp",
    "fptosi",
    "fptoui",
    "index_cast",
    "index_castui",
}
_TT = {"tt.precise_divf": np.divide, "tt.precise_sqrt": np.sqrt, "tt.mulhiui": lambda a, b: mulhi(a, b, False)}


def _float_to_integer(x, target, signed):
    """Towards zero; out of range saturates and NaN gives 0, as the GPU's conversion does."""
    width = numeric.bits(target)
    low, high = (-(2.0 ** (width - 1)), 2.0 ** (width - 1)) if signed else (0.0, 2.0**width)
    wide = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=high, neginf=low))
    inside = np.clip(wide, low, np.nextafter(high, 0))
    if width == 1:
        return inside != 0
    kind = np.dtype(f"{'i' if signed else 'u'}{width // 8}")
    return (
        np.minimum(inside, np.iinfo(kind).max).astype(kind).view(f"i{width // 8}")
        if width < 64
        else inside.astype(kind).view(np.int64)
    )


def _cast(name, source, target):
    dtype = numeric.value_dtype(target)
    if name in ("extsi", "index_cast") and source == "i1":
        return lambda x: -(x.astype(dtype))
    if name in ("extsi", "index_cast"):
        return lambda x: x.astype(dtype)
    if name in ("extui", "index_castui"):
        return lambda x: unsigned(x).astype(dtype)
    if name == "trunci":
        return (lambda x: (x & x.dtype.type(1)).astype(np.bool_)) if target == "i1" else (lambda x: x.astype(dtype))
    if name in ("extf", "truncf"):
        return lambda x: numeric.to_float(x, target)
    if name == "sitofp":
        return (
            (lambda x: numeric.to_float(-(x.astype(np.float32)), target))
            if source == "i1"
            else (lambda x: numeric.to_float(x, target))
        )
    if name == "uitofp":
        return lambda x: numeric.to_float(unsigned(x), target)
    return lambda x: _float_to_integer(x, target, name == "fptosi")


def _clamp(op):
    if "propagateNan = all" in op.body:
        return lambda x, low, high: np.minimum(np.maximum(x, low), high)
    return lambda x, low, high: np.fmin(np.fmax(x, low), high)


def _fp_to_fp(op, source, target):
    if "rtz" in op.body and target == "bf16" and numeric.bits(source) >= 32:
        return numeric.truncate_bf16
    return lambda x: numeric.to_float(x, target)


def _select(op, types):
    condition, value = types[op.operands[0]], op.types[0]
    if condition.shape or not value.shape:
        return lambda c, a, b: np.where(c, a, b)
    ones = (1,) * len(value.shape)
    return lambda c, a, b: np.where(c.reshape((-1,) + ones), a, b)


def _rounded(f, elem):
    """`f` with its result brought to the element type."""
    fix = numeric.rounder(elem)
    if fix is not None:
        return lambda *a: fix(f(*a))
    return f


def _as_type(f, elem):
    """Like _rounded, for functions that may return another numpy type."""
    if numeric.is_float(elem):
        return lambda *a: numeric.to_float(f(*a), elem)
    return lambda *a: np.asarray(f(*a)).astype(numeric.value_dtype(elem), copy=False)


def build(op, types):
    """(function of the operands' arrays, floating point operations per element), or None if not elementwise."""
    dialect, _, name = op.name.partition(".")
    target = op.types[0].elem if op.types else ""
    source = types[op.operands[0]].elem if op.operands else ""
    if dialect == "arith":
        if name in _FLOAT:
            return _rounded(_FLOAT[name], target), 1
        if name in _INTEGER:
            return (_BOOLEAN.get(name, _INTEGER[name]) if target == "i1" else _INTEGER[name]), 0
        if name == "cmpi":
            return _COMPARE_INT[op.body.split(",")[0].strip()], 0
        if name == "cmpf":
            return _COMPARE_FLOAT[op.body.split(",")[0].split()[0]], 1
        if name in _CASTS:
            return _cast(name, source, target), 0
        if name == "select":
            return _select(op, types), 0
    elif dialect == "math" and name in MATH:
        return _as_type(MATH[name], target), 2 if name == "fma" else 1
    elif op.name in _TT:
        return _as_type(_TT[op.name], target), 1
    elif op.name == "tt.clampf":
        return _rounded(_clamp(op), target), 2
    elif op.name == "tt.fp_to_fp":
        return _fp_to_fp(op, source, target), 0
    elif op.name == "tt.extern_elementwise":
        return _as_type(libdevice.find(op), target), 1
    elif op.name in ("tt.bitcast", "arith.bitcast") and source != "ptr":
        return (lambda x: numeric.bitcast(x, source, target)), 0
    if op.name == "arith.bitcast":
        return (lambda x: numeric.bitcast(x, source, target)), 0
    return None
