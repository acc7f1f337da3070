"""Which tensors a kernel was launched with, and what they are to forward: inputs, weights, outputs, or memory of its own.

Tensors are told apart by their storage. A note holds no memory: it keeps a weak reference, so that a storage that is
gone is never taken for a later one at the same address.
"""

import torch
from torch.multiprocessing.reductions import StorageWeakRef

import layout

MAX_LAUNCHES = 64  # whose arguments are described
MAX_ARGUMENTS = 16
_MAX_NAME = 64
_MAX_DIMENSIONS = 8


class _Note:
    def __init__(self, name, tensor):
        self.name = name[:_MAX_NAME]
        self.dtype = str(tensor.dtype).removeprefix("torch.")
        self.shape = list(tensor.shape)[:_MAX_DIMENSIONS]
        self.storage = _storage(tensor)


def _storage(tensor):
    """A weak reference to the tensor's storage, None where it has none."""
    try:
        with torch._C.DisableTorchFunction():  # what forward itself asks for is watched
            return StorageWeakRef(tensor.untyped_storage())
    except (NotImplementedError, RuntimeError):
        return None


def note(signature, args):
    """Notes on the tensors among the arguments of a launch; `signature` maps names to types (see Triton's ASTSource)."""
    notes = []
    _walk(signature.keys(), args, notes)
    return notes


def _walk(names, values, notes):
    for name, value in zip(names, values):
        if len(notes) >= MAX_ARGUMENTS:
            return
        if isinstance(value, (tuple, list)):
            _walk([f"{name}[{i}]" for i in range(len(value))], value, notes)
            continue
        tensor = value if isinstance(value, torch.Tensor) else getattr(value, "base", None)
        if isinstance(tensor, torch.Tensor):
            notes.append(_Note(str(name), tensor))


def describe(records, inputs, model, output):
    """Fills in `arguments` of the first records, [{"name", "dtype", "shape", "what"}], and drops the notes of all."""
    places = {}
    state = model.state_dict(keep_vars=True) if isinstance(model, torch.nn.Module) else {}
    for what, values in (
        ("output", enumerate(layout.tensors(output))),
        ("weight", ((name[:_MAX_NAME], value) for name, value in state.items())),
        ("input", enumerate(layout.tensors(inputs))),
    ):
        for name, tensor in values:
            storage = _storage(tensor) if isinstance(tensor, torch.Tensor) else None
            if storage is not None:
                places[storage] = f"{what} {name}"
    for index, record in enumerate(records):
        if index < MAX_LAUNCHES:
            record.arguments = [
                {"name": n.name, "dtype": n.dtype, "shape": n.shape, "what": places.get(n.storage, "scratch")}
                for n in record.tensors
            ]
        record.tensors = ()
