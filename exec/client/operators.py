"""What torch runs for the CUDA dispatch key: each operator that needs memory is a command to the executor.

Views and other operators on metadata stay torch's own, cost no message, and meet no code of ours. Operators that a
candidate registers (torch.library, custom_op, autograd.Function) are its Python, run here; what they call arrives as
commands.
"""

import warnings

import torch

from . import tensors
from .session import SESSION

# Registered for CUDA by torch, and in need of no memory.
_METADATA = frozenset(
    "view as_strided as_strided_ _reshape_alias set_ unfold alias is_set_to view_as_real view_as_complex _conj "
    "_neg_view detach".split()
)
_NO_BACKEND = ("copy_",)  # torch has one kernel for all devices, which would touch the memory
# torch takes these apart into what only CUDA's libraries have (cuDNN, fused attention); they travel whole instead.
_WHOLE = (
    "convolution batch_norm rms_norm scaled_dot_product_attention lstm.input lstm.data gru.input gru.data "
    "rnn_tanh.input rnn_relu.input lstm_cell gru_cell ctc_loss.IntList ctc_loss.Tensor cummax cummin "
    "linalg_solve_ex linalg_eigh linalg_svd logcumsumexp embedding_bag embedding_bag.padding_idx"
).split()
_DROPPED = frozenset(("pin_memory", "non_blocking"))
_library = None  # kept alive: its registrations end with it


def _command(name, overload):
    """The function that asks the executor to run aten::name.overload."""

    def command(*args, **kwargs):
        sender = tensors.Sender()
        kwargs = {key: value for key, value in kwargs.items() if value is not None and key not in _DROPPED}
        message = {
            "do": "op",
            "name": name,
            "overload": overload,
            "args": [sender.encode(value) for value in args],
            "kwargs": sender.encode(kwargs),
            "line": SESSION.line(),
        }
        reply, payload = SESSION.call_with_payload(message, sender.payload.parts)
        return tensors.receive(reply["out"], payload, sender.given)

    return command


def _item(tensor):
    return tensors.read(tensor).item()


_copy_command = _command("copy_", "")


def _copy(target, source, non_blocking=False):
    """Into this process a copy is a read, all others are commands."""
    if target.device.type == "cuda":
        return _copy_command(target, source)
    return target.copy_(tensors.read(source))


def _resize(tensor, size, memory_format=None):
    """As torch: within its storage only the geometry changes, and the elements in memory stay where they are."""
    layout = torch.empty(size, device="meta", memory_format=memory_format or torch.contiguous_format)
    stride, offset, count = layout.stride(), tensor.storage_offset(), layout.numel()
    held = tensor.untyped_storage().nbytes() // tensor.element_size() - offset
    if count <= held:
        return torch.ops.aten.as_strided_.default(tensor, size, stride, offset)
    new = torch.empty(count, dtype=tensor.dtype, device="cuda")
    if held > 0:
        _copy_command(new[:held], torch.ops.aten.as_strided.default(tensor, [held], [1], offset))
    return tensor.set_(torch.ops.aten.as_strided.default(new, size, stride, 0))


_OWN = {"_local_scalar_dense": _item, "copy_": _copy, "resize_": _resize, "record_stream": lambda tensor, stream: None}


def register():
    """Once in a process, before it forks candidates: a few tenths of a second for more than a thousand operators."""
    global _library
    _library = torch.library.Library("aten", "IMPL", "CUDA")
    names = [
        name.removeprefix("aten::")
        for name in torch._C._dispatch_get_registrations_for_dispatch_key("CUDA")
        if name.startswith("aten::")
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of each operator that has a kernel already
        for full in sorted(set(names).union(_NO_BACKEND, _WHOLE)):
            name, _, overload = full.partition(".")
            if name not in _METADATA:
                _library.impl(full, _OWN.get(name) or _command(name, overload), "CUDA", allow_override=True)
