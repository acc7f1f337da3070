"""Counts the ATen operators that run under it, and fills fresh uninitialised memory with a pattern.

The figures are input of the modelled time and evidence. What decides nothing here is who computes: references may.
"""

import math

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# Allocate without writing: no kernel runs for them.
_ALLOCATE = set(
    "empty empty_like empty_strided new_empty new_empty_strided empty_permuted _efficientzerotensor".split()
)
# Give an existing tensor more memory, of which the new part is not written.
_GROW = {"resize_", "resize_as_"}
# Copies, casts and fills: a kernel runs, but nothing is computed.
_COPY = set(
    "clone copy_ _to_copy zeros ones full zeros_like ones_like full_like new_zeros new_ones new_full fill_ zero_ fill "
    "arange scalar_tensor lift_fresh_copy contiguous".split()
)
# Those that read what they copy.
_READ = {"clone", "_to_copy", "contiguous", "lift_fresh_copy"}
# No kernel on a GPU: metadata, or a value read back.
_FREE = set(
    "detach detach_ lift_fresh lift squeeze_ unsqueeze_ t_ transpose_ swapaxes_ swapdims_ as_strided_ "
    "_local_scalar_dense item is_same_size set_ _unsafe_view alias _reshape_alias sym_size sym_stride sym_numel "
    "is_pinned _pin_memory is_nonzero record_stream resolve_conj".split()
)
_INTEGERS = {getattr(torch, f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)}


class OpCount:
    """Sums over all calls of one operator. `free`: no kernel is launched on a GPU."""

    __slots__ = ("calls", "bytes", "flops", "free")

    def __init__(self, free):
        self.calls = self.bytes = self.flops = 0
        self.free = free


def describe(ops):
    """The counts as the result of a job has them, in the order of the operators' first calls."""
    return [
        {"name": name, "calls": c.calls, "bytes": c.bytes, "flops": c.flops, "free": c.free} for name, c in ops.items()
    ]


def _tensors(values):
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


def _is_view(function):
    """By its schema all it returns are views of what it got."""
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


class OperatorCounter(TorchDispatchMode):
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
        name = function._schema.name.split("::")[1]
        before = args[0].untyped_storage().nbytes() if name in _GROW else 0
        result = function(*args, **kwargs)
        if name in _GROW:
            poison_growth(args[0], before)
        elif name in _ALLOCATE:
            poison(result)
        if self.counting:
            self._count(function, name, args, kwargs, result)
        return result

    def _count(self, function, name, args, kwargs, result):
        space = function._schema.name.split("::")[0]
        inputs = list(_tensors(args)) + list(_tensors(kwargs.values()))
        outputs = list(_tensors((result,)))
        free = _is_view(function) or name in _ALLOCATE or name in _GROW or name in _FREE
        count = self.ops.setdefault(f"{space}.{name}", OpCount(free))
        count.calls += 1
        if free:
            return
        reads = inputs
        if name in _COPY:
            reads = inputs[1:] if name == "copy_" else inputs if name in _READ else []
        else:
            count.flops += matmul_flops(name, inputs, outputs)
        count.bytes += sum(t.numel() * t.element_size() for t in {id(t): t for t in reads + outputs}.values())
        written = [t for t in outputs if any(t is i for i in reads)]
        count.bytes += sum(t.numel() * t.element_size() for t in written)  # in place: read and written


def poison(result):
    """Fills fresh tensors, so that what is never written shows: NaN in floating point, the largest number in integers,
    True in booleans."""
    for tensor in _tensors((result,)):
        if tensor.numel() == 0 or tensor.is_meta or tensor.layout != torch.strided:
            continue
        if tensor.is_floating_point() or tensor.is_complex():
            tensor.fill_(math.nan)
        elif tensor.dtype == torch.bool:
            tensor.fill_(True)
        elif tensor.dtype in _INTEGERS:
            tensor.fill_(torch.iinfo(tensor.dtype).max)


def poison_growth(tensor, before):
    """All ones in the bytes that a storage of `before` bytes got in addition: NaN in every floating point type."""
    storage = tensor.untyped_storage()
    if storage.nbytes() > before and not tensor.is_meta:
        raw = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage)
        raw[before:].fill_(255)
