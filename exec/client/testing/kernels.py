"""What the kernels of these tests do, by their names, on the executor's memory. Their Triton IR is not run.

A kernel gets the arguments that Triton gives it: no constants, tuples and descriptors as their parts.
"""

import re

import torch


class Launch:
    """One launch: `args` in order, `programs` along the first axis, `block` elements in each."""

    def __init__(self, storages, args, programs, block):
        self._storages = storages  # fake_executor.Storages
        self.args, self._covered = args, programs * block

    def elements(self, tensor, count):
        """The first `count` elements from where a pointer to `tensor` points, as one vector. RuntimeError where the
        storage has fewer."""
        return self._vector(tensor.untyped_storage(), tensor.storage_offset(), count, tensor.dtype)

    def elements_at(self, address, count, dtype):
        """As elements(), from an address that a kernel was told."""
        for begin, raw in self._storages.live.values():
            if begin <= address < begin + raw.numel():
                offset = (address - begin) // dtype.itemsize
                return self._vector(raw.untyped_storage(), offset, count, dtype)
        raise RuntimeError("out-of-bounds access: no storage has the address")

    def masked(self, n):
        """Elements that the programs reach together, of `n`."""
        return min(n, self._covered)

    def _vector(self, storage, offset, count, dtype):
        if (offset + count) * dtype.itemsize > storage.nbytes():
            raise RuntimeError(f"out-of-bounds access: {count} elements of {dtype} from element {offset} on")
        return torch.empty(0, dtype=dtype).set_(storage, offset, (count,), (1,))


def _twice(launch):
    x, y, n = launch.args
    n = launch.masked(n)
    launch.elements(y, n).copy_(2 * launch.elements(x, n))


def _twice_in_place(launch):
    x, n = launch.args
    launch.elements(x, launch.masked(n)).mul_(2)


def _adds(launch):
    x, y, n = launch.args
    n = launch.masked(n)
    launch.elements(y, n).add_(2 * launch.elements(x, n))


def _copy(launch):
    x, y, n = launch.args
    n = launch.masked(n)
    launch.elements(y, n).copy_(launch.elements(x, n))


def _by_pointer(launch):
    pointers, y, n = launch.args
    n = launch.masked(n)
    launch.elements(y, n).copy_(2 * launch.elements_at(pointers.item(), n, torch.float32))


def _many(launch):
    y, first, second, three, number, flag, infinite, address = launch.args
    x = launch.elements_at(address, 4, torch.float32)
    value = launch.elements(first, 4) + three + 1 + number
    if flag:
        launch.elements(y, 4).copy_(value)
    launch.elements(second, 4).copy_(torch.where(value < infinite, x, 0))


def _by_descriptor(launch):
    """A tensor of two dimensions, its shape and strides, whether padding is NaN, the same once more; so for both."""
    half = len(launch.args) // 2
    (a, rows, columns), b = launch.args[:3], launch.args[half]
    count = rows * columns
    launch.elements(b, count).copy_(2 * launch.elements(a, count))


def _in_kernel(launch):
    x, y, rows, columns = launch.args
    launch.elements(y, rows * columns).copy_(2 * launch.elements(x, rows * columns))


_KERNELS = {
    "twice_kernel": _twice,
    "guided": _twice,
    "tuned": _twice_in_place,
    "adds": _adds,
    "copy_kernel": _copy,
    "by_pointer": _by_pointer,
    "many": _many,
    "by_descriptor": _by_descriptor,
    "in_kernel": _in_kernel,
}


def kernel_of(name, ttir, storages):
    """run(args, grid) of the kernel `name`. Elements of a program are those of the first tensor in the IR."""
    shape = re.search(r"tensor<(\d+)x", ttir)
    block = int(shape[1]) if shape else 1

    def run(args, grid):
        _KERNELS[name](Launch(storages, args, grid[0], block))

    return run
