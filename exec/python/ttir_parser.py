"""Reads the text of a Triton IR module (`asm["ttir"]`, MLIR's printed form) into plain objects.

Only what Triton 3.6 prints after its `make_ttir` passes is understood. Every value gets a name that is unique in its
function (MLIR reuses names in sibling regions), so that one dictionary can hold all values.
"""

import re

from failures import NotExecutable
from ttir_types import Type, parse_type, result_types, split_top


class Op:
    """One operation: operands and results are names, attributes are kept as their text."""

    __slots__ = ("name", "results", "operands", "attrs", "body", "types", "regions", "loc", "targets")

    def __init__(self, name, results, operands, attrs, body, types, loc):
        self.name = name
        self.results = results
        self.operands = operands
        self.attrs = attrs  # text between the braces
        self.body = body  # text after the name, without attributes and types
        self.types = types  # types of the results
        self.regions = []  # each a list of Block
        self.loc = loc
        self.targets = []  # of cf.br and cf.cond_br: [(label, operands)]

    def attribute(self, key):
        """The text of one attribute, or None."""
        match = re.search(r"(?<![\w.])" + re.escape(key) + r" = (<[^>]*>|\"[^\"]*\"|[^,:]+)", self.attrs)
        return match.group(1).strip().strip('"') if match else None

    def attribute_ints(self, key):
        """The numbers of `key = array<i32: 1, 0>`, or None."""
        match = re.search(re.escape(key) + r" = array<i\d+: ([^>]*)>", self.attrs)
        return [int(number) for number in match.group(1).split(",")] if match else None

    def attribute_int(self, key):
        value = self.attribute(key)
        if value is None:
            raise NotExecutable(f"{self.name} without attribute {key}", self.loc)
        return int(value)


class Block:
    """Straight-line code. `terminator` is None where MLIR prints none (a loop without results)."""

    __slots__ = ("label", "args", "ops", "terminator")

    def __init__(self, label, args):
        self.label = label
        self.args = args
        self.ops = []
        self.terminator = None


class Function:
    """`args` are (name, Type); `types` maps every value's name to its type."""

    def __init__(self, name, args, public):
        self.name = name
        self.args = args
        self.public = public
        self.blocks = []
        self.types = dict(args)


class Module:
    """All functions of a module and its table of locations."""

    def __init__(self):
        self.functions = {}
        self.locations = {}

    def kernel(self):
        for function in self.functions.values():
            if function.public:
                return function
        raise NotExecutable("the module has no public function")

    def find_line(self, loc, path):
        """The line in `path` that the location text names; of a call chain the innermost frame in that file."""
        for _ in range(64):
            match = re.fullmatch(r"#loc\d*", loc.strip())
            if not match:
                break
            loc = self.locations.get(loc.strip(), "")
        match = re.match(r'"(.*)":(\d+):\d+$', loc)
        if match:
            return int(match.group(2)) if match.group(1) == path else 0
        match = re.match(r"callsite\((.*) at (.*)\)$", loc)
        if match:
            return self.find_line(match.group(1), path) or self.find_line(match.group(2), path)
        match = re.match(r'"[^"]*"\((.*)\)$', loc)
        return self.find_line(match.group(1), path) if match else 0


_LOC = re.compile(r'\s*loc\(((?:[^()"]|"[^"]*"|\((?:[^()"]|"[^"]*"|\([^()]*\))*\))*)\)')
_RESULTS = re.compile(r"^((?:%[\w$.\-]+(?::\d+)?(?:, )?)+) = (.*)$")
_NAME = re.compile(r'^"?([a-z_]+(?:\.[\w]+)+)"?(.*)$', re.S)
_VALUE = re.compile(r"%[\w$.\-]+(?:#\d+)?")
_ATTRS = re.compile(r"<?\{([^{}]*)\}>?")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_TERMINATORS = {
    "scf.yield",
    "scf.condition",
    "tt.return",
    "cf.br",
    "cf.cond_br",
    "tt.reduce.return",
    "tt.scan.return",
    "tt.map_elementwise.return",
}


class _Parser:
    def __init__(self, text):
        self.lines = text.split("\n")
        self.at = 0
        self.module = Module()
        self.scope = {}  # printed name -> unique name
        self.undo = []  # stack of lists of (printed name, earlier unique name)
        self.used = set()
        self.function = None

    def parse(self):
        for line in self.lines:
            if line.startswith("#loc"):
                key, _, rest = line.partition(" = ")
                self.module.locations[key] = rest.strip()[4:-1]
        while self.at < len(self.lines):
            line = self.lines[self.at].strip()
            if line.startswith("tt.func"):
                self._function(line)
            self.at += 1
        return self.module

    def _define(self, printed, type_):
        unique = printed
        while unique in self.used:
            unique += "'"
        self.used.add(unique)
        self.undo[-1].append((printed, self.scope.get(printed)))
        self.scope[printed] = unique
        self.function.types[unique] = type_
        return unique

    def _operands(self, text):
        scope = self.scope
        return [scope.get(name, name) for name in _VALUE.findall(text)]

    def _function(self, line):
        head = _LOC.sub("", line)
        match = re.match(r'tt\.func (public|private)? ?@("[^"]*"|[\w.$\-]+)\((.*)$', head)
        if not match:
            raise NotExecutable(f"cannot read the function {one(head)}")
        rest = _ATTRS.sub("", match.group(3))
        depth, end = 1, 0
        for end, char in enumerate(rest):
            depth += (char == "(") - (char == ")")
            if depth == 0:
                break
        self.scope, self.used, self.undo = {}, set(), [[]]
        self.function = Function(match.group(2).strip('"'), [], match.group(1) != "private")
        for part in split_top(rest[:end]):
            name, _, type_text = part.partition(": ")
            type_ = parse_type(type_text)
            self.function.args.append((self._define(name, type_), type_))
        self.module.functions[self.function.name] = self.function
        self.at += 1
        self.function.blocks = self._region([])

    def _region(self, first_args):
        """Reads blocks up to the line that starts with '}' and leaves `at` there."""
        self.undo.append([])
        blocks = [Block("", [self._define(n, t) for n, t in first_args])]
        while True:
            line = self.lines[self.at].strip()
            if line.startswith("}"):
                break
            if line.startswith("^"):
                self._label(line, blocks)
            elif line:
                op = self._op(line)
                if op.name in _TERMINATORS:
                    blocks[-1].terminator = op
                else:
                    blocks[-1].ops.append(op)
            self.at += 1
        for printed, earlier in reversed(self.undo.pop()):
            if earlier is None:
                self.scope.pop(printed, None)
            else:
                self.scope[printed] = earlier
        return blocks

    def _label(self, line, blocks):
        head = _LOC.sub("", line).split("//")[0].strip().rstrip(":")
        label, _, args_text = head.partition("(")
        args = []
        for part in split_top(args_text.rstrip()[:-1] if args_text else ""):
            name, _, type_text = part.partition(": ")
            args.append(self._define(name, parse_type(type_text)))
        if len(blocks) == 1 and not blocks[0].ops and blocks[0].terminator is None and not blocks[0].args:
            blocks[0] = Block(label, args)
        else:
            blocks.append(Block(label, args))

    def _op(self, line):
        locs = _LOC.findall(line)
        loc = locs[-1] if locs else ""
        text = _LOC.sub("", line)
        match = _RESULTS.match(text)
        printed = []
        if match:
            for part in match.group(1).split(", "):
                name, _, many = part.partition(":")
                printed += [f"{name}#{i}" for i in range(int(many))] if many else [name]
            text = match.group(2)
        match = _NAME.match(text)
        if not match:
            raise NotExecutable(f"cannot read the line {one(line)}", loc)
        name, rest = match.groups()
        if rest.endswith("{"):
            return self._op_with_regions(name, printed, rest, loc)
        literal = ""
        if name in ("tt.assert", "tt.print", "ttg.assert", "tt.elementwise_inline_asm"):
            literal = _STRING.search(rest)
            literal = literal.group(0)[1:-1] if literal else ""
            rest = _STRING.sub("", rest, count=1)
        attrs = ", ".join(_ATTRS.findall(rest))
        rest = _ATTRS.sub("", rest)
        if name in ("cf.br", "cf.cond_br"):
            return self._branch(name, rest, loc)
        body, _, types_text = rest.rpartition(" : ")
        if not body:
            body, types_text = rest, ""
        if name == "arith.constant" and not types_text:
            types = [Type((), "i1", "")]
        else:
            types = result_types(name, types_text, len(printed))
        op = Op(name, [], self._operands(body), attrs, body.strip(), types, loc)
        if name == "tt.elementwise_inline_asm":
            op.body = literal
        op.results = [self._define(n, t) for n, t in zip(printed, types)]
        return op

    def _branch(self, name, rest, loc):
        condition = rest.split("^", 1)[0]
        op = Op(name, [], self._operands(condition), "", rest, [], loc)
        for label, args in re.findall(r"(\^\w+)(?:\(([^()]*)\))?", rest):
            op.targets.append((label, self._operands(args.split(" : ")[0])))
        return op

    def _op_with_regions(self, name, printed, rest, loc):
        op = Op(name, [], [], ", ".join(_ATTRS.findall(rest[:-1])), rest, [], loc)
        head = _ATTRS.sub("", rest[:-1])
        first_args, types_text = [], ""
        if name == "scf.for":
            match = re.match(r"(?: unsigned)? (%\S+) = (\S+) to (\S+) step (\S+)", head)
            carried = re.search(r"iter_args\(([^)]*)\) -> \((.*)\)\s+: (\w+) $", head)
            bound_type = parse_type(head.rsplit(" : ", 1)[1]) if " : " in head else parse_type("i32")
            op.operands = self._operands(" ".join(match.groups()[1:]))
            first_args = [(match.group(1), bound_type)]
            if carried:
                types_text = carried.group(2)
                types = [parse_type(t) for t in split_top(types_text)]
                for pair, type_ in zip(split_top(carried.group(1)), types):
                    inner, _, outer = pair.partition(" = ")
                    op.operands += self._operands(outer)
                    first_args.append((inner, type_))
        elif name == "scf.while":
            match = re.match(r" (?:\((.*?)\) )?: \((.*?)\) -> (.*) $", head)
            if match:
                types = [parse_type(t) for t in split_top(match.group(2))]
                for pair, type_ in zip(split_top(match.group(1) or ""), types):
                    inner, _, outer = pair.partition(" = ")
                    op.operands += self._operands(outer)
                    first_args.append((inner, type_))
                types_text = match.group(3).strip().removeprefix("(").removesuffix(")")
        elif name == "scf.if":
            op.operands = self._operands(head.split("->")[0])
            types_text = head.partition("-> (")[2].strip().removesuffix(")")
        else:  # "tt.reduce"(%x) <{...}> ({
            op.operands = self._operands(head)
        return self._finish_regions(op, printed, first_args, types_text)

    def _finish_regions(self, op, printed, first_args, types_text):
        while True:
            self.at += 1
            op.regions.append(self._region(first_args))
            first_args = []
            line = self.lines[self.at].strip()
            tail = _LOC.sub("", line)
            if not tail.endswith("{"):
                break
        if op.name in ("scf.for", "scf.while", "scf.if"):
            op.types = [parse_type(t) for t in split_top(types_text)] if printed else []
        else:
            op.types = result_types(op.name, tail.partition(" : ")[2], len(printed))
            locs = _LOC.findall(line)
            op.loc = op.loc or (locs[-1] if locs else "")
        if len(op.types) != len(printed):
            raise NotExecutable(f"{op.name} has {len(printed)} results and the types {types_text}", op.loc)
        if not op.loc:
            locs = _LOC.findall(line)
            op.loc = locs[-1] if locs else ""
        op.results = [self._define(n, t) for n, t in zip(printed, op.types)]
        return op


def one(text):
    return text.strip()[:120]


def parse(text):
    """Module of the text. NotExecutable names what could not be read."""
    return _Parser(text).parse()
