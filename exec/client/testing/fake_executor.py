"""A small executor for tests: torch on the CPU for operators; launches do what kernels.py says of their names.

Memory lies at addresses that the candidate's process has not mapped. `Executor(sock, source, ...).serve()` answers
until the candidate ends, and keeps what happened: `outputs`, `failure`, `log`, `refused`.
"""

import ctypes
import mmap

import torch

from .fake_wire import Contents, Gone, contents, decode, encode, receive, send
from .kernels import kernel_of

BASE, SIZE = 0x600000000000, 1 << 32  # bytes of address space
GAP = 1 << 16
SMALL = 16  # elements that any operator may have in forward
DEVICE = {
    "name": "a modelled GPU",
    "capability": [8, 9],
    "multiprocessors": 142,
    "shared_bytes": 101376,
    "compiles": False,
    "total_bytes": 48 << 30,
}
# Operators without a limit in forward.
NEUTRAL = frozenset(
    "empty empty_like empty_strided fill_ zero_ copy_ cat arange eye uniform_ normal_ random_ native_dropout "
    "randperm".split()
)
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_MAP_NORESERVE, _MAP_FIXED_NOREPLACE = 0x4000, 0x100000


class Arena:
    """Fresh memory for one executor; nothing is used twice."""

    def __init__(self):
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE | _MAP_FIXED_NOREPLACE
        got = _LIBC.mmap(BASE, SIZE, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
        if got != BASE:
            raise OSError(ctypes.get_errno(), "the executor's addresses are taken")
        self._next = BASE

    def take(self, nbytes):
        """A tensor of `nbytes` bytes."""
        address = self._next
        self._next += (nbytes + GAP + 511) // 512 * 512
        if self._next > BASE + SIZE:
            raise MemoryError("the arena is full")
        if nbytes == 0:
            return address, torch.empty(0, dtype=torch.uint8)
        memory = (ctypes.c_uint8 * nbytes).from_address(address)
        return address, torch.frombuffer(memory, dtype=torch.uint8)

    def close(self):
        _LIBC.munmap(ctypes.c_void_p(BASE), ctypes.c_size_t(SIZE))


class Refused(Exception):
    """A policy's answer."""


class Storages:
    """Storages by number."""

    def __init__(self):
        self.arena = Arena()
        self.live = {}  # number -> (address, bytes)
        self._next = 1

    def adopt(self, tensor):
        """N for a copy of a CPU tensor with its strides."""
        extent = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride())) if tensor.numel() else 0
        address, raw = self.arena.take(extent * tensor.element_size())
        number, self._next = self._next, self._next + 1
        self.live[number] = (address, raw)
        node = {"storage": number, "address": address, "nbytes": len(raw), "dtype": str(tensor.dtype)[6:]}
        node.update(shape=list(tensor.shape), stride=list(tensor.stride()), offset=0)
        target = self.tensor(dict(node, s=number))
        target.copy_(tensor)
        return node

    def tensor(self, t):
        """The CPU tensor that T means."""
        dtype = getattr(torch, t["dtype"])
        raw = self.live[t["s"]][1]
        if raw.numel() == 0:
            return torch.empty_strided(t["shape"], t["stride"], dtype=dtype)
        tensor = torch.empty(0, dtype=dtype).set_(raw.untyped_storage(), t["offset"], t["shape"], t["stride"])
        tensor = torch._neg_view(tensor) if t.get("neg") else tensor
        return torch._conj(tensor) if t.get("conj") else tensor


class Executor:
    """`init` are the constructor's args and kwargs, `calls` the inputs of each call of forward; `refuse(name, phase)` is
    the text of a refusal, or None."""

    def __init__(self, sock, source, *, init=((), {}), calls=(), seed=0, refuse=lambda name, phase: None):
        self.sock, self.source, self.init, self.calls, self.seed = sock, source, init, calls, seed
        self.refuse = refuse
        self.storages = Storages()
        self.phase, self.next_call = "init", 0
        self.state, self.outputs, self.failure = [], [], None
        self.log, self.refused, self.launches = [], [], []
        self.kernels, self.generators, self.graphs = [], [], []
        self.capture, self.saved = None, None

    def serve(self):
        """Until the candidate's process ends. Returns self."""
        try:
            while True:
                message, payload = receive(self.sock)
                self.log.append(message)
                reply, parts = self._answer(message, payload)
                send(self.sock, reply, parts)
                for number in message.get("free", ()):
                    self.storages.live.pop(number)
        except Gone:
            return self
        finally:
            self.storages.arena.close()

    def _answer(self, message, payload):
        try:
            reply = getattr(self, "_" + message["do"])(message, payload)
        except Refused as error:
            self.refused.append((str(error), message.get("line", 0)))
            reply = {"refused": str(error)}
        except (RuntimeError, IndexError, TypeError, ValueError) as error:
            reply = {"error": str(error)}
        return reply if isinstance(reply, tuple) else (reply, b"")

    def _begin(self, message, payload):
        torch.default_generator.manual_seed(self.seed)
        out = Contents()
        args, kwargs = out.encode(list(self.init[0])), out.encode(dict(self.init[1]))
        reply = {"source": self.source, "entry": "ModelNew", "args": args, "kwargs": kwargs}
        reply.update(seed=self.seed, device=DEVICE)
        return reply, out.raw

    def _constructed(self, message, payload):
        self.state = [(name, self.storages.tensor(node["t"]).clone()) for name, node in message["state"]]
        self.phase = "forward"
        return self._next()

    def _output(self, message, payload):
        self.outputs.append(self._value(message["value"], payload, lambda t: t.clone()))
        return self._next()

    def _next(self):
        if self.next_call == len(self.calls):
            return {"end": True}
        inputs = self.calls[self.next_call]
        self.next_call += 1
        torch.default_generator.manual_seed(self.seed)
        give = lambda value: encode(value, lambda t: {"new": self.storages.adopt(t)})
        return {"args": give(list(inputs)), "kwargs": give({}), "seed": self.seed}

    def _failed(self, message, payload):
        self.failure = message
        return {}

    def _value(self, node, payload, tensor=lambda t: t):
        """The value that V means; `tensor` is asked for each tensor on the device."""

        def leaf(kind, content):
            if kind == "t":
                return tensor(self.storages.tensor(content))
            if kind == "generator":
                return None if content is None else self.generators[content]
            return contents(content, payload)

        return decode(node, leaf)

    def _op(self, message, payload):
        name, given = message["name"], []
        function = getattr(getattr(torch.ops.aten, name), message["overload"] or "default")
        note = lambda t: given.append(t) or t
        args, kwargs = self._value(message["args"], payload, note), self._value(message["kwargs"], payload, note)
        self._check(name, given)
        if name != "copy_":
            args = [wrapped(value) for value in args]
        if self.capture is not None and name != "empty":
            self.capture.append(lambda: function(*args, **kwargs))
        return {"out": self._run(function, args, kwargs, given)}

    def _run(self, function, args, kwargs, given):
        self._save(given if function._schema.is_mutable else ())
        before = [geometry(t) for t in given]
        out = function(*args, **kwargs)

        def tensor(t):
            for i, known in enumerate(given):
                if t is known:
                    changed = before[i] != geometry(t)
                    return {"arg": i, "meta": self.storages.adopt(t)} if changed else {"arg": i}
            return {"new": self.storages.adopt(t)}

        return encode(out, tensor)

    def _check(self, name, tensors):
        text = self.refuse(name, self.phase)
        sizes = [t.numel() for t in tensors] or [0]
        if text is None and self.phase == "forward" and name not in NEUTRAL and max(sizes) > SMALL:
            text = f"aten::{name} computes, on {max(sizes)} elements"
        if text is not None:
            raise Refused(text)

    def _read(self, message, payload):
        tensor = self.storages.tensor(message["tensor"])
        if self.phase == "forward" and tensor.numel() > SMALL:
            raise Refused(f"forward reads {tensor.numel()} elements back")
        out = Contents()
        return out.tensor(tensor), out.raw

    def _seed(self, message, payload):
        number = message["generator"]
        (torch.default_generator if number is None else self.generators[number]).manual_seed(message["seed"])
        return {}

    def _generator(self, message, payload):
        self.generators.append(torch.Generator())
        return {"generator": len(self.generators) - 1}

    def _kernel(self, message, payload):
        self.kernels.append((message["name"], kernel_of(message["name"], message["ttir"], self.storages)))
        return {"kernel": len(self.kernels) - 1}

    def _launch(self, message, payload):
        name, kernel = self.kernels[message["kernel"]]
        args = self._value(message["args"], payload)
        self._save(tensors_in(args))
        run = lambda: kernel(args, message["grid"])
        self.launches.append((name, message["line"]))
        if self.capture is not None:
            self.capture.append(run)
        run()
        return {}

    def _bench(self, message, payload):
        if message["begin"] == (self.saved is not None):
            raise RuntimeError("benchmarks do not nest")
        if message["begin"]:
            self.saved, self.began = {}, len(self.log)
            return {}
        for number, contents_before in self.saved.items():
            if number in self.storages.live:
                self.storages.live[number][1].copy_(contents_before)
        self.saved = None
        return {"ms": float(len(self.log) - self.began)}

    def _save(self, tensors):
        """What a benchmark is about to write."""
        if self.saved is None:
            return
        for number, (address, raw) in self.storages.live.items():
            if number not in self.saved and any(holds(address, raw, t) for t in tensors):
                self.saved[number] = raw.clone()

    def _graph(self, message, payload):
        if message["begin"]:
            self.capture = []
            return {}
        self.graphs.append(self.capture)
        self.capture = None
        return {"graph": len(self.graphs) - 1}

    def _replay(self, message, payload):
        for run in self.graphs[message["graph"]]:
            run()
        return {}


def wrapped(value):
    """A number that torch made a tensor of on its way is a number again, for the sake of type promotion."""
    kinds = (torch.float64, torch.int64, torch.bool, torch.complex128)
    own = isinstance(value, torch.Tensor) and value.dim() == 0 and value.dtype in kinds
    return value.item() if own and not BASE <= value.data_ptr() < BASE + SIZE else value


def holds(address, raw, tensor):
    return address <= tensor.untyped_storage().data_ptr() < address + max(1, raw.numel())


def geometry(tensor):
    return tensor.untyped_storage().data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.storage_offset()


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for item in value for t in tensors_in(item)] if isinstance(value, (list, tuple)) else []
