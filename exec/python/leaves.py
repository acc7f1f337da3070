"""Values taken apart into flat dense tensors that stay in this process, and put together again."""

import torch

import layout
from plain_torch import plain_torch


class Collector(layout.Describer):
    """Keeps dense copies of a value's tensors on a device, with offsets as if they lay one behind the other."""

    def __init__(self, device):
        super().__init__()
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
        super().__init__()
        self._rest = iter(leaves)
        self._copy = copy

    def _dense(self, node, dtype, size):
        leaf = next(self._rest)
        return leaf.clone() if self._copy else leaf


def moved(node, base):
    """The description with all offsets `base` further on."""
    ((kind, value),) = node.items()
    if kind == "tensor":
        offset = value["offset"]
        return {kind: {**value, "offset": None if offset is None else base + offset}}
    if kind in ("list", "tuple"):
        return {kind: [moved(item, base) for item in value]}
    if kind in ("dict", "config"):
        return {kind: [[key, moved(item, base)] for key, item in value]}
    return node


def by_leaf(node, leaves):
    """A Collector's leaves by place among all leaves of the description; None for what is no tensor."""
    rest = iter(leaves)
    return [next(rest) if kind == "tensor" else None for kind, _ in layout.leaves_of(node)]


@plain_torch()
def write(node, leaves, memory):
    """Writes leaves where the description says into a tensor of bytes."""
    for (kind, described), leaf in zip(layout.leaves_of(node), by_leaf(node, leaves)):
        if kind == "tensor" and leaf.numel():
            offset, raw = described["offset"], leaf.view(torch.uint8)
            memory[offset : offset + raw.numel()].copy_(raw)


def byte_count(leaves):
    return sum(leaf.numel() * leaf.element_size() for leaf in leaves if leaf is not None)


@plain_torch()
def same(a, b):
    """Whether two lists of leaves are bit for bit the same; False where one is None."""
    if a is None or b is None or len(a) != len(b):
        return False
    return all(x.dtype == y.dtype and x.view(torch.uint8).equal(y.view(torch.uint8)) for x, y in zip(a, b))
