"""Values taken apart into flat dense tensors that stay in this process, and put together again."""

import math

import torch

import layout
from plain_torch import plain_torch
from reference import fits


class Collector(layout.Describer):
    """Keeps dense copies of a value's tensors on a device, with offsets as if they lay one behind the other."""

    def __init__(self, device):
        self._device = device
        self.leaves = []  # flat dense tensors, in the order of the description's; None for one that cannot be kept
        self.size = 0

    def _put(self, value):
        if isinstance(value, torch.Tensor):
            self.leaves.append(None)
        return super()._put(value)

    def _store(self, tensor):
        start = layout.aligned(self.size)
        flat = torch.empty(tensor.numel(), dtype=tensor.dtype, device=self._device)
        flat.view(tensor.shape).copy_(tensor)  # conjugated views become numbers
        self.leaves[-1] = flat
        if flat.numel():
            self.size = start + flat.numel() * flat.element_size()
        return start


class Leaves(layout.Builder):
    """Values made of a Collector's leaves: fresh copies, or with copy=False views of the leaves themselves where their
    strides allow it."""

    def __init__(self, leaves, copy=True):
        self._rest = iter(leaves)
        self._copy = copy

    def _dense(self, node, dtype, size):
        leaf = next(self._rest)
        return leaf.clone() if self._copy else leaf


def _mapped(node, place):
    """The description with place(tensor's description) in place of each tensor's."""
    ((kind, value),) = node.items()
    if kind == "tensor":
        return {kind: place(value)}
    if kind in ("list", "tuple"):
        return {kind: [_mapped(item, place) for item in value]}
    if kind in ("dict", "config"):
        return {kind: [[key, _mapped(item, place)] for key, item in value]}
    return node


def handed_over(node, leaves, writer):
    """The description of a value whose leaves a layout.Writer got."""
    rest = iter(leaves)

    def place(described):
        (offset,) = writer.put_flat(next(rest))
        return {**described, "offset": offset}

    described = _mapped(node, place)
    return fits(described, "what the reference makes")


def _own_places(shape, stride):
    """Whether strides alone show that no two elements share their place (HasDistinctElements of exec/device)."""
    reach = 0
    for step, size in sorted((step, size) for step, size in zip(stride, shape) if size > 1):
        if step <= reach:
            return False
        reach += step * (size - 1)
    return True


def window_layout(node, spans=True):
    """(description, bytes) of a value in a window: with `spans`, tensors lie there with their gaps where each element
    has a place of its own, so that they need no further copy."""
    end = 0

    def place(described):
        nonlocal end
        shape, stride = described["shape"], described["stride"]
        elements = math.prod(shape)
        if spans and elements and _own_places(shape, stride):
            elements = 1 + sum(step * (size - 1) for step, size in zip(stride, shape))
        else:
            stride = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
        start = layout.aligned(end)
        if elements:
            end = start + elements * getattr(torch, described["dtype"]).itemsize
        return {**described, "stride": stride, "offset": start}

    return _mapped(node, place), end


def by_leaf(node, leaves):
    """A Collector's leaves by place among all leaves of the description; None for what is no tensor."""
    rest = iter(leaves)
    return [next(rest) if kind == "tensor" else None for kind, _ in layout.leaves_of(node)]


@plain_torch()
def write(node, leaves, memory):
    """Writes leaves where a window's description says into a tensor of bytes."""
    for (kind, described), leaf in zip(layout.leaves_of(node), by_leaf(node, leaves)):
        if kind == "tensor" and leaf.numel():
            shape, stride = described["shape"], described["stride"]
            span = 1 + sum(step * (size - 1) for step, size in zip(stride, shape))
            raw = memory[described["offset"] : described["offset"] + span * leaf.element_size()]
            raw.view(leaf.dtype).as_strided(shape, stride).copy_(leaf.view(shape))


def byte_count(leaves):
    return sum(leaf.numel() * leaf.element_size() for leaf in leaves if leaf is not None)


@plain_torch()
def same(a, b):
    """Whether two lists of leaves are bit for bit the same; False where one is None."""
    if a is None or b is None or len(a) != len(b):
        return False
    return all(x.dtype == y.dtype and x.view(torch.uint8).equal(y.view(torch.uint8)) for x, y in zip(a, b))
