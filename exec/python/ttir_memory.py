"""Memory as a kernel sees it: loads, stores and atomics on the storages of the launch's tensors, each with a bounds check.

Pointers come in two forms, chosen for a whole kernel:
- indexed: an array of element indices from the start of a storage that is known when the kernel is prepared;
- absolute: an array of byte addresses, whose storage is looked up at each access.
"""

import ctypes
import gc

import numpy as np
import torch

import numeric
from failures import NotExecutable, OutOfBounds


class Storage:
    """The bytes of one tensor's storage: `address`, `size` in bytes, and views of any type on them."""

    def __init__(self, address, size):
        self.address = address
        self.size = size
        self._views = {}

    def view(self, dtype):
        array = self._views.get(dtype)
        if array is None:
            raw = (ctypes.c_uint8 * self.size).from_address(self.address) if self.size else bytearray()
            whole = self.size // dtype.itemsize * dtype.itemsize
            array = np.frombuffer(raw, dtype=np.uint8)[:whole].view(dtype)
            self._views[dtype] = array
        return array


def storage_of(tensor):
    """Storage of a torch tensor on the CPU."""
    untyped = tensor.untyped_storage()
    return Storage(untyped.data_ptr(), untyped.nbytes())


def _bounds_error(kind, bad, total, index, count, elem, loc):
    return OutOfBounds(
        f"out-of-bounds {kind}: {bad} of {total} elements lie outside, the first at element {index} of a tensor "
        f"storage with {count} elements of {elem}",
        loc,
    )


class Memory:
    """Accesses of one launch. `counters` is None while nothing is counted; `programs` is set for each access."""

    def __init__(self, storages, counters=None):
        self.storages = storages  # one for each argument of the kernel, None where it is no tensor
        self.counters = counters
        self.scanned = False

    def _locate(self, kind, pointers, mask, elem, loc):
        """Absolute pointers of one access -> [(storage, indices, mask)], one for each storage touched."""
        dtype = numeric.memory_dtype(elem)
        if mask is not None:
            shape = np.broadcast_shapes(pointers.shape, mask.shape)
            pointers, mask = np.broadcast_to(pointers, shape), np.broadcast_to(mask, shape)
        active = pointers if mask is None else pointers[mask]
        if active.size == 0:
            return [(Storage(0, 0), np.zeros_like(pointers), np.zeros(pointers.shape, np.bool_))]
        low, high = int(active.min()), int(active.max())
        found = self._find(low)
        if found is None or high >= found.address + found.size:
            return self._split(kind, pointers, mask, active, dtype, elem, loc)
        return [(found, self._indices(kind, pointers, mask, found, dtype, loc), mask)]

    def _indices(self, kind, pointers, mask, storage, dtype, loc):
        offsets = pointers - storage.address
        odd = (offsets & (dtype.itemsize - 1)) != 0
        if mask is not None:
            odd &= mask
        if odd.any():
            raise OutOfBounds(f"misaligned {kind}: the address is no multiple of {dtype.itemsize} bytes", loc)
        return offsets // dtype.itemsize

    def _find(self, address):
        for storage in self.storages:
            if storage is not None and storage.address <= address < storage.address + storage.size:
                return storage
        if not self.scanned:  # an address that came through an integer: any tensor alive may be meant
            self.scanned = True
            known = {s.address for s in self.storages if s is not None}
            for thing in gc.get_objects():
                if (
                    issubclass(type(thing), torch.Tensor)
                    and thing.device.type == "cpu"
                    and thing.layout == torch.strided
                ):
                    storage = storage_of(thing)
                    if storage.address not in known:
                        known.add(storage.address)
                        self.storages.append(storage)
            return self._find(address)
        return None

    def _split(self, kind, pointers, mask, active, dtype, elem, loc):
        parts, covered = [], 0
        if mask is None:
            mask = np.ones(pointers.shape, np.bool_)
        for storage in list(self.storages):
            if storage is None or any(storage.address == part[0].address for part in parts):
                continue
            inside = mask & (pointers >= storage.address) & (pointers < storage.address + storage.size)
            if inside.any():
                parts.append((storage, self._indices(kind, pointers, inside, storage, dtype, loc), inside))
                covered += int(np.count_nonzero(inside))
        if covered < active.size:
            raise OutOfBounds(
                f"out-of-bounds {kind}: {active.size - covered} of {active.size} elements lie in no tensor", loc
            )
        return parts

    def _safe_indices(self, kind, storage, view, indices, mask, elem, loc):
        """Indices with 0 where the mask is off, after the bounds check."""
        safe = np.where(mask, indices, 0) if mask is not None else np.ascontiguousarray(indices)
        if safe.size and safe.view(np.uint64).max() >= view.shape[0]:
            bad = (safe < 0) | (safe >= view.shape[0])
            if mask is not None:
                bad &= mask
            if bad.any():
                where = int(np.argmax(bad.reshape(-1)))
                raise _bounds_error(
                    kind, int(np.count_nonzero(bad)), bad.size, int(safe.reshape(-1)[where]), view.shape[0], elem, loc
                )
        return safe

    def load(self, pointers, mask, other, elem, argument, programs, loc):
        """Values at the pointers; `other` (or 0) where the mask is off. `argument` is None for absolute pointers."""
        if argument is None:
            parts = self._locate("load", pointers, mask, elem, loc)
            if len(parts) > 1:
                shape = np.broadcast_shapes(pointers.shape, parts[0][2].shape)
                result = (
                    np.zeros(shape, numeric.value_dtype(elem))
                    if other is None
                    else np.array(np.broadcast_to(other, shape))
                )
                for storage, indices, part in parts:
                    result = np.where(part, self._load(storage, indices, part, None, elem, programs, loc), result)
                return result
            storage, pointers, mask = parts[0]
        else:
            storage = self.storages[argument]
        return self._load(storage, pointers, mask, other, elem, programs, loc)

    def _load(self, storage, indices, mask, other, elem, programs, loc):
        if mask is not None and mask.all():
            mask = None
        view = storage.view(numeric.memory_dtype(elem))
        safe = self._safe_indices("load", storage, view, indices, mask, elem, loc)
        if self.counters is not None:
            self.counters.touch("load", storage, safe, mask, view.itemsize, programs)
        if view.shape[0] == 0:
            values = np.zeros(safe.shape, numeric.value_dtype(elem))
        else:
            values = numeric.from_memory(view.take(safe), elem)
        if mask is None:
            return values
        return np.where(mask, values, values.dtype.type(0) if other is None else other)

    def store(self, pointers, values, mask, elem, argument, programs, loc):
        """Writes values where the mask is on; of several writes to one place the last program's stays."""
        parts = (
            [(self.storages[argument], pointers, mask)]
            if argument is not None
            else self._locate("store", pointers, mask, elem, loc)
        )
        for storage, indices, part in parts:
            if part is not None and part.all():
                part = None
            view = storage.view(numeric.memory_dtype(elem))
            safe = self._safe_indices("store", storage, view, indices, part, elem, loc)
            if self.counters is not None:
                self.counters.touch("store", storage, safe, part, view.itemsize, programs)
            raw = numeric.to_memory(values, elem)
            if part is None:
                if raw.shape[0] > safe.shape[0]:  # every program writes the same place: the last one wins
                    raw = raw[-1:]
                view[safe] = raw
            else:
                shape = np.broadcast_shapes(safe.shape, part.shape, raw.shape)
                part = np.broadcast_to(part, shape)
                view[np.broadcast_to(safe, shape)[part]] = np.broadcast_to(raw, shape)[part]

    def atomic(self, kind, pointers, values, mask, elem, argument, programs, loc, wanted):
        """Read-modify-write for every program in turn. Returns the values before it (None unless `wanted`)."""
        if argument is None:
            parts = self._locate("atomic", pointers, mask, elem, loc)
            if len(parts) > 1:
                raise NotExecutable("an atomic operation on several tensors at once", loc)
            storage, pointers, mask = parts[0]
        else:
            storage = self.storages[argument]
        view = storage.view(numeric.memory_dtype(elem))
        shape = (programs,) + np.broadcast_shapes(pointers.shape, values.shape)[1:]
        if mask is not None:
            mask = np.broadcast_to(mask, shape)
        pointers = np.broadcast_to(pointers, shape)
        safe = self._safe_indices("atomic", storage, view, pointers, mask, elem, loc)
        if self.counters is not None:
            self.counters.touch("atomic", storage, safe, mask, view.itemsize, programs)
        on = np.ones(shape, np.bool_) if mask is None else mask
        old = np.zeros(shape, numeric.value_dtype(elem))
        old[on] = apply_atomic(kind, view, safe[on], np.broadcast_to(values, shape)[on], elem, wanted)
        return old

    def compare_and_swap(self, pointers, expected, desired, elem, argument, programs, loc):
        """Compare-and-swap for every program in turn; returns the values before it."""
        if argument is None:
            storage, pointers, _ = self._locate("atomic", pointers, None, elem, loc)[0]
        else:
            storage = self.storages[argument]
        view = storage.view(numeric.memory_dtype(elem))
        shape = (programs,) + np.broadcast_shapes(pointers.shape, expected.shape, desired.shape)[1:]
        safe = self._safe_indices("atomic", storage, view, np.broadcast_to(pointers, shape), None, elem, loc)
        if self.counters is not None:
            self.counters.touch("atomic", storage, safe, None, view.itemsize, programs)
        wanted, new = (np.broadcast_to(numeric.to_memory(x, elem), shape).reshape(-1) for x in (expected, desired))
        old = np.empty(wanted.shape, view.dtype)
        for i, index in enumerate(safe.reshape(-1)):
            old[i] = view[index]
            if old[i] == wanted[i]:
                view[index] = new[i]
        return numeric.from_memory(old.reshape(shape), elem)


_ATOMIC_UFUNC = {
    "fadd": np.add,
    "add": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "umax": np.maximum,
    "umin": np.minimum,
    "exch": None,
}


def apply_atomic(kind, view, indices, values, elem, wanted):
    """Applies the operation to view[indices] in order; returns the old values (0 if they are not wanted)."""
    if kind not in _ATOMIC_UFUNC:
        raise NotExecutable(f"atomic operation {kind}")
    combine = _ATOMIC_UFUNC[kind]
    target, raw = view, values
    if kind in ("umax", "umin"):
        target, raw = view.view(f"u{view.itemsize}"), values.view(f"u{view.itemsize}")
    plain = elem not in ("bf16",) and elem not in numeric.FP8
    if not wanted and plain:
        if combine is None:
            target[indices] = raw
        else:
            combine.at(target, indices, raw)
        return np.zeros((), values.dtype)
    if plain and np.unique(indices).size == indices.size:
        old = target[indices]
        target[indices] = raw if combine is None else combine(old, raw)
        return old.view(values.dtype)
    old = np.empty(values.shape, values.dtype)
    for i, index in enumerate(indices):
        before = numeric.from_memory(target[index : index + 1], elem)
        after = raw[i : i + 1] if combine is None else combine(before, raw[i : i + 1])
        target[index : index + 1] = numeric.to_memory(after if plain else numeric.to_float(after, elem), elem)
        old[i] = before.view(values.dtype)[0] if plain else before[0]
    return old
