"""Counts the ATen operators that run under it, and fills fresh uninitialised tensors with NaN.

Counting sees what torch's dispatcher hands to Python modes in this thread; it is evidence and input of the modelled time,
not a defence against code that hides.
"""

import math

import torch
from torch.utils._python_dispatch import TorchDispatchMode

SMALL = 16  # work on at most this many elements counts as scalar post-processing

# Allocate without writing: no kernel runs for them.
_ALLOCATE = {
    "empty",
    "empty_like",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "empty_permuted",
    "resize_",
    "_efficientzerotensor",
}
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


class OpCount:
    """Sums over all calls of one operator."""

    __slots__ = ("calls", "bytes", "flops", "elements", "neutral", "free")

    def __init__(self, free):
        self.calls = self.bytes = self.flops = self.elements = 0
        self.neutral = True
        self.free = free  # no kernel launch on a GPU


def _tensors(values):
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


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
    """Dispatch mode. `ops` maps operator names ("aten.mm") to OpCount while `counting` is set."""

    def __init__(self, counting=True):
        super().__init__()
        self.counting = counting
        self.ops = {}

    @classmethod
    def _should_skip_dynamo(cls):
        return False  # else torch imports torch._dynamo for every mode: 800 modules, seconds

    def __torch_dispatch__(self, function, types_, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        name = function._schema.name.split("::")[1]
        if name in _ALLOCATE and name != "resize_":
            poison(result)
        if self.counting:
            self._count(function, name, args, kwargs, result)
        return result

    def _count(self, function, name, args, kwargs, result):
        space = function._schema.name.split("::")[0]
        inputs = list(_tensors(args)) + list(_tensors(kwargs.values()))
        outputs = list(_tensors((result,)))
        free = name in _ALLOCATE or name in _FREE or _is_view(function)
        count = self.ops.setdefault(f"{space}.{name}", OpCount(free))
        elements = max((t.numel() for t in inputs + outputs), default=0)
        count.calls += 1
        count.elements += elements
        count.neutral = count.neutral and (free or name in _COPY or elements <= SMALL)
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


def poison(result):
    """NaN (or the largest integer) in a fresh tensor, so that what is never written shows."""
    for tensor in _tensors((result,)):
        if tensor.numel() == 0 or tensor.is_meta or tensor.layout != torch.strided:
            continue
        if tensor.is_floating_point() or tensor.is_complex():
            tensor.fill_(math.nan)
        elif tensor.dtype == torch.bool:
            tensor.fill_(True)
        elif tensor.dtype in (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8):
            tensor.fill_(torch.iinfo(tensor.dtype).max)
