"""Counts elements of tensors that forward moves into Python, where no operator shows what is computed on them."""

import torch
from torch.overrides import TorchFunctionMode

from aten_counter import count_of

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
    "__repr__",  # str and print come to it as well
    "__format__",
}


# Functions that make tensors out of memory that other code filled. (torch.from_numpy asks no mode.)
_TAKE_OVER = {"from_dlpack", "as_tensor", "asarray", "tensor"}


def _is_foreign(name, args, kwargs):
    """True for a call that makes a tensor out of another library's array."""
    if name not in _TAKE_OVER:
        return False
    data = args[0] if args else next(iter(kwargs.values()), None)
    return not isinstance(data, (torch.Tensor, list, tuple, int, float, bool))


class ElementReads(TorchFunctionMode):
    """Function mode that adds "python.tolist" and the like to `ops`, a dict as AtenCounter has it."""

    def __init__(self, ops):
        super().__init__()
        self.ops = ops

    def __torch_function__(self, function, types_, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(function, "__name__", "")
        if name in _HAND_OVER and args and isinstance(args[0], torch.Tensor):
            self._count(name, args[0])
        result = function(*args, **kwargs)
        if _is_foreign(name, args, kwargs) and isinstance(result, torch.Tensor):
            self._count(name, result)
        return result

    def _count(self, name, tensor):
        with torch._C.DisableTorchFunction():
            elements = tensor.numel()
        count = count_of(self.ops, f"python.{name}", view=False, free=True)
        count.calls += 1
        count.elements += elements
        count.largest = max(count.largest, elements)
