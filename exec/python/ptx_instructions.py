"""What single PTX instructions do, on arrays of register contents (see ttir_asm).

`execute(name, operands, registers, where)`: `name` is an instruction with its modifiers ("fma.rn.f32"). Approximate
functions are computed to nearest. Rounding modes of arithmetic are ignored (they differ in the last bit), those of
conversions to integers are kept.
"""

import re

import numpy as np

import numeric
from failures import NotExecutable

_FLOAT_ELEMS = {"f16": "f16", "bf16": "bf16", "f32": "f32", "f64": "f64", "e4m3": "f8E4M3FN", "e5m2": "f8E5M2"}
_TYPE = re.compile(r"(?:[fbsu](?:8|16|32|64)|bf16|f16x2|bf16x2|pred|e4m3x2|e5m2x2|b128)$")
_UNARY = {
    "abs": np.abs,
    "neg": np.negative,
    "rcp": lambda x: 1 / x,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "ex2": np.exp2,
    "lg2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "not": np.invert,
    "cnot": lambda x: (x == 0).astype(x.dtype),
    "mov": lambda x: x,
}
_BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "min": np.fmin,
    "max": np.fmax,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "copysign": lambda a, b: np.copysign(b, a),  # the sign is that of the first
}
_COMPARE = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
    "equ": lambda a, b: ~((a < b) | (a > b)),
    "neu": np.not_equal,
    "ltu": lambda a, b: ~(a >= b),
    "leu": lambda a, b: ~(a > b),
    "gtu": lambda a, b: ~(a <= b),
    "geu": lambda a, b: ~(a < b),
    "num": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "nan": lambda a, b: np.isnan(a) | np.isnan(b),
}


def _width(kind):
    return int(re.sub(r"\D", "", kind.split("x")[0])) if kind[0] in "fbsu" else 8


def _decode(raw, kind):
    """Register bits -> values of the type, as (elements,) or (elements, 2) for a pair."""
    if kind == "pred":
        return raw
    pair = kind.endswith("x2")
    single = kind.removesuffix("x2")
    width = _width(single)
    values = numeric.split_bits(raw, 2 if pair else 1, width)
    values = values if pair else values[..., 0]
    if single in _FLOAT_ELEMS:
        elem = _FLOAT_ELEMS[single]
        return numeric.from_memory(values.view(numeric.memory_dtype(elem)), elem)
    return values.view(f"i{width // 8}") if single[0] == "s" else values


def _encode(values, kind):
    if kind == "pred":
        return values
    pair = kind.endswith("x2")
    single = kind.removesuffix("x2")
    width = _width(single)
    if single in _FLOAT_ELEMS:
        elem = _FLOAT_ELEMS[single]
        raw = np.ascontiguousarray(numeric.to_memory(numeric.to_float(values, elem), elem)).view(f"u{width // 8}")
    else:
        raw = np.asarray(values).astype(f"u{width // 8}")
    return numeric.join_bits(raw, 2 * width) if pair else raw


def _number(text, kind):
    """An immediate: 0f3F800000, 0d..., 1.5, -3, 0xff."""
    if text[:2] in ("0f", "0F") and len(text) == 10:
        value = np.array([int(text[2:], 16)], np.uint32).view(np.float32)
    elif text[:2] in ("0d", "0D") and len(text) == 18:
        value = np.array([int(text[2:], 16)], np.uint64).view(np.float64)
    elif re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)U?", text):
        number = int(text.rstrip("U"), 0)
        if kind[0] in "bsu":
            return np.array([number & ((1 << _width(kind)) - 1)], np.uint64)
        return np.array([number & (2**64 - 1)], np.uint64) if "x2" in kind else _encode(np.array([float(number)]), kind)
    elif re.fullmatch(r"-?\d*\.\d+(e[-+]?\d+)?", text, re.I):
        value = np.array([float(text)])
    else:
        raise KeyError(text)
    return _encode(value, kind) if kind[0] not in "bsu" else value.view(f"u{value.dtype.itemsize}")


def _read(text, kind, registers):
    if text.startswith("!"):
        return ~_read(text[1:], kind, registers)
    if text.startswith("-") and text[1:] in registers:
        return -_decode(registers[text[1:]], kind)
    raw = registers[text] if text in registers else _number(text, kind)
    return _decode(raw, kind)


def _convert(values, modifiers, target):
    if target in _FLOAT_ELEMS or target == "f32":
        result = np.clip(values, 0, 1) if "sat" in modifiers else values
        for mode, function in (("rni", np.rint), ("rmi", np.floor), ("rpi", np.ceil), ("rzi", np.trunc)):
            result = function(result) if mode in modifiers else result
        return result
    width = _width(target)
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if target[0] == "s" else (0, (1 << width) - 1)
    if values.dtype.kind == "f":
        rounding = {"rni": np.rint, "rmi": np.floor, "rpi": np.ceil}.get(next(iter(modifiers & {"rni", "rmi", "rpi"}), ""), np.trunc)
        whole = np.clip(rounding(np.nan_to_num(values.astype(np.float64))), low, high)
        big = whole >= 2.0**63
        return np.where(big, np.uint64(high), np.where(big, 0, whole).astype(np.int64).astype(np.uint64))
    if "sat" in modifiers:
        return np.clip(values.astype(np.int64), low, min(high, 2**63 - 1))
    return values.astype(np.int64).astype(np.uint64)


def _shift(base, a, b, kind):
    width = _width(kind)
    amount = b.astype(np.uint64)
    inside = np.minimum(amount, width - 1)
    if base == "shl":
        return np.where(amount < width, a.astype(np.uint64) << inside, 0)
    if kind[0] == "s":
        return a.astype(np.int64) >> inside.astype(np.int64)
    return np.where(amount < width, a.astype(np.uint64) >> inside, 0)


def _permute(a, b, selector):
    both = a.astype(np.uint64) | (b.astype(np.uint64) << np.uint64(32))
    result = np.zeros(np.broadcast(a, b, selector).shape, np.uint64)
    for byte in range(4):
        control = (selector.astype(np.uint64) >> np.uint64(4 * byte)) & np.uint64(15)
        value = (both >> ((control & np.uint64(7)) * np.uint64(8))) & np.uint64(255)
        sign = np.where(value >> np.uint64(7), np.uint64(255), np.uint64(0))
        result |= np.where(control >> np.uint64(3), sign, value) << np.uint64(8 * byte)
    return result


def _logic3(a, b, c, table):
    a, b, c = (x.astype(np.uint64) for x in (a, b, c))
    table = int(np.asarray(table).reshape(-1)[0])
    result = np.zeros(np.broadcast(a, b, c).shape, np.uint64)
    for row in range(8):
        if table >> row & 1:
            result |= (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
    return result


def _extract(a, position, length, kind):
    width = _width(kind)
    position, length = (x.astype(np.int64) & 255 for x in (position, length))
    length = np.minimum(length, width)
    field = (a.astype(np.int64).astype(np.uint64) & np.uint64(2**width - 1)) >> np.minimum(position, 63).astype(np.uint64)
    mask = (np.uint64(1) << length.astype(np.uint64)) - np.uint64(1)
    field = field & mask
    if kind[0] == "s":
        sign = (field >> (np.maximum(length, 1) - 1).astype(np.uint64)) & np.uint64(1)
        field = np.where(sign == 1, field | ~mask, field)
    return field


def _move_vector(operands, kind, registers, where):
    """mov.b32 {lo, hi}, r and mov.b32 r, {lo, hi}."""
    inner = [part.strip() for part in next(o for o in operands if o.startswith("{"))[1:-1].split(",")]
    width = _width(kind) // len(inner)
    if operands[0].startswith("{"):
        source = registers[operands[1]].astype(np.uint64)
        for i, name in enumerate(inner):
            registers.write(name, (source >> np.uint64(i * width)) & np.uint64((1 << width) - 1), where)
        return
    total = np.uint64(0)
    for i, name in enumerate(inner):
        total = total | (_read(name, f"b{width}", registers).astype(np.uint64) << np.uint64(i * width))
    registers.write(operands[0], total, where)


def execute(name, operands, registers, where):
    parts = name.split(".")
    base, modifiers = parts[0], set(parts[1:])
    kinds = [part for part in parts[1:] if _TYPE.match(part)]
    if not kinds:
        raise NotExecutable(f"the assembly's instruction {name} has no model")
    kind = kinds[-1]
    if base == "mov" and any(operand.startswith("{") for operand in operands):
        _move_vector(operands, kind, registers, where)
        return
    write = lambda value, as_kind=kind: registers.write(operands[0], _encode(value, as_kind), where)
    if base == "cvt":
        _cvt(operands, kinds, modifiers, registers, where)
        return
    if base == "setp":
        compare = next((m for m in parts[1:] if m in _COMPARE), None)
        if compare is not None and len(operands) == 3:
            values = [_read(operand, kind, registers) for operand in operands[1:]]
            registers.write(operands[0].split("|")[0], _COMPARE[compare](*values), where)
            return
    elif base == "selp":
        a, b = (_read(operand, kind, registers) for operand in operands[1:3])
        write(np.where(registers[operands[3]], a, b))
        return
    else:
        result = _compute(base, modifiers, kind, operands, registers)
        if result is not None:
            write(*result)
            return
    raise NotExecutable(f"the assembly's instruction {name} has no model")


def _cvt(operands, kinds, modifiers, registers, where):
    target, source = kinds[-2:]
    if target.endswith("x2") and not source.endswith("x2"):  # two sources: the first goes into the upper half
        high, low = (_read(operand, source, registers) for operand in operands[1:3])
        pair = np.stack(np.broadcast_arrays(low, high), axis=-1)
        pair = np.maximum(pair, 0) if "relu" in modifiers else pair
        registers.write(operands[0], _encode(pair, target), where)
        return
    values = _convert(_read(operands[1], source, registers), modifiers, target.removesuffix("x2"))
    registers.write(operands[0], _encode(values, target), where)


def _compute(base, modifiers, kind, operands, registers):
    """(value, type) of an arithmetic instruction, or None."""
    read = lambda i, as_kind=kind: _read(operands[i], as_kind, registers)
    is_integer = kind[0] in "bsu" and kind != "bf16" and kind != "bf16x2"
    if base in _UNARY and len(operands) == 2:
        value = _UNARY[base](read(1))
        return np.maximum(value, 0) if "relu" in modifiers else value, kind
    if base == "div" and not is_integer:
        return read(1) / read(2), kind
    if base in ("div", "rem"):
        a, b = read(1).astype(np.float64), read(2).astype(np.float64)
        quotient = np.trunc(a / np.where(b == 0, 1, b))
        return (quotient if base == "div" else a - quotient * b).astype(np.int64), kind
    if base in ("mul", "mad") and is_integer:
        wide = [read(i).astype(np.int64 if kind[0] == "s" else np.uint64) for i in (1, 2)]
        product = wide[0] * wide[1]
        target = kind
        if "hi" in modifiers and _width(kind) <= 32:
            product = product >> product.dtype.type(_width(kind))
        elif "wide" in modifiers:
            target = f"{kind[0]}{_width(kind) * 2}"
        elif "hi" in modifiers:
            return None
        if base == "mad":
            product = product + read(3, target).astype(product.dtype)
        return product, target
    if base in ("fma", "mad"):
        exact = read(1).astype(np.float64) * read(2) + read(3)
        return np.maximum(exact, 0) if "relu" in modifiers else exact, kind
    if base in _BINARY and len(operands) == 3:
        value = _BINARY[base](read(1), read(2))
        return np.clip(value, 0, 1) if "sat" in modifiers and not is_integer else value, kind
    if base in ("shl", "shr"):
        return _shift(base, read(1), read(2, "u32"), kind), kind
    if base == "prmt":
        return _permute(read(1), read(2), read(3)), kind
    if base == "lop3":
        return _logic3(read(1), read(2), read(3), read(4)), kind
    if base == "bfe":
        return _extract(read(1), read(2, "u32"), read(3, "u32"), kind), kind
    if base == "popc":
        return np.bitwise_count(read(1)), "u32"
    return None
