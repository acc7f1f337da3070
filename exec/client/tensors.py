"""Tensors on cuda:0 whose memory is the executor's: plain torch.Tensor with its addresses, and no contents here.

A storage enters torch as a DLPack capsule, for which torch asks no driver. The capsule's deleter tells when torch let
the storage go. Each message describes a tensor by its storage's number and its geometry, so that views are torch's own.
"""

import ctypes
import struct

import torch

from . import wire
from .session import SESSION

_MANAGED = struct.Struct("=QiiiBBHQQQQQ")  # DLManagedTensor of DLPack's C interface
_KIND_CUDA = 2
_CODES = {  # DLPack's code of each dtype that it has had since its first version
    torch.int8: 0,
    torch.int16: 0,
    torch.int32: 0,
    torch.int64: 0,
    torch.uint8: 1,
    torch.float16: 2,
    torch.float32: 2,
    torch.float64: 2,
    torch.bfloat16: 4,
    torch.complex64: 5,
    torch.complex128: 5,
    torch.bool: 6,
}
_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

_alive = {}  # address of a DLManagedTensor -> (its memory, number, address of the storage, kept)
_numbers = {}  # address of a storage -> [number, capsules on it]
_as_strided = torch.ops.aten.as_strided.default
_as_strided_ = torch.ops.aten.as_strided_.default
_view_dtype = torch.ops.aten.view.dtype
_set_ = torch.ops.aten.set_.source_Tensor


@_DELETER
def _let_go(managed):
    _, number, address, kept = _alive.pop(managed)
    known = _numbers.get(address)
    if known is None or known[0] != number:
        return
    known[1] -= 1
    if known[1] == 0 and not kept:
        del _numbers[address]
        SESSION.freed.append(number)


_LET_GO = ctypes.cast(_let_go, ctypes.c_void_p).value


def _enter(number, address, dtype, shape, stride):
    """A tensor at the start of the executor's storage, of one of the dtypes in _CODES."""
    rank = len(shape)
    memory = ctypes.create_string_buffer(_MANAGED.size + 16 * rank)
    where = ctypes.addressof(memory)
    sizes = where + _MANAGED.size
    kind = (_CODES[dtype], 8 * dtype.itemsize, 1)
    _MANAGED.pack_into(memory, 0, address, _KIND_CUDA, 0, rank, *kind, sizes, sizes + 8 * rank, 0, 0, _LET_GO)
    struct.pack_into(f"={2 * rank}q", memory, _MANAGED.size, *shape, *stride)
    # A CUDA graph uses the memory of its capture whenever it is replayed: that is never given back.
    _alive[where] = (memory, number, address, SESSION.capturing)
    known = _numbers.setdefault(address, [number, 0])
    known[0] = number
    known[1] += 1
    return torch._C._from_dlpack(_new_capsule(where, b"dltensor", None))


def made(node):
    """The tensor of {"storage", "address", "nbytes", "dtype", "shape", "stride", "offset"}."""
    dtype, shape, stride, offset = wire.dtype_of(node["dtype"]), node["shape"], node["stride"], node["offset"]
    number, address, nbytes = node["storage"], node["address"], node["nbytes"]
    with torch._C._AutoDispatchBelowAutograd():
        if offset == 0 and dtype in _CODES and _extent(shape, stride) * dtype.itemsize == nbytes:
            return _enter(number, address, dtype, shape, stride)
        raw = _enter(number, address, torch.uint8, [nbytes], [1])
        return _as_strided(_view_dtype(raw, dtype), shape, stride, offset)


def _extent(shape, stride):
    """Elements from the first to the last."""
    last = 0
    for size, step in zip(shape, stride):
        if size == 0:
            return 0
        last += (size - 1) * step
    return last + 1


def change(tensor, node):
    """Gives `tensor` the geometry, and if need be the storage, of the node."""
    with torch._C._AutoDispatchBelowAutograd():
        if number_of(tensor) == node["storage"]:
            _as_strided_(tensor, node["shape"], node["stride"], node["offset"])
        else:
            _set_(tensor, made(node))


def number_of(tensor):
    """The executor's number of the tensor's storage; RuntimeError if the memory is not the executor's."""
    known = _numbers.get(tensor.untyped_storage().data_ptr())
    if known is None:
        raise RuntimeError("a tensor on cuda:0 has no memory of this device")
    return known[0]


def describe(tensor):
    """T of the protocol: storage and geometry."""
    node = {
        "s": number_of(tensor),
        "dtype": wire.dtype_name(tensor.dtype),
        "shape": list(tensor.shape),
        "stride": list(tensor.stride()),
        "offset": tensor.storage_offset(),
    }
    if tensor.is_neg():
        node["neg"] = True
    if tensor.is_conj():
        node["conj"] = True
    return node


class Sender:
    """Writes the tensors of one request: `given` are those on the device, `payload` the contents of the others."""

    def __init__(self):
        self.given = []
        self.payload = wire.Payload()

    def tensor(self, tensor):
        """V of a tensor, or of a generator of random numbers."""
        if isinstance(tensor, torch._C.Generator):
            if tensor._cdata not in SESSION.generators:
                raise RuntimeError("Expected a 'cuda' device type for generator but found 'cpu'")
            return {"generator": SESSION.generators[tensor._cdata]}
        if tensor.device.type == "cuda":
            node = {"t": describe(tensor)}
            self.given.append(tensor)
            return node
        if tensor.device.type != "cpu":
            raise TypeError(f"a tensor on device {tensor.device} cannot be sent")
        return self.payload.add(tensor)

    def encode(self, value):
        return wire.encode(value, self.tensor)


def receive(node, payload, given=()):
    """The value of a reply; `given` are the device tensors of its request."""

    def tensor(kind, node):
        if kind == "new":
            return made(node["new"])
        if kind == "host":
            return wire.host_tensor(node["host"], payload)
        target = given[node["arg"]]
        if "meta" in node:
            change(target, node["meta"])
        return target

    return wire.decode(node, tensor)


def read(tensor):
    """The contents of a tensor on the device, as a tensor of this process."""
    message = {"do": "read", "tensor": describe(tensor), "line": SESSION.line()}
    reply, payload = SESSION.call_with_payload(message)
    return wire.host_tensor(reply["host"], payload)


def _text(tensor, *args, tensor_contents=None, **kwargs):
    """What printing shows: no contents, as they are not here."""
    if tensor.device.type != "cuda" or tensor_contents is not None:
        return _torch_text(tensor, *args, tensor_contents=tensor_contents, **kwargs)
    return f"tensor(..., device='cuda:0', size={tuple(tensor.shape)}, dtype={tensor.dtype})"


def _storage_clone(storage):
    if storage.device.type != "cuda":
        return _torch_clone(storage)
    return _storage_to(storage, device="cuda", copy=True)


def _storage_to(storage, *, device, non_blocking=False, copy=False):
    """A storage's bytes on another device; torch's own code would ask CUDA's allocator."""
    device = torch.device(device)
    if device.type != "cuda":
        return _torch_to(storage, device=device, non_blocking=non_blocking)
    if storage.device.type == "cuda" and not copy:
        return storage
    source = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
    target = torch.empty(storage.nbytes(), dtype=torch.uint8, device="cuda")
    return target.copy_(source).untyped_storage()


_torch_text, _torch_clone = torch._tensor_str._str, torch.UntypedStorage.clone
_torch_to = torch.UntypedStorage.to


def install():
    """Once in a process: printing, and copies of storages."""
    torch._tensor_str._str = _text
    torch.UntypedStorage.clone = _storage_clone
    torch.UntypedStorage.to = _storage_to
    torch.Tensor.record_stream = lambda self, stream: None
    torch.Tensor.pin_memory = lambda self, device=None: self
    torch.Tensor.is_pinned = lambda self, device=None: False
