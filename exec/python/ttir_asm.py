"""tt.elementwise_inline_asm: PTX instructions, one after the other, on numpy arrays of register contents.

`build(op, types)` returns `f(frame)`. A register is an array of unsigned integers (of 16, 32 or 64 bits) or of bools
(predicates), with the elements of all programs behind one another. There are no branches and no memory: what people write
between elements is arithmetic, conversions and unpacking of small integers. Anything else is NotExecutable with its name.
"""

import re

import numpy as np

import numeric
from failures import NotExecutable
from ptx_instructions import execute

_WIDTHS = {"h": 16, "r": 32, "f": 32, "l": 64, "d": 64, "b": 8}
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_DECLARATION = re.compile(r"\.reg\s+\.(\w+)\s+(.*)", re.S)


def _unescape(text):
    """MLIR prints a line break as \\0A."""
    return re.sub(r"\\([0-9A-Fa-f]{2})", lambda m: chr(int(m.group(1), 16)), text.replace("\\\\", "\\5C"))


def _statements(text):
    """(predicate, is negated, name, operands) of each instruction and ("", False, ".reg", [type, names...])."""
    text = _COMMENT.sub("", _unescape(text))
    for raw in _split(text):
        declaration = _DECLARATION.match(raw)
        if declaration:
            yield "", False, ".reg", [declaration.group(1), *re.split(r"\s*,\s*", declaration.group(2).strip())]
            continue
        match = re.match(r"(?:@(!?)(\S+)\s+)?([\w.:]+)\s*(.*)$", raw, re.S)
        if not match:
            raise NotExecutable(f"the assembly {raw[:60]!r} cannot be read")
        negated, predicate, name, rest = match.groups()
        operands = [part.strip() for part in re.findall(r"\{[^}]*\}|[^,]+", rest)]
        yield predicate or "", negated == "!", name, operands


def _split(text):
    """Statements without the braces of scopes; those of vectors ({a, b}) stay."""
    for raw in text.split(";"):
        raw = raw.strip()
        while raw[:1] in ("{", "}") and not re.match(r"\{[^{}]*\}\s*,", raw):
            raw = raw[1:].strip()
        if raw:
            yield raw


class _Registers(dict):
    """Contents by name; `widths` tells how many bits a name has (0: a predicate)."""

    def __init__(self, size):
        super().__init__()
        self.size = size
        self.widths = {}

    def declare(self, kind, names):
        width = 0 if kind == "pred" else int(re.sub(r"\D", "", kind.split("x")[0]) or 32) * (2 if "x2" in kind else 1)
        for name in names:
            match = re.fullmatch(r"([\w$%]+)<(\d+)>", name)
            for one in [f"{match.group(1)}{i}" for i in range(int(match.group(2)))] if match else [name]:
                self.widths[one] = width

    def write(self, name, value, where):
        """`value` has as many bits as the instruction's type; `where` is the predicate's array or None."""
        if name == "_":
            return
        width = self.widths.get(name)
        if width is None:
            raise NotExecutable(f"the assembly writes {name}, which is not declared")
        value = np.broadcast_to(value, (self.size,))
        value = value.astype(np.bool_) if width == 0 else value.astype(f"u{max(width, 8) // 8}")
        self[name] = value if where is None else np.where(where, value, self[name] if name in self else 0)


def _operand_layout(op, types):
    """For each operand of the assembly: (is a result, position of the value, offset of its first element, elements in it)."""
    constraints = [c.strip() for c in (op.attribute("constraints") or "").split(",") if c.strip()]
    constraints = [c for c in constraints if not c.startswith("~")]
    pack = op.attribute_int("packed_element")
    results = [c for c in constraints if c.startswith("=")]
    kinds = [c.lstrip("=&+") for c in constraints]
    if any(kind not in _WIDTHS for kind in kinds):
        raise NotExecutable(f"the assembly's constraints {','.join(constraints)} are not supported", op.loc)
    layout = []
    for is_result, elems, letters in (
        (True, [t.elem for t in op.types], kinds[: len(results)]),
        (False, [types[name].elem for name in op.operands], kinds[len(results) :]),
    ):
        at = 0
        for position, elem in enumerate(elems):
            offset = 0
            while offset < pack:
                if at >= len(letters):
                    raise NotExecutable("the assembly has fewer operands than its values need", op.loc)
                per = max(1, min(_WIDTHS[letters[at]] // max(8, numeric.bits(elem)), pack - offset))
                layout.append((is_result, position, offset, per, letters[at]))
                offset += per
                at += 1
    return layout, pack


def build(op, types):
    statements = list(_statements(op.body))
    layout, pack = _operand_layout(op, types)
    shapes = [types[name].shape for name in op.operands] or [op.types[0].shape]
    shape = shapes[0]
    groups = max(1, int(np.prod(shape, dtype=np.int64))) // pack

    def run(frame):
        lead = max([frame[name].shape[0] for name in op.operands], default=1)
        registers = _Registers(lead * groups)
        bits = []
        for name in op.operands:
            raw = numeric.to_memory(np.broadcast_to(frame[name], (lead,) + frame[name].shape[1:]), types[name].elem)
            raw = np.ascontiguousarray(raw)
            bits.append(raw.view(f"u{raw.dtype.itemsize}").reshape(lead * groups, pack))
        for number, (is_result, position, offset, per, letter) in enumerate(layout):
            registers.widths[f"${number}"] = _WIDTHS[letter]
            if not is_result:
                registers[f"${number}"] = numeric.join_bits(bits[position][:, offset : offset + per], _WIDTHS[letter])
        _run_statements(statements, registers, op)
        _give_results(op, layout, registers, frame, lead, shape, pack)

    return run


def _run_statements(statements, registers, op):
    for predicate, negated, name, operands in statements:
        if name == ".reg":
            registers.declare(operands[0], operands[1:])
            continue
        where = None
        if predicate:
            where = ~registers[predicate] if negated else registers[predicate]
        try:
            execute(name, operands, registers, where)
        except KeyError as error:
            raise NotExecutable(f"the assembly reads {error.args[0]}, which nothing has written", op.loc) from error


def _give_results(op, layout, registers, frame, lead, shape, pack):
    made = []
    for result in op.types:
        made.append(np.zeros((registers.size, pack), f"u{numeric.memory_dtype(result.elem).itemsize}"))
    for number, (is_result, position, offset, per, _) in enumerate(layout):
        if not is_result:
            continue
        target = made[position]
        parts = numeric.split_bits(registers[f"${number}"], per, target.dtype.itemsize * 8)
        target[:, offset : offset + per] = parts
    for name, result, raw in zip(op.results, op.types, made):
        raw = raw.reshape((lead,) + shape).view(numeric.memory_dtype(result.elem))
        frame[name] = numeric.from_memory(raw, result.elem)
