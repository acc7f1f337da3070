"""Frames and values of the executor's side, for tests: written from the protocol, not from the client's code."""

import json
import math
import struct

import torch


class Gone(Exception):
    """The candidate's process ended."""


class Contents:
    """Values with the contents of their tensors in one payload."""

    def __init__(self):
        self.raw = b""

    def encode(self, value):
        return encode(value, self.tensor)

    def tensor(self, tensor):
        node = {"dtype": str(tensor.dtype)[6:], "shape": list(tensor.shape), "at": len(self.raw)}
        flat = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
        self.raw += flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
        return {"host": node}


def encode(value, tensor):
    if isinstance(value, torch.Tensor):
        return tensor(value)
    if isinstance(value, list):
        return [encode(item, tensor) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [encode(item, tensor) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[key, encode(item, tensor)] for key, item in value.items()]}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value)[6:]}
    return value


def decode(node, leaf):
    if isinstance(node, list):
        return [decode(item, leaf) for item in node]
    if not isinstance(node, dict):
        return node
    ((kind, content),) = node.items()
    if kind in ("t", "host", "generator"):
        return leaf(kind, content)
    if kind == "tuple":
        return tuple(decode(item, leaf) for item in content)
    if kind == "dict":
        return {key: decode(item, leaf) for key, item in content}
    if kind == "float":
        return float(content)
    if kind == "complex":
        return complex(*(decode(part, leaf) for part in content))
    if kind == "device":
        return torch.device("cpu")
    return getattr(torch, content)


def contents(node, payload):
    dtype = getattr(torch, node["dtype"])
    size = math.prod(node["shape"]) * dtype.itemsize
    if size == 0:
        return torch.empty(node["shape"], dtype=dtype)
    raw = bytearray(payload[node["at"] : node["at"] + size])
    return torch.frombuffer(raw, dtype=torch.uint8).view(dtype).reshape(node["shape"])


def send(sock, reply, payload=b""):
    header = json.dumps(reply, allow_nan=False).encode()
    try:
        sock.sendall(struct.pack("<II", len(header), len(payload)) + header + payload)
    except OSError:
        raise Gone from None


def receive(sock):
    header, payload = struct.unpack("<II", exactly(sock, 8))
    message = json.loads(exactly(sock, header), parse_constant=float)
    return message, exactly(sock, payload)


def exactly(sock, size):
    data = bytearray()
    while len(data) < size:
        part = sock.recv(size - len(data))
        if not part:
            raise Gone
        data += part
    return bytes(data)
