"""Results that a task must not accept, made on the reference host when they are asked for. What each is stands in
exec/candidate/task_probes.h."""

import torch

import layout
from plain_torch import plain_torch

_BY_REFERENCE = ("half_input", "low_precision")
_CONSTANTS = ("constant_mean", "constant_first", "constant_middle")
NAMES = ("zeros", *_CONSTANTS, "identity", "half_output", *_BY_REFERENCE)


class Forger:
    """Makes them call by call. `outlet` is a kept.KeptOutlet, `calls` are the result's, `probe(name, call)` is what
    only the reference can make."""

    def __init__(self, outlet, calls, probe):
        self._outlet = outlet
        self._calls = calls
        self._probe = probe
        self._made = ((None, None), None)

    def leaves(self, name, call):
        """By leaf of the call's output a flat tensor, None for what is no tensor or of another shape or type than
        expected; None for all where the probe cannot be made."""
        if name not in NAMES:
            raise ValueError(f"there is no probe {name!r}")
        if self._made[0] != (name, call):
            self._made = ((None, None), None)  # its memory may be needed
            self._made = ((name, call), self._make(name, call))
        return self._made[1]

    def drop(self):
        self._made = ((None, None), None)

    def _described(self, call):
        """By leaf of the call's output a tensor's description, or None."""
        leaves = layout.leaves_of(self._calls[call]["output"])
        return [leaf if kind == "tensor" else None for kind, leaf in leaves]

    def _make(self, name, call):
        if name in _BY_REFERENCE:
            return self._of_value(self._probe(name, call), call)
        if name == "identity":
            made = self._identity(call)
            return made if made is not None else self._of_value(self._probe("identity_cast", call), call)
        if name in _CONSTANTS:
            first = self._outlet.output_leaves(0)
            return _constants(name, first, self._outlet.output_leaves(call))
        return _each(self._outlet.output_leaves(call), torch.zeros_like if name == "zeros" else _half)

    def _of_value(self, value, call):
        if value is None:
            return None
        described = self._described(call)
        leaves = [leaf for _, leaf in layout.flatten(value)]
        if len(leaves) != len(described):
            return [None] * len(described)
        return [_flat(leaf) if _alike(leaf, node) else None for leaf, node in zip(leaves, described)]

    def _identity(self, call):
        """For each output an input of its shape and type."""
        inputs = layout.tensors(self._outlet.view(self._calls[call]["trial"]))  # perhaps made again, by torch as it comes
        return self._take(inputs, call)

    @plain_torch()
    def _take(self, inputs, call):
        made = []
        for node in self._described(call):
            found = next((tensor for tensor in inputs if node is not None and _alike(tensor, node)), None)
            if found is None and node is not None and 0 not in node["shape"]:
                return None
            if found is None and node is not None:  # without elements
                found = torch.empty(0, dtype=getattr(torch, node["dtype"]))
            made.append(None if node is None else _flat(found))
        return made


@plain_torch()
def _alike(leaf, node):
    """Whether a leaf is a tensor of the description's shape and type."""
    if node is None or not isinstance(leaf, torch.Tensor):
        return False
    return list(leaf.shape) == node["shape"] and str(leaf.dtype) == f"torch.{node['dtype']}"


@plain_torch()
def _flat(tensor):
    return tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)


@plain_torch()
def _each(leaves, function):
    """None if `function` cannot make one of them."""
    made = [None if leaf is None else function(leaf) if leaf.numel() else leaf for leaf in leaves]
    whole = all((a is None) == (b is None) for a, b in zip(made, leaves))
    return made if whole else None


def _half(leaf):
    """The second half zero; None of a single element."""
    if leaf.numel() < 2:
        return None
    made = torch.zeros_like(leaf)
    half = leaf.numel() // 2
    made[:half] = leaf[:half]
    return made


@plain_torch()
def _constants(name, first, leaves):
    """Each leaf filled with one element of its counterpart in the first call's output."""
    made = []
    for number, leaf in enumerate(leaves):
        if leaf is None or leaf.numel() == 0:
            made.append(leaf)
            continue
        like = first[number] if number < len(first) else None
        if like is None or like.numel() == 0 or like.dtype != leaf.dtype:
            return None
        at = _index(name, like)
        made.append(like[at : at + 1].repeat(leaf.numel()))
    return made


def _index(name, leaf):
    """Of the element that stands for all: nearest to the finite ones' mean, or to the middle between their ends."""
    if name == "constant_first" or leaf.is_complex():
        return 0
    wide = (leaf.view(torch.uint8) != 0 if leaf.dtype == torch.bool else leaf).double()
    is_finite = wide.isfinite()
    count = int(is_finite.sum())
    if count == 0:
        return 0
    if name == "constant_mean":
        target = float(torch.where(is_finite, wide, 0.0).sum()) / count
    else:
        inf = float("inf")
        low = float(torch.where(is_finite, wide, inf).min())
        high = float(torch.where(is_finite, wide, -inf).max())
        target = low + (high - low) / 2
    distance = (wide - target).abs_()
    return int(torch.where(distance.isnan(), float("inf"), distance).argmin())
