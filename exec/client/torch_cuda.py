"""What torch.cuda answers in a process without a GPU, and random numbers: seeds and generators are the executor's."""

import contextlib
import random
import sys
import time
import types

import torch

from .session import SESSION

CUDA = torch.device("cuda", 0)
_CONSTANT = {  # what functions of torch.cuda answer to anything
    True: "is_available is_initialized is_bf16_supported _is_compiled",
    None: "init _lazy_init synchronize empty_cache set_device set_stream reset_peak_memory_stats "
    "reset_max_memory_allocated ipc_collect",
    0: "current_device _exchange_device _maybe_exchange_device memory_allocated max_memory_allocated memory_reserved "
    "max_memory_reserved",
}
_generators = []  # all of this process


def _constant(value):
    """A new function each time: torch._dynamo's tables refuse one function under two names."""
    return lambda *args, **kwargs: value


def _properties(device=None):
    d = SESSION.device
    major, minor = d["capability"]
    return types.SimpleNamespace(
        name=d["name"],
        major=major,
        minor=minor,
        total_memory=d["total_bytes"],
        multi_processor_count=d["multiprocessors"],
        warp_size=32,
        gcnArchName="",
        max_threads_per_multi_processor=2048 if minor == 0 else 1536,
        max_threads_per_block=1024,
        regs_per_multiprocessor=65536,
        shared_memory_per_block=49152,
        shared_memory_per_block_optin=d["shared_bytes"],
        shared_memory_per_multiprocessor=d["shared_bytes"] + 1024,
        L2_cache_size=(50 if minor == 0 else 96) << 20,
        is_integrated=0,
        is_multi_gpu_board=0,
    )


def _nothing(*args, **kwargs):
    """Commands run in order and are done when they are answered: there is nothing to wait for."""


class Event:
    """Times of this process; a program that measures itself gets nothing better, and nobody trusts it."""

    synchronize = wait = _nothing
    query = _constant(True)

    def __init__(self, *args, **kwargs):
        self._seconds = 0.0

    def record(self, stream=None):
        self._seconds = time.perf_counter()

    def elapsed_time(self, end):
        return (end._seconds - self._seconds) * 1e3


class Stream(contextlib.nullcontext):
    """All streams are one."""

    cuda_stream = stream_id = device_index = 0
    device = CUDA
    synchronize = wait_stream = wait_event = _nothing
    query = _constant(True)

    def __init__(self, *args, **kwargs):
        super().__init__(self)

    def record_event(self, event=None):
        event = event or Event()
        event.record()
        return event


class _Context(contextlib.nullcontext, contextlib.ContextDecorator):
    """For torch.cuda.device and the like: there is one device."""

    def __init__(self, *args, **kwargs):
        super().__init__()


class CUDAGraph:
    """A range of commands that the executor keeps and runs again."""

    def __init__(self, keep_graph=False):
        self._number = None

    def capture_begin(self, pool=None, capture_error_mode="global"):
        SESSION.call({"do": "graph", "begin": True})
        SESSION.capturing = True

    def capture_end(self):
        SESSION.capturing = False
        self._number = SESSION.call({"do": "graph", "begin": False})["graph"]

    def replay(self):
        if self._number is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        SESSION.call({"do": "replay", "graph": self._number})

    def reset(self):
        self._number = None

    instantiate = _nothing
    pool = _constant((0, 0))


def _no_states(*args, **kwargs):
    raise RuntimeError("refused: states of the device's random numbers cannot be read or set, only seeds")


class Generator(torch.Generator):
    """One for "cuda" is a number of the executor's; torch sees a generator for the CPU that nobody draws from."""

    def __new__(cls, device="cpu"):
        self = super().__new__(cls, device="cpu")
        self.number = None
        if torch.device(device).type == "cuda":
            self.number = SESSION.generators[self._cdata] = SESSION.call({"do": "generator"})["generator"]
            _generators.append(self)  # an operator gets it by its address, which must stay its own
        return self

    __init__ = _nothing  # all is done in __new__

    @property
    def device(self):
        return torch.device("cpu") if self.number is None else CUDA

    def manual_seed(self, seed):
        super().manual_seed(int(seed))
        if self.number is not None:
            SESSION.call({"do": "seed", "seed": self.initial_seed(), "generator": self.number})
        return self

    def get_state(self):
        return super().get_state() if self.number is None else _no_states()

    def set_state(self, state):
        return super().set_state(state) if self.number is None else _no_states()

    def seed(self):
        seed = random.getrandbits(63)
        self.manual_seed(seed)
        return seed


def manual_seed(seed):
    """torch.manual_seed: of this process and of the device."""
    seed_device(seed)
    return torch.default_generator.manual_seed(int(seed))


def seed_device(seed):
    """torch.cuda.manual_seed. A negative seed becomes the positive one that torch makes of it."""
    unsigned = torch._C.Generator().manual_seed(int(seed)).initial_seed()
    SESSION.call({"do": "seed", "seed": unsigned, "generator": None})


def seed_process(seed):
    """Python, numpy and torch in this process; the executor has seeded the device itself."""
    random.seed(seed)
    torch.default_generator.manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed & 0xFFFFFFFF)


def _compile(model=None, **options):
    """torch.compile as the identity: the operators of what it compiles arrive at the executor as they are."""
    return (lambda function: function) if model is None else model


def _stubs():
    nvtx = types.SimpleNamespace(
        range=_Context, range_push=_constant(0), range_pop=_constant(0), mark=_constant(None), annotate=_Context
    )
    stream = Stream()
    stubs = {
        "get_device_name": lambda device=None: SESSION.device["name"],
        "get_device_capability": lambda device=None: tuple(SESSION.device["capability"]),
        "get_device_properties": _properties,
        "mem_get_info": lambda device=None: (SESSION.device["total_bytes"],) * 2,
        "get_arch_list": lambda: ["sm_{}{}".format(*SESSION.device["capability"])],
        "device_count": _constant(1),
        "Event": Event,
        "Stream": Stream,
        "current_stream": _constant(stream),
        "default_stream": _constant(stream),
        "stream": _Context,
        "device": _Context,
        "device_of": _Context,
        "_DeviceGuard": _Context,
        "CUDAGraph": CUDAGraph,
        "graph_pool_handle": _constant((0, 0)),
        "is_current_stream_capturing": lambda: SESSION.capturing,
        "manual_seed": seed_device,
        "manual_seed_all": seed_device,
        "nvtx": nvtx,
    }
    for value, names in _CONSTANT.items():
        stubs.update((name, _constant(value)) for name in names.split())
    for name in ("get_rng_state", "get_rng_state_all", "set_rng_state", "set_rng_state_all"):
        stubs[name] = _no_states
    return stubs


def _empty_strided(size, stride, dtype):
    return torch.empty_strided(size, stride, dtype=dtype, device="cuda")


def install():
    """Once in a process."""
    torch._C._ensureCUDADeviceGuardSet()
    torch._C._set_only_lift_cpu_tensors(True)  # torch.tensor(..., device="cuda") is an upload
    for name, stub in _stubs().items():
        setattr(torch.cuda, name, stub)
    torch.cuda.streams.Stream, torch.cuda.streams.Event = Stream, Event
    torch.cuda.graphs.CUDAGraph, torch.cuda.graphs.graph_pool_handle = CUDAGraph, _constant((0, 0))
    below = [
        (torch._C, "_cuda_getCurrentRawStream", _constant(0)),
        (torch._C, "_cuda_getDevice", _constant(0)),
        (torch._C, "_cuda_setDevice", _constant(None)),
        (torch._C, "_cuda_isCurrentStreamCapturing", lambda: SESSION.capturing),
        (torch._C, "_host_emptyCache", _constant(None)),
        (torch._C._dynamo.guards, "_empty_strided_cuda", _empty_strided),
        (torch.backends.cudnn, "is_acceptable", _constant(False)),  # else recurrent modules flatten weights
        (torch.accelerator, "synchronize", _constant(None)),
    ]
    for owner, name, stub in below:
        setattr(owner, name, stub)
    torch.backends.mha.set_fastpath_enabled(False)  # one operator for a whole layer, which only some devices have
    torch.Generator = Generator
    torch.manual_seed = torch.random.manual_seed = manual_seed
    torch.compile = _compile
