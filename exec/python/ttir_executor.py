"""Executes a kernel from the text of its Triton IR on CPU memory, for all programs of a launch at once.

`Kernel(text)` parses and prepares the kernel; `Kernel.launch(args, grid, ...)` runs it. The prepared form is kept in a
process-wide cache (`kernel_of`), as the text is already specialised to the arguments.
"""

import numpy as np
import torch

import numeric
import ttir_analysis
import ttir_asm
import ttir_control
import ttir_ops
import ttir_parser
import ttir_shape_ops
from failures import DeviceAssert, KernelError, NotExecutable
from ttir_control import BlockCode, Frame, FunctionCode, Launch
from ttir_memory import Memory, storage_of

CHUNK_ELEMENTS = 1 << 19  # elements of the largest value that are computed at once


class _FunctionBuilder:
    """Prepares one function: each operation becomes a closure on frames."""

    def __init__(self, function, indexed, public):
        self.types = function.types
        self.origin = ttir_analysis.pointer_origins(function) if indexed and public else None

    def block(self, block):
        code = BlockCode(block)
        for op in block.ops:
            step, flops, dot_flops, tensor_flops = self._step(op)
            code.steps.append(step)
            code.names.append(op.name)
            code.locs.append(op.loc)
            code.flops += flops
            code.dot_flops += dot_flops
            code.tensor_flops += tensor_flops
        return code

    def _step(self, op):
        elementwise = ttir_ops.build(op, self.types)
        if elementwise is not None:
            f, flops = elementwise
            return _elementwise_step(op, f), flops * int(np.prod(op.types[0].shape, dtype=np.int64)), 0, 0
        shaped = ttir_shape_ops.build(op, self.types, self.block)
        if shaped is not None:
            return (shaped,) + self._shape_cost(op)
        if op.name == "scf.if":
            return ttir_control.build_if(op, self.block), 0, 0, 0
        if op.name == "scf.for":
            return ttir_control.build_for(op, self.block), 0, 0, 0
        if op.name == "scf.while":
            return ttir_control.build_while(op, self.block), 0, 0, 0
        if op.name == "tt.map_elementwise":
            return ttir_control.build_map(op, self.types, self.block), 0, 0, 0
        if op.name == "tt.elementwise_inline_asm":
            return ttir_asm.build(op, self.types), 0, 0, 0
        if op.name == "tt.call":
            return ttir_control.build_call(op), 0, 0, 0
        builder = getattr(self, "_" + op.name.replace(".", "_"), None)
        if builder is None:
            raise NotExecutable(f"operation {op.name} has no model", op.loc)
        return builder(op), 0, 0, 0

    def _shape_cost(self, op):
        if op.name in ("tt.reduce", "tt.scan"):
            source = self.types[op.operands[0]]
            return (int(np.prod(source.shape)) if numeric.is_float(source.elem) else 0), 0, 0
        if op.name == "tt.dot":
            a, out = self.types[op.operands[0]], op.types[0]
            flops = 2 * int(np.prod(out.shape)) * a.shape[-1]
            full = a.elem == "f64" or (a.elem == "f32" and "tf32" not in op.body)
            return (0, flops, 0) if full else (0, 0, flops)
        return 0, 0, 0

    def _argument(self, pointer):
        return self.origin[pointer] if self.origin is not None else None

    def _tt_get_program_id(self, op):
        key, result = f"pid {op.body.strip()[0]}", op.results[0]
        return lambda frame: frame.__setitem__(result, frame[key])

    def _tt_get_num_programs(self, op):
        key, result = f"grid {op.body.strip()[0]}", op.results[0]
        return lambda frame: frame.__setitem__(result, frame[key])

    def _tt_addptr(self, op):
        pointer, offset = op.operands
        result = op.results[0]
        if self.origin is not None:
            return lambda frame: frame.__setitem__(result, frame[pointer] + frame[offset])
        size = np.int64(numeric.memory_dtype(op.types[0].pointee).itemsize)
        return lambda frame: frame.__setitem__(result, frame[pointer] + frame[offset] * size)

    def _tt_load(self, op):
        pointer = op.operands[0]
        mask = op.operands[1] if len(op.operands) > 1 else None
        other = op.operands[2] if len(op.operands) > 2 else None
        elem, argument, result, loc = op.types[0].elem, self._argument(pointer), op.results[0], op.loc

        def run(frame):
            frame[result] = frame.launch.memory.load(
                frame[pointer],
                None if mask is None else frame[mask],
                None if other is None else frame[other],
                elem,
                argument,
                frame.n,
                loc,
            )

        return run

    def _tt_store(self, op):
        pointer, value = op.operands[:2]
        mask = op.operands[2] if len(op.operands) > 2 else None
        elem, argument, loc = self.types[pointer].pointee, self._argument(pointer), op.loc

        def run(frame):
            frame.launch.memory.store(
                frame[pointer], frame[value], None if mask is None else frame[mask], elem, argument, frame.n, loc
            )

        return run

    def _tt_atomic_rmw(self, op):
        kind = op.body.split(",")[0].strip()
        pointer, value = op.operands[:2]
        mask = op.operands[2] if len(op.operands) > 2 else None
        elem, argument, loc = self.types[pointer].pointee, self._argument(pointer), op.loc
        result = op.results[0] if op.results else None
        wanted = result is not None and result in self.used

        def run(frame):
            old = frame.launch.memory.atomic(
                kind,
                frame[pointer],
                frame[value],
                None if mask is None else frame[mask],
                elem,
                argument,
                frame.n,
                loc,
                wanted,
            )
            if result is not None:
                frame[result] = old

        return run

    def _tt_atomic_cas(self, op):
        pointer, expected, desired = op.operands[:3]
        elem, argument, loc, result = self.types[pointer].pointee, self._argument(pointer), op.loc, op.results[0]

        def run(frame):
            frame[result] = frame.launch.memory.compare_and_swap(
                frame[pointer], frame[expected], frame[desired], elem, argument, frame.n, loc
            )

        return run

    def _tt_assert(self, op):
        condition = op.operands[0]

        def run(frame):
            if not frame[condition].all():
                raise DeviceAssert("tl.device_assert failed", op.loc)

        return run


def _elementwise_step(op, f):
    result = op.results[0]
    if len(op.operands) == 1:
        a = op.operands[0]
        return lambda frame: frame.__setitem__(result, f(frame[a]))
    if len(op.operands) == 2:
        a, b = op.operands
        return lambda frame: frame.__setitem__(result, f(frame[a], frame[b]))
    names = op.operands
    return lambda frame: frame.__setitem__(result, f(*[frame[name] for name in names]))


class Kernel:
    """A kernel ready to run."""

    def __init__(self, text):
        self.module = ttir_parser.parse(text)
        try:
            self._prepare()
        except NotExecutable as error:
            error.module = self.module
            raise

    def _prepare(self):
        self.function = self.module.kernel()
        alone = len(self.module.functions) == 1
        self.indexed = alone and ttir_analysis.pointer_origins(self.function) is not None
        self.codes = {}
        for name, function in self.module.functions.items():
            builder = _FunctionBuilder(function, self.indexed, function.public)
            builder.used = ttir_analysis.used_names(function)
            self.codes[name] = FunctionCode(function, builder.block)
        largest = 1
        self.sequential = False
        for function in self.module.functions.values():
            largest = max([largest] + [int(np.prod(t.shape, dtype=np.int64)) for t in function.types.values()])
            self.sequential = self.sequential or ttir_analysis.waits(function)
        self.chunk = 1 if self.sequential else max(1, CHUNK_ELEMENTS // largest)

    def _bind(self, args):
        """Argument arrays and storages. `args`: tensors and numbers, in the order of the kernel's IR."""
        if len(args) != len(self.function.args):
            raise NotExecutable(f"the kernel has {len(self.function.args)} arguments in its IR and got {len(args)}")
        values, storages = {}, []
        for (name, type_), arg in zip(self.function.args, args):
            arg = getattr(arg, "base", arg) if not isinstance(arg, torch.Tensor) else arg
            storage = None
            if type_.elem == "ptr" and isinstance(arg, torch.Tensor):
                storage = storage_of(arg)
                address = arg.data_ptr()
                if self.indexed:
                    address = (address - storage.address) // numeric.memory_dtype(type_.pointee).itemsize
                values[name] = np.array([address], np.int64)
            elif type_.elem == "ptr":
                if self.indexed:
                    raise NotExecutable(f"a pointer argument of type {type(arg).__name__}")
                values[name] = np.array([0 if arg is None else int(arg)], np.int64)
            elif numeric.is_float(type_.elem):
                values[name] = np.asarray(numeric.to_float(np.array([float(arg)]), type_.elem))
            else:
                values[name] = numeric.integer(int(arg), type_.elem)
            storages.append(storage)
        return values, storages

    def launch(self, args, grid, counters=None, deadline=None, source_path=""):
        """Runs all programs of `grid` (three integers). KernelError with the line in `source_path` on any failure."""
        try:
            with np.errstate(all="ignore"):
                self._launch(args, grid, counters, deadline)
        except KernelError as error:
            error.kernel = self.function.name
            error.line = self.module.find_line(error.loc, source_path)
            raise

    def _launch(self, args, grid, counters, deadline):
        values, storages = self._bind(args)
        launch = Launch(Memory(storages, counters), counters, deadline, self.codes)
        gx, gy, gz = grid
        total = gx * gy * gz
        for start in range(0, total, self.chunk):
            launch.check_deadline("")
            n = min(self.chunk, total - start)
            linear = np.arange(start, start + n, dtype=np.int64)
            frame = Frame(None, None, n, launch)
            frame.update(values)
            for axis, size, pid in (
                ("x", gx, linear % gx),
                ("y", gy, linear // gx % gy),
                ("z", gz, linear // (gx * gy)),
            ):
                frame[f"pid {axis}"] = np.zeros(1, np.int32) if size == 1 else pid.astype(np.int32)
                frame[f"grid {axis}"] = np.array([size], np.int32)
            self.codes[self.function.name].call(frame)


_kernels = {}


def kernel_of(text):
    """Kernel of this IR text, parsed once per process. NotExecutable carries the line-less reason."""
    if text not in _kernels:
        _kernels[text] = Kernel(text)
    return _kernels[text]
