"""Lets code that says "cuda" run on a machine without one: tensors stay on the CPU and claim to be on cuda:0.

`FakeCuda` is a context manager. Inside it `device="cuda"` means the CPU, `x.is_cuda` is true, and torch.cuda answers like a
machine with one L40S. Known limits: CUDA graphs are not covered, other threads are outside (they fail with
"no NVIDIA driver"), and a forgotten `.cuda()` goes unnoticed because every tensor claims to be on the device.
"""

import contextlib
import time
import types

import torch
from torch.overrides import TorchFunctionMode

import fake_library

CPU = torch.device("cpu")
CUDA = torch.device("cuda", 0)
DEVICE_NAME = "NVIDIA L40S (modelled)"

_PROPERTIES = types.SimpleNamespace(
    name=DEVICE_NAME,
    major=8,
    minor=9,
    total_memory=48 << 30,
    multi_processor_count=142,
    warp_size=32,
    gcnArchName="",
    max_threads_per_multi_processor=1536,
    max_threads_per_block=1024,
    regs_per_multiprocessor=65536,
    shared_memory_per_block=49152,
    shared_memory_per_block_optin=101376,
    shared_memory_per_multiprocessor=102400,
    L2_cache_size=96 << 20,
    is_integrated=0,
    is_multi_gpu_board=0,
)

_IS_CUDA, _DEVICE = torch.Tensor.is_cuda, torch.Tensor.device
_GET_DEVICE, _TO = torch.Tensor.get_device, torch.Tensor.to
_STAY = (torch.Tensor.cuda, torch.Tensor.cpu, torch.Tensor.pin_memory)


def _names_cuda(value):
    if isinstance(value, torch.device):
        return value.type == "cuda"
    return isinstance(value, str) and value.split(":")[0] == "cuda"


class _Mode(TorchFunctionMode):
    def __torch_function__(self, function, types_, args=(), kwargs=None):
        if function is torch.device:  # a device object still says what was asked for
            return function(*args, **(kwargs or {}))
        owner = getattr(function, "__self__", None)  # a property's getter arrives as its bound __get__
        if owner is _IS_CUDA:
            return True
        if owner is _DEVICE:
            return CUDA
        if function is _GET_DEVICE:
            return 0
        if function in _STAY:
            return args[0]
        if function is _TO and len(args) > 1 and type(args[1]) is int:
            args = (args[0], CPU, *args[2:])
        if any(_names_cuda(value) for value in args):
            args = tuple(CPU if _names_cuda(value) else value for value in args)
        if kwargs:
            kwargs = dict(kwargs)
            for key in ("device", "map_location"):
                if _names_cuda(kwargs.get(key)) or type(kwargs.get(key)) is int:
                    kwargs[key] = CPU
            kwargs.pop("pin_memory", None)
        return function(*args, **(kwargs or {}))


class _Event:
    def __init__(self, *args, **kwargs):
        self.seconds = 0.0

    def record(self, stream=None):
        self.seconds = time.perf_counter()

    def elapsed_time(self, other):
        return (other.seconds - self.seconds) * 1e3

    def synchronize(self):
        pass

    def wait(self, stream=None):
        pass

    def query(self):
        return True


class _Stream:
    cuda_stream = 0
    device = CUDA

    def __init__(self, *args, **kwargs):
        pass

    def synchronize(self):
        pass

    def wait_stream(self, other):
        pass

    def wait_event(self, event):
        pass

    def record_event(self, event=None):
        event = event or _Event()
        event.record()
        return event

    def query(self):
        return True

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


class _Generator(torch.Generator):
    def __new__(cls, device="cpu"):
        return super().__new__(cls, device=CPU)


def _manual_seed(seed):
    """torch.manual_seed without its first call's import of torch._dynamo, which takes seconds."""
    return torch.default_generator.manual_seed(int(seed))


def _constant(value):
    """A new function each time: torch._dynamo's tables refuse one function under two names."""
    return lambda *args, **kwargs: value


class _Guard(contextlib.nullcontext):
    """For torch.cuda.device and its relatives: all there is is one device."""

    def __init__(self, *args, **kwargs):
        super().__init__()


def _empty_strided(size, stride, dtype):
    return torch.empty_strided(size, stride, dtype=dtype)


def _stubs():
    seed = lambda number: torch.default_generator.manual_seed(number)
    return {
        "is_available": _constant(True),
        "device_count": _constant(1),
        "current_device": _constant(0),
        "is_initialized": _constant(True),
        "init": _constant(None),
        "_lazy_init": _constant(None),
        "synchronize": _constant(None),
        "empty_cache": _constant(None),
        "set_device": _constant(None),
        "reset_peak_memory_stats": _constant(None),
        "get_device_name": _constant(DEVICE_NAME),
        "get_device_capability": _constant((8, 9)),
        "get_device_properties": _constant(_PROPERTIES),
        "memory_allocated": _constant(0),
        "max_memory_allocated": _constant(0),
        "memory_reserved": _constant(0),
        "mem_get_info": _constant((48 << 30, 48 << 30)),
        "is_bf16_supported": _constant(True),
        "manual_seed": lambda number: seed(number) and None,
        "manual_seed_all": lambda number: seed(number) and None,
        "Event": _Event,
        "Stream": _Stream,
        "current_stream": lambda *a, **k: _Stream(),
        "default_stream": lambda *a, **k: _Stream(),
        "stream": lambda stream: contextlib.nullcontext(),
        "device": _Guard,
        "device_of": _Guard,
        "_DeviceGuard": _Guard,
        "_exchange_device": _constant(0),
        "_maybe_exchange_device": _constant(0),
        "is_current_stream_capturing": _constant(False),
        "nvtx": types.SimpleNamespace(
            range=_Guard, range_push=_constant(0), range_pop=_constant(0), mark=_constant(None), annotate=_Guard
        ),
    }


def _bindings():
    """What is asked or called below torch.cuda, by programs of torch.compile's code generator above all: (owner, name, stub)."""
    guards = torch._C._dynamo.guards
    return [
        (torch._C, "_cuda_getCurrentRawStream", _constant(0)),
        (torch._C, "_cuda_getDevice", _constant(0)),
        (torch._C, "_cuda_setDevice", _constant(None)),
        (guards, "_empty_strided_cuda", _empty_strided),
        (torch.backends.cudnn, "is_acceptable", _constant(False)),  # else recurrent modules flatten their weights for it
    ]


class FakeCuda:
    """Context manager; everything it patches is put back on exit."""

    def __enter__(self):
        self._saved = []
        for name, stub in _stubs().items():
            self._replace(torch.cuda, name, stub)
        for owner, name, stub in _bindings() + fake_library.stubs():
            if hasattr(owner, name):
                self._replace(owner, name, stub)
        self._replace(torch.Tensor, "record_stream", _constant(None))
        # A default-device mode would lie below ours and put "cuda" back.
        self._replace(torch, "set_default_device", _constant(None))
        self._replace(torch, "Generator", _Generator)
        self._replace(torch, "manual_seed", _manual_seed)
        self._replace(torch.random, "manual_seed", _manual_seed)
        self._mode = _Mode()
        self._mode.__enter__()
        return self

    def _replace(self, owner, name, value):
        self._saved.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def __exit__(self, *error):
        self._mode.__exit__(*error)
        for owner, name, value in reversed(self._saved):
            setattr(owner, name, value)
        return False
