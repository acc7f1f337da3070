"""Types of Triton IR values and how they are printed."""

import re
from collections import namedtuple
from functools import lru_cache

from failures import NotExecutable

# shape: () for a scalar. elem: "f32", "i32", ..., or "ptr". pointee: element type in memory of a "ptr", else "".
Type = namedtuple("Type", "shape elem pointee")


def split_top(text):
    """Splits at the commas outside of any bracket."""
    parts, depth, start = [], 0, 0
    for i, char in enumerate(text):
        if char in "<([":
            depth += 1
        elif char in ")]" or (char == ">" and text[i - 1] != "-"):
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    tail = text[start:].strip()
    return parts + [tail] if tail else parts


@lru_cache(maxsize=4096)
def parse_type(text):
    """'tensor<16x32x!tt.ptr<f16>>', '!tt.ptr<f32>', 'i32' -> Type."""
    text = text.strip()
    if text.startswith("tensor<"):
        inner = text[7:-1]
        dims = re.match(r"(?:\d+x)*", inner).group(0)
        element = parse_type(inner[len(dims) :])
        return Type(tuple(int(d) for d in dims.split("x") if d), element.elem, element.pointee)
    if text.startswith("!tt.ptr<"):
        pointee = split_top(text[8:-1])[0]
        return Type((), "ptr", "i64" if pointee.startswith("!tt.ptr") else pointee)
    if re.fullmatch(r"[a-zA-Z]\w*", text):
        return Type((), text, "")
    raise NotExecutable(f"type {text} is not supported")


def result_types(name, types_text, count):
    """The types of an operation's results from the printed types behind its last colon."""
    if count == 0:
        return []
    if "->" in types_text:
        after = types_text.rsplit(" -> ", 1)[1].strip() if " -> (" not in types_text else types_text.split(" -> ", 1)[1]
        after = after.strip()
        texts = split_top(after[1:-1] if after.startswith("(") else after)
    elif " to " in types_text:
        texts = [types_text.rsplit(" to ", 1)[1]]
    else:
        texts = split_top(types_text)
        if name == "arith.select":
            texts = texts[-1:]
        elif name in ("tt.addptr", "tt.load"):
            texts = texts[:1]
    types = [parse_type(text) for text in texts]
    if name in ("arith.cmpi", "arith.cmpf"):
        types = [Type(types[0].shape, "i1", "")]
    elif name == "tt.load":
        types = [Type(types[0].shape, types[0].pointee, "")]
    if len(types) == 1 and count > 1:
        types = types * count  # tt.split prints one type for both
    if len(types) != count:
        raise NotExecutable(f"{name} has {count} results and the types {types_text}")
    return types
