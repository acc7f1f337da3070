"""Frames and values between the candidate's process and the executor.

A frame is two little-endian u32 (bytes of the header, bytes of the payload), then a JSON object, then raw bytes. A
value is null, a bool, a number, a text, a list, or an object with one key that names its kind. JSON has no literal for
NaN and infinity here. Nothing is pickled.
"""

import json
import math
import operator
import struct

import torch

from mock_config import MockConfig  # of exec/workers/python, beside the worker

MAX_HEADER = 8 << 20  # bytes
MAX_PAYLOAD = 1 << 30
MAX_DEPTH = 16  # of nested values
_HEAD = struct.Struct("<II")
_to_json = json.JSONEncoder(allow_nan=False, check_circular=False, separators=(",", ":")).encode
_from_json = json.JSONDecoder().decode
_ALIGNMENT = 16  # bytes, of a tensor's contents in the payload
_PLAIN = frozenset((int, bool, str, type(None)))
_NAMED = {"dtype": torch.dtype, "layout": torch.layout, "memory_format": torch.memory_format}


class ProtocolError(Exception):
    """The executor is gone, or sent what is no reply."""


class Connection:
    """One end of a stream socket; request and reply strictly in turn."""

    def __init__(self, sock):
        self._sock = sock
        self._in_step = True  # no exchange was cut off, so that the next reply is that of the next request

    def exchange(self, message, parts=()):
        """Sends a request with its payload and returns (reply, payload). ValueError if the request is too large;
        ProtocolError if no reply comes, then and ever after."""
        header = _to_json(message).encode()
        size = sum(len(part) for part in parts)
        if len(header) > MAX_HEADER or size > MAX_PAYLOAD:
            raise ValueError(f"a request of {len(header)} and {size} bytes is too large")
        if not self._in_step:
            raise ProtocolError("the executor is gone")
        self._in_step = False
        try:
            self._sock.sendall(b"".join((_HEAD.pack(len(header), size), header, *parts)))
            reply = self._receive()
        except OSError as error:
            raise ProtocolError(f"the executor is gone: {error}") from None
        self._in_step = True
        return reply

    def _receive(self):
        data = self._at_least(bytearray(), _HEAD.size)
        header, payload = _HEAD.unpack_from(data)
        if header > MAX_HEADER or payload > MAX_PAYLOAD:
            raise ProtocolError(f"a reply of {header} and {payload} bytes")
        end = _HEAD.size + header
        self._at_least(data, end + payload)
        if len(data) != end + payload:
            raise ProtocolError("bytes after a reply")
        try:
            reply = _from_json(data[_HEAD.size : end].decode())
        except ValueError as error:
            raise ProtocolError(f"a reply is no JSON: {error}") from None
        if not isinstance(reply, dict):
            raise ProtocolError("a reply is no object")
        return reply, memoryview(data)[end:]

    def _at_least(self, data, size):
        """Receives until `data` holds `size` bytes. One call of the system is enough for a small reply."""
        while len(data) < size:
            part = self._sock.recv(min(max(size - len(data), 1 << 16), 1 << 24))
            if not part:
                raise ProtocolError("the executor is gone")
            data += part
        return data


class Payload:
    """Contents of host tensors that go with one request."""

    def __init__(self):
        self.parts = []
        self._size = 0

    def add(self, tensor):
        """{"host": ...} for a tensor in this process."""
        if tensor.layout != torch.strided:
            raise TypeError(f"a tensor of layout {tensor.layout} cannot be sent")
        flat = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
        contents = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
        at = self._size
        padding = -len(contents) % _ALIGNMENT
        self.parts.append(contents + bytes(padding))
        self._size += len(contents) + padding
        return {"host": {"dtype": dtype_name(tensor.dtype), "shape": list(tensor.shape), "at": at}}


def dtype_name(dtype):
    """'float32' for torch.float32."""
    return str(dtype)[6:]


def dtype_of(name):
    """The torch.dtype of this name; ProtocolError if there is none."""
    dtype = getattr(torch, name, None) if isinstance(name, str) else None
    if not isinstance(dtype, torch.dtype):
        raise ProtocolError(f"no dtype: {name!r}")
    return dtype


def host_tensor(node, payload):
    """The tensor of {"dtype", "shape", "at"}, a copy of its bytes in the payload."""
    dtype, shape, at = dtype_of(node["dtype"]), node["shape"], node["at"]
    size = math.prod(shape) * dtype.itemsize
    if at < 0 or size < 0 or at + size > len(payload):
        raise ProtocolError("a tensor lies outside of the payload")
    if size == 0:
        return torch.empty(shape, dtype=dtype, device="cpu")
    return torch.frombuffer(bytearray(payload[at : at + size]), dtype=torch.uint8).view(dtype).reshape(shape)


def encode(value, tensor, depth=0):
    """The value as JSON; `tensor(t)` writes a torch.Tensor or a torch.Generator. TypeError or ValueError for what
    cannot be sent."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, (torch.Tensor, torch._C.Generator)):
        return tensor(value)
    if depth >= MAX_DEPTH:
        raise ValueError(f"a value is nested more than {MAX_DEPTH} deep")
    if isinstance(value, (list, torch.Size)):
        return [encode(item, tensor, depth + 1) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [encode(item, tensor, depth + 1) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[_key(key), encode(item, tensor, depth + 1)] for key, item in value.items()]}
    return _encode_scalar(value)


def _key(key):
    if type(key) in (str, int):
        return key
    raise TypeError(f"a dictionary's key of type {type(key).__name__} cannot be sent")


def _encode_scalar(value):
    if hasattr(value, "dtype") and getattr(value, "shape", None) == ():  # a number of NumPy
        return encode(value.item(), None)
    if isinstance(value, torch.device):
        return {"device": value.type}
    if isinstance(value, complex):
        return {"complex": [encode(float(value.real), None), encode(float(value.imag), None)]}
    for name, kind in _NAMED.items():
        if isinstance(value, kind):
            return {name: str(value)[6:]}
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return encode(float(value), None)
    if hasattr(value, "__index__"):
        return operator.index(value)
    raise TypeError(f"a value of type {type(value).__name__} cannot be sent")


def decode(node, tensor):
    """The value of a node; `tensor(kind, content)` makes those of kind "new", "arg" and "host"."""
    if isinstance(node, list):
        return [decode(item, tensor) for item in node]
    if not isinstance(node, dict):
        return node
    kind = next(iter(node), None)
    content = node.get(kind)
    if kind in ("new", "arg", "host"):
        return tensor(kind, node)
    if kind == "tuple":
        return tuple(decode(item, tensor) for item in content)
    if kind == "dict":
        return {key: decode(item, tensor) for key, item in content}
    if kind == "config":
        return MockConfig({key: decode(item, tensor) for key, item in content})
    if kind == "float":
        return float(content)
    if kind == "complex":
        return complex(*(decode(part, tensor) for part in content))
    if kind == "device":
        return torch.device("cuda", 0) if content == "cuda" else torch.device("cpu")
    if kind in _NAMED:
        return getattr(torch, content)
    raise ProtocolError(f"unknown kind of value {kind!r}")
