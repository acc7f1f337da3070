"""What can be known of a kernel before it runs: where its pointers come from and whether its programs wait for another."""

import numeric

_POINTER_MOVES = {
    "tt.addptr",
    "tt.splat",
    "tt.broadcast",
    "tt.expand_dims",
    "tt.reshape",
    "tt.trans",
    "tt.unsplat",
    "tt.bitcast",
    "tt.join",
    "tt.cat",
    "tt.split",
    "tt.gather",
    "arith.select",
}


def walk(blocks):
    for block in blocks:
        for op in block.ops:
            yield op, block
            for region in op.regions:
                yield from walk(region)


def _flows(op):
    """(source, target) pairs along which a pointer may pass through an operation."""
    pairs = []
    if op.name in _POINTER_MOVES:
        pairs += [(source, target) for source in op.operands for target in op.results]
    elif op.name in ("scf.for", "scf.while"):
        first = op.regions[0][0]
        inits = op.operands[3:] if op.name == "scf.for" else op.operands
        carried = first.args[1:] if op.name == "scf.for" else first.args
        last = op.regions[-1][0].terminator
        yielded = last.operands if last else []
        pairs += list(zip(inits, carried)) + list(zip(yielded, carried))
        passed = yielded if op.name == "scf.for" else first.terminator.operands[1:]
        pairs += list(zip(passed, op.results))
        if op.name == "scf.for":
            pairs += list(zip(inits, op.results))
        else:
            pairs += list(zip(passed, op.regions[1][0].args))
    elif op.name == "scf.if":
        for region in op.regions:
            end = region[0].terminator
            pairs += list(zip(end.operands if end else [], op.results))
    return pairs


def pointer_origins(function):
    """Name of each pointer value -> position of the only argument it can come from; None if that is not known for all."""
    types = function.types
    origin = {name: i for i, (name, type_) in enumerate(function.args) if type_.elem == "ptr"}
    pairs = []
    for op, _ in walk(function.blocks):
        if op.name in ("tt.int_to_ptr", "tt.ptr_to_int", "tt.call"):
            return None
        if op.name == "tt.bitcast" and types[op.results[0]].elem == "ptr":
            widths = [numeric.memory_dtype(types[name].pointee).itemsize for name in (op.operands[0], op.results[0])]
            if widths[0] != widths[1]:
                return None
        pairs += _flows(op)
    labels = {block.label: block for block in function.blocks}
    for block in function.blocks:
        for label, operands in block.terminator.targets if block.terminator else []:
            pairs += list(zip(operands, labels[label].args))
    pairs = [(s, t) for s, t in pairs if types[s].elem == "ptr" and types[t].elem == "ptr"]
    changed = True
    while changed:
        changed = False
        for source, target in pairs:
            if source in origin:
                if target not in origin:
                    origin[target] = origin[source]
                    changed = True
                elif origin[target] != origin[source]:
                    return None
    if any(type_.elem == "ptr" and name not in origin for name, type_ in types.items()):
        return None
    return origin


def waits(function):
    """Whether a while loop may wait for another program: such kernels run one program after the other."""
    for op, _ in walk(function.blocks):
        if op.name == "scf.while":
            if any(inner.name.startswith("tt.atomic") for region in op.regions for inner, _ in walk(region)):
                return True
            if any(inner.name == "tt.load" for inner, _ in walk(op.regions[0])):
                return True
    return False


def used_names(function):
    used = set()
    for op, block in walk(function.blocks):
        used.update(op.operands)
        for region in op.regions:
            for inner in region:
                used.update(inner.terminator.operands if inner.terminator else [])
    for block in function.blocks:
        if block.terminator:
            used.update(block.terminator.operands)
            for _, operands in block.terminator.targets:
                used.update(operands)
    return used
