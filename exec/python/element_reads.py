"""Counts elements of tensors that forward moves into Python, where no operator shows what is computed on them."""

import torch
from torch.overrides import TorchFunctionMode

from aten_counter import OpCount

# Methods of tensors that give their elements, or the memory they lie in, to code outside torch. Reading one element back
# (item, float, bool) is the operator aten._local_scalar_dense, which the dispatcher shows.
_HAND_OVER = {
    "tolist",
    "numpy",
    "__array__",
    "untyped_storage",
    "storage",
    "_typed_storage",
    "__dlpack__",
    "__reduce_ex__",
    "__getstate__",
    "apply_",
    "map_",
    "map2_",
}


class ElementReads(TorchFunctionMode):
    """Function mode that adds "python.tolist" and the like to `ops`, a dict as AtenCounter has it."""

    def __init__(self, ops):
        super().__init__()
        self.ops = ops

    def __torch_function__(self, function, types_, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        if name in _HAND_OVER and args and isinstance(args[0], torch.Tensor):
            with torch._C.DisableTorchFunction():
                elements = args[0].numel()
            count = self.ops.setdefault(f"python.{name}", OpCount(view=False, free=True))
            count.calls += 1
            count.elements += elements
            count.largest = max(count.largest, elements)
        return function(*args, **(kwargs or {}))
