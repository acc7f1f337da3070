"""What one kernel launch did: bytes, 32-byte sectors and operations, counted while it is executed."""

import numpy as np

SECTOR_SHIFT = 5  # the L2 cache of an NVIDIA GPU moves memory in sectors of 32 bytes


class LaunchCounters:
    """Sums over all programs of a launch. `unique_bytes` needs `touch` calls with the element indices of each access."""

    def __init__(self):
        self.load_bytes = 0
        self.store_bytes = 0
        self.atomic_bytes = 0
        self.sectors = 0  # distinct sectors of each access of each program
        self.flops = 0  # floating point operations outside of dots
        self.dot_flops = 0  # of dots on fp32 or fp64 operands in full precision
        self.tensor_flops = 0  # of dots that tensor cores do (fp16, bf16, fp8, int8, tf32)
        self._touched = {}  # (storage address, kind) -> array of bool, one for each sector

    def touch(self, kind, storage, indices, mask, itemsize, programs):
        """Counts one access: `indices` are element indices from the storage's start, (programs or 1, ...) like `mask`."""
        lead = indices.shape[0] if mask is None else max(indices.shape[0], mask.shape[0])
        if mask is None:
            active = indices.size
        else:
            shape = np.broadcast_shapes(indices.shape, mask.shape)
            indices, mask = np.broadcast_to(indices, shape), np.broadcast_to(mask, shape)
            active = int(np.count_nonzero(mask))
        repeat = programs // lead
        size = active * itemsize * repeat
        if kind == "load":
            self.load_bytes += size
        elif kind == "store":
            self.store_bytes += size
        else:
            self.atomic_bytes += size
        if not active:
            return
        sectors = (indices * itemsize) >> SECTOR_SHIFT
        bitmap = self._bitmap(kind, storage)
        bitmap[sectors if mask is None else sectors[mask]] = True
        self.sectors += (
            _distinct_per_row(sectors.reshape(lead, -1), None if mask is None else mask.reshape(lead, -1)) * repeat
        )

    def _bitmap(self, kind, storage):
        key = (storage.address, "load" if kind == "load" else "store")
        if key not in self._touched:
            self._touched[key] = np.zeros((storage.size >> SECTOR_SHIFT) + 1, dtype=np.bool_)
        return self._touched[key]

    @property
    def unique_bytes(self):
        """Compulsory DRAM traffic: every sector that was read once, every sector that was written once."""
        return sum(int(np.count_nonzero(bitmap)) for bitmap in self._touched.values()) << SECTOR_SHIFT

    @property
    def sector_bytes(self):
        return self.sectors << SECTOR_SHIFT


def _distinct_per_row(sectors, mask):
    """Sum over rows of the number of distinct sectors among the row's active elements."""
    last = np.iinfo(np.int64).max
    if mask is not None:
        sectors = np.where(mask, sectors, last)
    steps = sectors[:, 1:] - sectors[:, :-1]
    if (steps < 0).any():
        sectors = np.sort(sectors, axis=1)
        steps = sectors[:, 1:] - sectors[:, :-1]
    distinct = int(np.count_nonzero(steps)) + sectors.shape[0]
    return distinct - int(np.count_nonzero(sectors[:, -1] == last)) if mask is not None else distinct
