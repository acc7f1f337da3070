"""Counts elements of tensors that forward moves into Python, where no operator shows what is computed on them."""

import contextlib
import functools
import inspect

import torch
from torch.overrides import TorchFunctionMode

from aten_counter import count_of

# Methods of tensors that give their elements to code outside torch. Reading one element back (item, float, bool) is the
# operator aten._local_scalar_dense, which the dispatcher shows.
_HAND_OVER = {
    "tolist",
    "numpy",
    "__array__",
    "__dlpack__",
    "__getstate__",
    "apply_",
    "map_",
    "map2_",
    "__repr__",  # str and print come to it as well
    "__format__",
}

# What a storage says of itself, its address as well: no element is read by it. All else that it can do moves elements.
_ABOUT_STORAGE = {
    "__len__",
    "data_ptr",
    "element_size",
    "get_device",
    "is_pinned",
    "is_shared",
    "nbytes",
    "new",
    "resizable",
    "resize_",
    "size",
    "untyped",
}
# Beside those without an underscore. Pickling a tensor asks no function mode, so that its method is watched as well.
_MOVES = {"__getitem__", "__setitem__", "__iter__", "__copy__", "__deepcopy__", "__reduce__", "_byteswap", "_to"}
_MOVES |= {"_write_file", "_set_from_file", "_share_fd_cpu_", "_share_filename_cpu_", "_share_cuda_"}

# Functions that make tensors out of memory that other code filled. (torch.from_numpy asks no mode.)
_TAKE_OVER = {"from_dlpack", "as_tensor", "asarray", "tensor"}


def _is_foreign(name, args, kwargs):
    """True for a call that makes a tensor out of another library's array."""
    if name not in _TAKE_OVER:
        return False
    data = args[0] if args else next(iter(kwargs.values()), None)
    return not isinstance(data, (torch.Tensor, list, tuple, int, float, bool))


class ElementReads(TorchFunctionMode):
    """Function mode that adds "python.tolist" and the like to `ops`, a dict as AtenCounter has it. While any is entered,
    storages are watched too, for the one that was entered last."""

    def __init__(self, ops):
        super().__init__()
        self.ops = ops
        self._inside_torch = False  # what torch's own functions do with storages is no reading of the program's

    def __enter__(self):
        _STORAGES.enter(self)
        return super().__enter__()

    def __exit__(self, *error):
        _STORAGES.leave(self)
        return super().__exit__(*error)

    def __torch_function__(self, function, types_, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(function, "__name__", "")
        if name in _HAND_OVER and args and isinstance(args[0], torch.Tensor):
            self.count_tensor(name, args[0])
        with self.quiet():
            result = function(*args, **kwargs)
        if _is_foreign(name, args, kwargs) and isinstance(result, torch.Tensor):
            self.count_tensor(name, result)
        return result

    @contextlib.contextmanager
    def quiet(self):
        """Inside, storages are not watched for this mode."""
        before, self._inside_torch = self._inside_torch, True
        try:
            yield
        finally:
            self._inside_torch = before

    def storage_call(self, name, storage, call):
        """What call() gives, a method of the storage."""
        if self._inside_torch:
            return call()
        self.count(f"storage.{name.strip('_')}", 1 if name in ("__getitem__", "__setitem__") else storage.nbytes())
        with self.quiet():
            return call()

    def count_tensor(self, name, tensor):
        with torch._C.DisableTorchFunction():
            self.count(name, tensor.numel())

    def count(self, name, elements):
        count = count_of(self.ops, f"python.{name}", view=False, free=True)
        count.calls += 1
        count.elements += elements
        count.largest = max(count.largest, elements)


class _Storages:
    """Has the methods of storages that move elements told to the mode that was entered last."""

    def __init__(self):
        self._modes = []
        self._plain = {}  # what the class itself had under the names that are watched

    def enter(self, mode):
        if not self._modes:
            self._watch()
        self._modes.append(mode)

    def leave(self, mode):
        self._modes.remove(mode)
        if not self._modes:
            self._unwatch()

    def _watch(self):
        cls = torch.UntypedStorage
        for name in dir(cls):
            if (name.startswith("_") or name in _ABOUT_STORAGE) and name not in _MOVES:
                continue
            method = getattr(cls, name)
            if not callable(method) or isinstance(inspect.getattr_static(cls, name), (staticmethod, classmethod)):
                continue
            self._plain[name] = cls.__dict__.get(name)
            setattr(cls, name, self._told(name, method))
        torch.Tensor.__reduce_ex__ = self._pickled(torch.Tensor.__reduce_ex__)

    def _unwatch(self):
        torch.Tensor.__reduce_ex__ = torch.Tensor.__reduce_ex__.__wrapped__
        for name, method in self._plain.items():
            if method is None:
                delattr(torch.UntypedStorage, name)  # a base class has it
            else:
                setattr(torch.UntypedStorage, name, method)
        self._plain.clear()

    def _pickled(self, method):
        @functools.wraps(method)
        def pickled(tensor, proto):
            if not self._modes:
                return method(tensor, proto)
            self._modes[-1].count_tensor("__reduce_ex__", tensor)
            with self._modes[-1].quiet():
                return method(tensor, proto)

        return pickled

    def _told(self, name, method):
        @functools.wraps(method)
        def told(storage, *args, **kwargs):
            call = functools.partial(method, storage, *args, **kwargs)
            return self._modes[-1].storage_call(name, storage, call) if self._modes else call()

        return told


_STORAGES = _Storages()
