"""Counts the ATen operators that run under it, and fills fresh uninitialised memory with a pattern.

Counting sees what torch's dispatcher hands to Python modes in this thread; it is evidence and input of the modelled time,
not a defence against code that hides. Which operators forward may run is not decided here (verify/pipeline/runtime_audit.h).
"""

import contextlib
import math
import sys

import torch
from torch._library.custom_ops import OPDEFS
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

import operators

# Allocate without writing: no kernel runs for them.
_ALLOCATE = {
    "empty",
    "empty_like",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "empty_permuted",
    "_efficientzerotensor",
}
# Give an existing tensor more memory, of which the new part is not written.
_GROW = {"resize_", "resize_as_"}
# Copies, casts and fills: a kernel runs, but nothing is computed.
_COPY = {
    "clone",
    "copy_",
    "_to_copy",
    "zeros",
    "ones",
    "full",
    "zeros_like",
    "ones_like",
    "full_like",
    "new_zeros",
    "new_ones",
    "new_full",
    "fill_",
    "zero_",
    "fill",
    "arange",
    "scalar_tensor",
    "lift_fresh_copy",
    "contiguous",
}
# No kernel on a GPU: metadata, or a value read back.
_FREE = {
    "detach",
    "detach_",
    "lift_fresh",
    "lift",
    "squeeze_",
    "unsqueeze_",
    "t_",
    "transpose_",
    "swapaxes_",
    "swapdims_",
    "as_strided_",
    "_local_scalar_dense",
    "item",
    "is_same_size",
    "set_",
    "_unsafe_view",
    "alias",
    "_reshape_alias",
    "sym_size",
    "sym_stride",
    "sym_numel",
    "is_pinned",
    "_pin_memory",
    "is_nonzero",
    "record_stream",
    "resolve_conj",
}


# Namespaces of torch's own operators. One of another was registered by the program: what it runs is counted as well.
_LIBRARIES = {"aten", "prims", "prim", "quantized", "mkldnn", "sparse", "torchvision", "profiler", "c10d", "inductor"}


class OpCount:
    """Sums over all calls of one operator."""

    __slots__ = ("calls", "bytes", "flops", "elements", "largest", "view", "free", "line")

    def __init__(self, view, free):
        self.calls = self.bytes = self.flops = self.elements = 0
        self.largest = 0  # elements of the largest tensor in any call
        self.view = view  # by its schema all it returns are views of what it got
        self.free = free  # no kernel launch on a GPU
        self.line = 0  # of the program, at the first call

    def at_least(self, other):
        """Raises each figure to that of `other`, the same operator in another call of forward."""
        for name in ("calls", "bytes", "flops", "elements", "largest"):
            setattr(self, name, max(getattr(self, name), getattr(other, name)))
        self.line = self.line or other.line


def count_of(ops, name, view, free):
    """The OpCount of that name; a new one notes which line of the program runs."""
    count = ops.get(name)
    if count is None:
        count = ops[name] = OpCount(view, free)
        count.line = _program_line()
    return count


def _program_line():
    """The innermost line of the candidate that runs; 0 if none does."""
    frame = sys._getframe(1)
    while frame is not None and not frame.f_code.co_filename.endswith("candidate.py"):
        frame = frame.f_back
    return 0 if frame is None else frame.f_lineno


def most_of(ops, more):
    """Raises the figures in `ops` to the largest in any call of forward; `more` are those of one call."""
    for name, count in more.items():
        ops.setdefault(name, OpCount(count.view, count.free)).at_least(count)


def _tensors(values):
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


def _is_whole(dtype):
    return not dtype.is_floating_point and not dtype.is_complex


def _is_view(function):
    returns = function._schema.returns
    return bool(returns) and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)


def matmul_flops(name, inputs, outputs):
    """Floating point operations of one call; one for each output element where no better is known."""
    out = sum(t.numel() for t in outputs)
    if name in ("mm", "bmm", "mv", "dot", "vdot"):
        return 2 * max(out, 1) * inputs[0].shape[-1]
    if name in ("addmm", "baddbmm", "addmv", "addbmm"):
        return 2 * out * inputs[1].shape[-1] + out
    if "convolution" in name and len(inputs) > 1:
        weight = inputs[1]
        if outputs and len(weight.shape) > 2:
            per_output = 2 * math.prod(weight.shape[1:])
            grows = outputs[0].numel() // max(1, outputs[0].shape[0]) > 0 and outputs[0].shape[1] != weight.shape[0]
            return per_output * (
                inputs[0].numel() if grows else outputs[0].numel()
            )  # transposed: every input is spread
    if "scaled_dot_product" in name and len(inputs) >= 3:
        q, k = inputs[0], inputs[1]
        return 4 * q.numel() * k.shape[-2]
    if name in ("linear",):
        return 2 * out * inputs[1].shape[-1]
    inputs_total = max((t.numel() for t in inputs), default=0)
    return max(out, inputs_total)


class AtenCounter(TorchDispatchMode):
    """Dispatch mode. `ops` maps operator names ("aten.mm") to OpCount while `counting` is set. `pattern` (0 or 1) is
    what fresh memory of integers and booleans is filled with, see `poison`."""

    def __init__(self, counting=True, pattern=0, inside=contextlib.nullcontext):
        super().__init__()
        self.counting = counting
        self.inside = inside  # makes a context for what operators of the program run
        self._audits = []
        self.pattern = pattern
        self.ops = {}
        # Storages that casts filled with whole numbers made of others, by identity, which nobody else gets as long as
        # there is a weak reference; the memory itself goes when the program lets go of it.
        self._rounded, self._alive_at_last = {}, 32

    @classmethod
    def _should_skip_dynamo(cls):
        return False  # else torch imports torch._dynamo for every mode: 800 modules, seconds

    def __enter__(self):
        self._audits.append(operators.audit(lambda: self.inside()))
        self._audits[-1].__enter__()
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        self._audits.pop().__exit__(None, None, None)

    def __torch_dispatch__(self, function, types_, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = function._schema.name.split("::")[1]
        if name in _GROW:
            before = args[0].untyped_storage().nbytes()
            result = function(*args, **kwargs)
            poison_growth(args[0], before)
        else:
            result = self._run(function, args, kwargs)
            if name in _ALLOCATE:
                poison(result, self.pattern)
        if self.counting:
            self._count(function, name, args, kwargs, result)
            self._watch_casts(name, args, result)
        return result

    def _run(self, function, args, kwargs):
        """A handler runs without its mode, so that what an operator of the program does would not be seen."""
        tensors = list(_tensors(args)) + list(_tensors(kwargs.values()))
        with torch._C.DisableTorchFunction():
            device = tensors[0].device.type if tensors else "cpu"
            elements = max((t.numel() for t in tensors), default=0)
        registered, body = operators.find(function, device)  # torch's own operators can be registered anew, too
        if not registered and function.namespace in _LIBRARIES:
            return function(*args, **kwargs)
        if not registered:
            definition = OPDEFS.get(function._schema.name)
            functions = definition._backend_fns if definition is not None else {}
            body = functions.get(device, functions.get(None))
        if body is not None:
            with self.inside(), self:
                return body(*args, **kwargs)
        if self.counting:  # made in another way: nothing is known of what it does
            self._note(f"python.{function._schema.name}", elements)
        return function(*args, **kwargs)

    def _note(self, name, elements):
        count = count_of(self.ops, name, False, True)
        count.calls += 1
        count.elements += elements
        count.largest = max(count.largest, elements)

    def _watch_casts(self, name, args, result):
        """A cast of floating point numbers to whole ones and back rounds them, which is a computation."""
        if not isinstance(result, torch.Tensor) or result.layout != torch.strided or result.numel() == 0:
            return
        if name in ("_to_copy", "copy_"):
            source = args[1] if name == "copy_" else args[0]
            if not isinstance(source, torch.Tensor):
                return
            if not _is_whole(source.dtype) and _is_whole(result.dtype):
                self._remember(result)
            elif not _is_whole(result.dtype) and self._was_rounded(source):
                self._note("aten.cast_to_whole_numbers_and_back", result.numel())
        if self._rounded and _is_whole(result.dtype) and any(self._was_rounded(t) for t in _tensors(args)):
            self._remember(result)  # a copy of such numbers

    def _remember(self, tensor):
        storage = StorageWeakRef(tensor.untyped_storage())
        self._rounded[storage.cdata] = storage
        if len(self._rounded) > 2 * self._alive_at_last:
            self._rounded = {key: kept for key, kept in self._rounded.items() if not kept.expired()}
            self._alive_at_last = max(32, len(self._rounded))

    def _was_rounded(self, tensor):
        return tensor.layout == torch.strided and tensor.untyped_storage()._cdata in self._rounded

    def _count(self, function, name, args, kwargs, result):
        space = function._schema.name.split("::")[0]
        inputs = list(_tensors(args)) + list(_tensors(kwargs.values()))
        outputs = list(_tensors((result,)))
        view = _is_view(function)
        free = view or name in _ALLOCATE or name in _GROW or name in _FREE
        count = count_of(self.ops, f"{space}.{name}", view, free)
        elements = max((t.numel() for t in inputs + outputs), default=0)
        count.calls += 1
        count.elements += elements
        count.largest = max(count.largest, elements)
        if free:
            return
        reads = inputs
        if name in _COPY:
            reads = (
                inputs[1:]
                if name == "copy_"
                else inputs if name in ("clone", "_to_copy", "contiguous", "lift_fresh_copy") else []
            )
        else:
            count.flops += matmul_flops(name, inputs, outputs)
        count.bytes += sum(t.numel() * t.element_size() for t in {id(t): t for t in reads + outputs}.values())
        written = [t for t in outputs if any(t is i for i in reads)]
        count.bytes += sum(t.numel() * t.element_size() for t in written)  # in place: read and written


_INTEGERS = {torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32, torch.uint64}


def poison(result, pattern=0):
    """Fills fresh tensors, so that what is never written shows: NaN in floating point; in integers the largest
    (pattern 0) or the smallest number, in booleans True or False. One that happens to be right is wrong in the other."""
    for tensor in _tensors((result,)):
        if tensor.numel() == 0 or tensor.is_meta or tensor.layout != torch.strided:
            continue
        if tensor.is_floating_point() or tensor.is_complex():
            tensor.fill_(math.nan)
        elif tensor.dtype == torch.bool:
            tensor.fill_(pattern == 0)
        elif tensor.dtype in _INTEGERS:
            limits = torch.iinfo(tensor.dtype)
            tensor.fill_(limits.max if pattern == 0 else limits.min)


def poison_growth(tensor, before):
    """All ones in the bytes that a storage of `before` bytes got in addition: NaN in every floating point type."""
    storage = tensor.untyped_storage()
    if storage.nbytes() > before and not tensor.is_meta:
        raw = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage)
        raw[before:].fill_(255)
