"""Frames, straight-line code and control flow (scf, cf, calls) of the Triton IR executor.

All programs of a launch run in lock step as long as they agree on every branch. Where they differ, the frame is split: each
part runs in a sub-frame that gathers the values it needs, and the results are put together again.
"""

import time

import numpy as np

from failures import DeadlinePassed, KernelError, NotExecutable

MAX_ITERATIONS = 1 << 20  # of one scf.while: beyond this a kernel waits for something that never comes


class Frame(dict):
    """Values of some programs by name; arrays have `n` (or 1, where all programs agree) as first dimension.

    A sub-frame holds the programs `index` of its parent and gathers a value on its first use; with index None it sees the
    parent's values as they are. `launch` is shared by all frames of a launch.
    """

    __slots__ = ("parent", "index", "n", "launch")

    def __init__(self, parent, index, n, launch=None):
        super().__init__()
        self.parent = parent
        self.index = index
        self.n = n
        self.launch = parent.launch if launch is None else launch

    def __missing__(self, name):
        if self.parent is None:
            raise NotExecutable(f"value {name} is not defined")
        value = self.parent[name]
        if self.index is not None and value.shape[0] != 1:
            value = value[self.index]
        self[name] = value
        return value


class Launch:
    """What all frames of a launch share."""

    def __init__(self, memory, counters, deadline, functions):
        self.memory = memory
        self.counters = counters
        self.deadline = deadline  # of time.monotonic, or None
        self.functions = functions  # name -> FunctionCode, for calls

    def check_deadline(self, loc):
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise DeadlinePassed("the time limit passed while a kernel ran", loc)


class BlockCode:
    """Prepared straight-line code with its static number of operations per program."""

    __slots__ = ("args", "steps", "names", "locs", "flops", "dot_flops", "tensor_flops", "terminator", "label")

    def __init__(self, block):
        self.args = block.args
        self.label = block.label
        self.terminator = block.terminator
        self.steps = []
        self.names = []
        self.locs = []
        self.flops = self.dot_flops = self.tensor_flops = 0

    @property
    def outputs(self):
        return self.terminator.operands if self.terminator is not None else []

    def run(self, frame):
        counters = frame.launch.counters
        if counters is not None:
            counters.flops += self.flops * frame.n
            counters.dot_flops += self.dot_flops * frame.n
            counters.tensor_flops += self.tensor_flops * frame.n
        at = 0
        try:
            for at, step in enumerate(self.steps):
                step(frame)
        except (KernelError, MemoryError):
            raise
        except Exception as error:
            message = f"{self.names[at]} failed in the executor: {type(error).__name__}: {error}"
            raise NotExecutable(message, self.locs[at]) from error


def _full(value, n):
    return value if value.shape[0] == n else np.broadcast_to(value, (n,) + value.shape[1:])


def _merge(n, parts):
    """[(index array, [values])] of disjoint programs -> values of all n programs."""
    merged = []
    for column in zip(*(values for _, values in parts)):
        out = np.empty((n,) + column[0].shape[1:], column[0].dtype)
        for (index, _), value in zip(parts, column):
            out[index] = value
        merged.append(out)
    return merged


def build_if(op, compile_block):
    codes = [compile_block(region[0]) for region in op.regions]
    if any(len(region) != 1 for region in op.regions):
        raise NotExecutable("scf.if with several blocks", op.loc)
    condition, results = op.operands[0], op.results

    def branch(frame, taken):
        if taken >= len(codes):
            return []
        codes[taken].run(frame)
        return [frame[name] for name in codes[taken].outputs]

    def run(frame):
        c = frame[condition]
        if c.shape[0] == 1 or c.all() or not c.any():
            values = branch(frame, 0 if c[0] else 1)
        else:
            parts = []
            for taken, chosen in ((0, c), (1, ~c)):
                index = np.flatnonzero(chosen)
                parts.append((index, branch(Frame(frame, index, index.size), taken)))
            values = _merge(frame.n, parts) if results else []
        frame.update(zip(results, values))

    return run


def build_for(op, compile_block):
    code = compile_block(op.regions[0][0])
    if len(op.regions[0]) != 1:
        raise NotExecutable("scf.for with several blocks", op.loc)
    low_name, high_name, step_name = op.operands[:3]
    initial, results = op.operands[3:], op.results
    variable, carried = code.args[0], code.args[1:]

    def iterate(frame, values, variable_value):
        frame.launch.check_deadline(op.loc)
        frame[variable] = variable_value
        frame.update(zip(carried, values))
        code.run(frame)
        return [frame[name] for name in code.outputs]

    def run_uniform(frame, low, step, trips, values):
        for i in range(trips):
            values = iterate(frame, values, low + low.dtype.type(i) * step)
        frame.update(zip(results, values))

    def run(frame):
        low, high, step = frame[low_name], frame[high_name], frame[step_name]
        values = [frame[name] for name in initial]
        if (step <= 0).any():
            raise NotExecutable("a loop whose step is not positive", op.loc)
        trips = np.maximum(0, -((low.astype(np.int64) - high) // step))
        if trips.shape[0] == 1 or (trips == trips[0]).all():
            run_uniform(frame, low, step, int(trips[0]), values)
            return
        _run_divergent(frame, low, step, trips, values)

    def _run_divergent(frame, low, step, trips, values):
        n = frame.n
        low, step = _full(low, n), _full(step, n)
        active, sub, done = np.arange(n), Frame(frame, np.arange(n), n), []
        for i in range(int(trips.max()) + 1):
            stay = trips[active] > i
            if not stay.all():
                leave = np.flatnonzero(~stay)
                done.append((active[leave], [_full(v, active.size)[leave] for v in values]))
                keep = np.flatnonzero(stay)
                values = [_full(v, active.size)[keep] for v in values]
                active = active[keep]
                if active.size == 0:
                    break
                sub = Frame(frame, active, active.size)
            values = iterate(sub, values, low[active] + low.dtype.type(i) * step[active])
        frame.update(zip(results, _merge(n, done)))

    return run


def build_while(op, compile_block):
    before, after = compile_block(op.regions[0][0]), compile_block(op.regions[1][0])
    if len(op.regions[0]) != 1 or len(op.regions[1]) != 1:
        raise NotExecutable("scf.while with several blocks", op.loc)
    condition, forwarded = before.outputs[0], before.outputs[1:]

    def run(frame):
        values = [frame[name] for name in op.operands]
        active, sub, done = None, frame, []
        for _ in range(MAX_ITERATIONS):
            frame.launch.check_deadline(op.loc)
            sub.update(zip(before.args, values))
            before.run(sub)
            c = sub[condition]
            values = [sub[name] for name in forwarded]
            if not c.any():
                break
            if not c.all():
                current = np.arange(frame.n) if active is None else active
                leave, keep = np.flatnonzero(~c), np.flatnonzero(c)
                done.append((current[leave], [_full(v, sub.n)[leave] for v in values]))
                values = [_full(v, sub.n)[keep] for v in values]
                active = current[keep]
                sub = Frame(frame, active, active.size)
            sub.update(zip(after.args, values))
            after.run(sub)
            values = [sub[name] for name in after.outputs]
        else:
            raise DeadlinePassed(f"a while loop did not end after {MAX_ITERATIONS} iterations", op.loc)
        if active is not None:
            done.append((active, [_full(v, sub.n) for v in values]))
            values = _merge(frame.n, done)
        frame.update(zip(op.results, values))

    return run


def build_map(op, types, compile_block):
    """tt.map_elementwise: scalar code for each element (or `pack` neighbours), which are the programs of a frame of their own."""
    if len(op.regions[0]) != 1:
        raise NotExecutable("tt.map_elementwise with several blocks", op.loc)
    code, pack = compile_block(op.regions[0][0]), op.attribute_int("pack")
    shape = types[op.operands[0]].shape
    groups = int(np.prod(shape, dtype=np.int64)) // pack

    def run(frame):
        n = frame.n
        sub = Frame(frame, np.repeat(np.arange(n), groups), n * groups)
        columns = []
        for name in op.operands:
            values = _full(frame[name], n).reshape(n * groups, pack)
            columns += [values[:, i] for i in range(pack)]
        sub.update(zip(code.args, columns))
        code.run(sub)
        made = [_full(sub[name], sub.n) for name in code.outputs]
        for i, result in enumerate(op.results):
            frame[result] = np.stack(made[i * pack : (i + 1) * pack], axis=-1).reshape((n,) + shape)

    return run


class FunctionCode:
    """A function's blocks; `call` runs them and returns the function's results."""

    def __init__(self, function, compile_block):
        self.args = [name for name, _ in function.args]
        self.codes = [compile_block(block) for block in function.blocks]
        self.by_label = {code.label: code for code in self.codes}

    def call(self, frame):
        return self._from(self.codes[0], frame)

    def _from(self, code, frame):
        while True:
            frame.launch.check_deadline("")
            code.run(frame)
            end = code.terminator
            if end is None or end.name == "tt.return":
                return [frame[name] for name in end.operands] if end is not None else []
            if end.name == "cf.br":
                code = self._enter(end.targets[0], frame)
                continue
            c = frame[end.operands[0]]
            if c.shape[0] == 1 or c.all() or not c.any():
                code = self._enter(end.targets[0 if c[0] else 1], frame)
                continue
            parts = []
            for target, chosen in zip(end.targets, (c, ~c)):
                index = np.flatnonzero(chosen)
                sub = Frame(frame, index, index.size)
                parts.append((index, self._from(self._enter(target, sub), sub)))
            return _merge(frame.n, parts) if parts[0][1] else []

    def _enter(self, target, frame):
        label, operands = target
        code = self.by_label[label]
        values = [frame[name] for name in operands]
        frame.update(zip(code.args, values))
        return code


def build_call(op):
    callee = op.body.split("@", 1)[1]
    callee = callee[1 : callee.index('"', 1)] if callee.startswith('"') else callee.split("(")[0]
    operands, results = op.operands, op.results

    def run(frame):
        code = frame.launch.functions[callee]
        inner = Frame(None, None, frame.n, frame.launch)
        for axis in "xyz":
            inner[f"pid {axis}"] = frame[f"pid {axis}"]
            inner[f"grid {axis}"] = frame[f"grid {axis}"]
        inner.update(zip(code.args, [frame[name] for name in operands]))
        frame.update(zip(results, code.call(inner)))

    return run
