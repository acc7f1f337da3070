"""Operations that move values about (splat, reshape, join, ...), reductions, scans and dots.

Each builder returns `f(frame)` that reads operands from the frame (name -> array with programs first) and writes results.
"""

import numpy as np

import numeric
from failures import NotExecutable

_REDUCE = {
    "arith.addf": np.add,
    "arith.addi": np.add,
    "arith.mulf": np.multiply,
    "arith.muli": np.multiply,
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
}


def _constant(op, types):
    text, kind = op.body, op.types[0]
    result = op.results[0]
    if text.startswith("dense<"):
        inner = text[6 : text.rindex(">")]
        if inner.startswith("["):
            numbers = [numeric.literal(t, kind.elem) for t in inner.replace("[", " ").replace("]", " ").split(",")]
            value = np.array(numbers, dtype=numeric.value_dtype(kind.elem)).reshape((1,) + kind.shape)
        else:
            value = np.broadcast_to(numeric.literal(inner, kind.elem), (1,) + kind.shape)
    else:
        value = numeric.literal(text, kind.elem).reshape((1,) + (1,) * len(kind.shape))
        value = np.broadcast_to(value, (1,) + kind.shape) if kind.shape else value

    def run(frame):
        frame[result] = value

    return run


def _unary(op, f):
    source, result = op.operands[0], op.results[0]

    def run(frame):
        frame[result] = f(frame[source])

    return run


def _splat(op, types):
    shape = op.types[0].shape
    ones = (-1,) + (1,) * len(shape)
    return _unary(op, lambda x: np.broadcast_to(x.reshape(ones), (x.shape[0],) + shape))


def _broadcast(op, types):
    shape = op.types[0].shape
    return _unary(op, lambda x: np.broadcast_to(x, (x.shape[0],) + shape))


def _reshape(op, types):
    shape = op.types[0].shape
    return _unary(op, lambda x: x.reshape((x.shape[0],) + shape))


def _expand_dims(op, types):
    index = (slice(None),) * (op.attribute_int("axis") + 1) + (None,)
    return _unary(op, lambda x: x[index])


def _trans(op, types):
    order = op.attribute_ints("order") or [1, 0]
    axes = [0] + [axis + 1 for axis in order]
    return _unary(op, lambda x: x.transpose(axes))


def _make_range(op, types):
    value = np.arange(op.attribute_int("start"), op.attribute_int("end"), dtype=np.int32)[None]
    result = op.results[0]

    def run(frame):
        frame[result] = value

    return run


def _two(op, f):
    first, second = op.operands[:2]
    result = op.results[0]

    def run(frame):
        a, b = frame[first], frame[second]
        if a.shape[0] != b.shape[0]:
            lead = max(a.shape[0], b.shape[0])
            a = np.broadcast_to(a, (lead,) + a.shape[1:])
            b = np.broadcast_to(b, (lead,) + b.shape[1:])
        frame[result] = f(a, b)

    return run


def _split(op, types):
    source = op.operands[0]
    left, right = op.results

    def run(frame):
        x = frame[source]
        frame[left], frame[right] = x[..., 0], x[..., 1]

    return run


def _gather(op, types):
    axis = op.attribute_int("axis") + 1
    return _two(op, lambda x, i: np.take_along_axis(x, i.astype(np.int64), axis))


def _histogram(op, types):
    bins = op.types[0].shape[0]
    source, result = op.operands[0], op.results[0]
    mask = op.operands[1] if len(op.operands) > 1 else None

    def run(frame):
        x = frame[source]
        keep = (x >= 0) & (x < bins)
        if mask is not None:
            keep = keep & frame[mask]
        lead = keep.shape[0]
        keys = np.broadcast_to(x, keep.shape).astype(np.int64) + np.arange(lead)[:, None] * bins
        frame[result] = np.bincount(keys[keep], minlength=lead * bins).reshape(lead, bins).astype(np.int32)

    return run


def _region_function(op, compile_block):
    """The region of a reduce or scan as a function on lists of arrays, and the ufunc it amounts to (or None)."""
    if len(op.regions) != 1 or len(op.regions[0]) != 1:
        raise NotExecutable(f"{op.name} with control flow in its region", op.loc)
    block = op.regions[0][0]
    if any(inner.regions for inner in block.ops):
        raise NotExecutable(f"{op.name} with control flow in its region", op.loc)
    code = compile_block(block)
    outputs = block.terminator.operands
    ufunc = None
    if len(block.ops) == 1 and len(block.args) == 2 and sorted(block.ops[0].operands) == sorted(block.args):
        ufunc = _REDUCE.get(block.ops[0].name)

    def combine(frame, left, right):
        inner = type(frame)(frame, None, frame.n)
        inner.update(zip(block.args, left + right))
        for step in code.steps:
            step(inner)
        return [inner[name] for name in outputs]

    return combine, ufunc


def _ufunc_over(ufunc, method, elem):
    """numpy's reduce or accumulate with the precision the GPU's tree would have at least."""
    fix = numeric.rounder(elem)
    if elem == "i1":
        table = {
            np.add: np.logical_xor,
            np.multiply: np.logical_and,
            np.bitwise_and: np.logical_and,
            np.bitwise_or: np.logical_or,
            np.bitwise_xor: np.logical_xor,
            np.maximum: np.logical_and,
            np.minimum: np.logical_or,
        }
        chosen = table[ufunc]
        return lambda x, axis: getattr(chosen, method)(x, axis=axis)
    run = getattr(ufunc, method)
    if elem == "f16" and ufunc in (np.add, np.multiply):
        return lambda x, axis: run(x, axis=axis, dtype=np.float32).astype(np.float16)
    if ufunc in (np.add, np.multiply):
        plain = lambda x, axis: run(x, axis=axis, dtype=x.dtype)
    else:
        plain = lambda x, axis: run(x, axis=axis)
    return plain if fix is None else lambda x, axis: fix(plain(x, axis))


def _reduce(op, types, compile_block):
    combine, ufunc = _region_function(op, compile_block)
    axis = op.attribute_int("axis") + 1
    sources, results = op.operands, op.results
    if ufunc is not None and len(sources) == 1:
        over = _ufunc_over(ufunc, "reduce", types[sources[0]].elem)
        return _unary(op, lambda x: over(x, axis))

    def run(frame):
        arrays = _same_lead([frame[s] for s in sources])
        while arrays[0].shape[axis] > 1:
            size = arrays[0].shape[axis]
            half = size // 2
            part = lambda x, a, b: x[(slice(None),) * axis + (slice(a, b),)]
            merged = combine(frame, [part(x, 0, half) for x in arrays], [part(x, half, 2 * half) for x in arrays])
            if size % 2:
                merged = [np.concatenate([m, part(x, size - 1, size)], axis) for m, x in zip(merged, arrays)]
            arrays = merged
        for name, x in zip(results, arrays):
            frame[name] = np.squeeze(x, axis)

    return run


def _same_lead(arrays):
    lead = max(x.shape[0] for x in arrays)
    return [np.broadcast_to(x, (lead,) + x.shape[1:]) for x in arrays]


def _scan(op, types, compile_block):
    combine, ufunc = _region_function(op, compile_block)
    axis = op.attribute_int("axis") + 1
    reverse = op.attribute("reverse") == "true"
    sources, results = op.operands, op.results
    flip = (slice(None),) * axis + (slice(None, None, -1),)
    over = None
    if ufunc is not None and len(sources) == 1:
        over = _ufunc_over(ufunc, "accumulate", types[sources[0]].elem)

    def run(frame):
        arrays = _same_lead([frame[s] for s in sources])
        if reverse:
            arrays = [x[flip] for x in arrays]
        if over is not None:
            arrays = [over(arrays[0], axis)]
        else:
            step = 1
            while step < arrays[0].shape[axis]:
                head = (slice(None),) * axis + (slice(0, -step),)
                tail = (slice(None),) * axis + (slice(step, None),)
                start = (slice(None),) * axis + (slice(0, step),)
                merged = combine(frame, [x[head] for x in arrays], [x[tail] for x in arrays])
                arrays = [np.concatenate([x[start], m], axis) for x, m in zip(arrays, merged)]
                step *= 2
        for name, x in zip(results, arrays):
            frame[name] = x[flip] if reverse else x

    return run


def _dot(op, types):
    a_name, b_name, c_name = op.operands[:3]
    result, elem = op.results[0], op.types[0].elem
    integer = not numeric.is_float(elem)
    wide = np.float64 if integer or elem == "f64" else np.float32
    dtype = numeric.value_dtype(elem)
    fix = numeric.rounder(elem)

    def run(frame):
        product = np.matmul(frame[a_name].astype(wide, copy=False), frame[b_name].astype(wide, copy=False))
        total = product.astype(dtype, copy=False) + frame[c_name]
        frame[result] = total if fix is None else fix(total)

    return run


def _bitcast_pointer(op, types):
    source, target = types[op.operands[0]].pointee, op.types[0].pointee
    if numeric.memory_dtype(source).itemsize != numeric.memory_dtype(target).itemsize:
        return _unary(op, lambda x: x)  # only in absolute form, where a pointer is an address
    return _unary(op, lambda x: x)


_SIMPLE = {
    "arith.constant": _constant,
    "tt.splat": _splat,
    "tt.broadcast": _broadcast,
    "tt.reshape": _reshape,
    "tt.expand_dims": _expand_dims,
    "tt.trans": _trans,
    "tt.make_range": _make_range,
    "tt.split": _split,
    "tt.gather": _gather,
    "tt.histogram": _histogram,
    "tt.dot": _dot,
    "tt.unsplat": lambda op, types: _unary(op, lambda x: x.reshape(x.shape[0])),
    "tt.join": lambda op, types: _two(op, lambda a, b: np.stack([a, b], axis=-1)),
    "tt.cat": lambda op, types: _two(op, lambda a, b: np.concatenate([a, b], axis=1)),
}
_IGNORED = {"tt.print", "gpu.barrier", "ttg.barrier", "llvm.intr.assume", "ttg.local_barrier"}


def build(op, types, compile_block):
    """`f(frame)` for an operation of this file, or None."""
    if op.name in _SIMPLE:
        return _SIMPLE[op.name](op, types)
    if op.name == "tt.reduce":
        return _reduce(op, types, compile_block)
    if op.name == "tt.scan":
        return _scan(op, types, compile_block)
    if op.name == "tt.bitcast" and op.types[0].elem == "ptr":
        return _bitcast_pointer(op, types)
    if op.name in ("tt.int_to_ptr", "tt.ptr_to_int"):
        return _unary(op, lambda x: x.astype(np.int64))
    if op.name == "ub.poison":
        value = np.zeros((1,) + op.types[0].shape, numeric.value_dtype(op.types[0].elem))
        return lambda frame: frame.__setitem__(op.results[0], value)
    if op.name in _IGNORED:
        return lambda frame: None
    return None
