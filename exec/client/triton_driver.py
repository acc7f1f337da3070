"""Triton without a device: its front end runs here up to Triton IR, a launch is a command.

The executor compiles the IR, so a kernel here has no binary. Where the executor has no GPU either, nobody but this
process finds out how much shared memory a kernel needs, by Triton's passes up to that point: they take as long as all
before them, so only kernels that may need too much are passed through. One that does raises Triton's OutOfResources when
it is sent, which makes an autotuner drop the configuration.
"""

import collections
import contextlib
import functools
import operator
import re
import threading
import types

import torch
import triton
import triton.runtime.driver
import triton.testing
from triton import knobs
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.compiler.compiler import ASTSource, AsmDict, CompiledKernel, filter_traceback, make_backend
from triton.runtime.errors import OutOfResources, PTXASError

from . import shared_memory, tensors
from .session import SESSION

_WARP = 32
_OUT_OF_RESOURCE = re.compile(r"out of resource: ([a-z ]+), Required: (\d+), Hardware limit: (\d+)")
_triton_compile = triton.compiler.compile  # Triton's own, to the binary
_PTXAS = "PTXAS error: "
_LATER = ("ttgir", "llir", "ptx", "cubin")  # stages after Triton IR
_kernels = {}  # (IR, options) -> the executor's number
_shared_context_is_free = threading.Lock()


def target():
    """The device's compute capability, as Triton's compiler takes it."""
    major, minor = SESSION.device["capability"]
    return GPUTarget("cuda", 10 * major + minor, _WARP)


def compile_to_ir(src, target=None, options=None, _env_vars=None):
    """In the place of triton.compile: a kernel with Triton IR and no binary, and no cache on disk."""
    target = target or triton.runtime.driver.active.get_current_target()
    if not isinstance(src, ASTSource) or src.ext != "ttir":
        raise RuntimeError("refused: a kernel comes from @triton.jit alone")
    backend = make_backend(target)
    options = backend.parse_options(dict(options or {}, **src.parse_options()))
    with _context() as context:
        module = _ir(src, target, options, backend, context)
        text = str(module)
        shared = None
        if not SESSION.device["compiles"]:
            limit = SESSION.device["shared_bytes"]
            if shared_memory.bound(text, options.num_stages) > limit:
                shared = shared_memory.needed(module, options, target.arch, backend)
    return Kernel(src, target, options, text, shared)


def _ir(src, target, options, backend, context):
    """The module of a kernel's Triton IR."""
    try:
        module = src.make_ir(
            target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
        )
    except Exception as error:
        filter_traceback(error)
        raise
    return backend.make_ttir(module, {}, options, target.arch)


@contextlib.contextmanager
def _context():
    """One for all kernels of a process and of its forks, as loading the dialects takes as long as half a compilation
    in a fork. It serves one compilation at a time: others in threads meanwhile, or within, get contexts of their own."""
    if not _shared_context_is_free.acquire(blocking=False):
        yield _new_context()
        return
    try:
        yield _shared_context()
    finally:
        _shared_context_is_free.release()


@functools.cache
def _shared_context():
    return _new_context()


def _new_context():
    context = ir.context()
    ir.load_dialects(context)
    make_backend(GPUTarget("cuda", 90, _WARP)).load_dialects(context)
    return context


class _Asm(AsmDict):
    """The kernel's texts by stage. Those after Triton IR are made only if a program asks for them."""

    def __init__(self, kernel, text):
        super().__init__(ttir=text)
        self._kernel = kernel

    def __contains__(self, key):
        return key in _LATER or super().__contains__(key)

    def __missing__(self, key):
        kernel = self._kernel
        if key in _LATER:
            self.update(_triton_compile(kernel.src, kernel.target, vars(kernel.options)).asm)
            return self[key]
        return super().__missing__(key)


class Kernel(CompiledKernel):
    """What a compiled kernel is to programs: `asm`, `metadata`, `run`, `kernel[grid](...)`."""

    def __init__(self, src, target, options, text, shared):
        self.src, self.target, self.options, self._shared = src, target, options, shared
        self.name = src.fn.__name__
        self.hash = src.hash()
        self.packed_metadata = (options.num_warps, options.num_ctas, 0)
        self.asm = _Asm(self, text)
        self.metadata_group, self.kernel = {}, b""
        self.module, self.function, self._run = self, self, self._launch
        self.n_regs, self.n_spills, self.n_max_threads = _WARP, 0, 1024
        self._number = None
        self._kinds = tuple(src.signature.values())

    @functools.cached_property
    def metadata(self):
        """Made if it is asked for, as a new type takes milliseconds, and the shared memory of a block as many."""
        if self._shared is None:
            backend = make_backend(self.target)
            with _context() as context:
                module = _ir(self.src, self.target, self.options, backend, context)
                self._shared = shared_memory.needed(module, self.options, self.target.arch, backend)
        fields = dict(vars(self.options), hash=self.hash, target=self.target, name=self.name, shared=self._shared)
        return collections.namedtuple("KernelMetadata", sorted(fields))(**fields)

    def _init_handles(self):
        """Nothing is loaded here."""

    def _send(self):
        o = self.options
        key = (self.asm["ttir"], o.num_warps, o.num_stages, o.num_ctas, o.maxnreg, o.enable_fp_fusion)
        key += (o.launch_pdl, o.launch_cooperative_grid)
        if key not in _kernels:
            message = {"do": "kernel", "name": self.name, "ttir": key[0], "num_warps": o.num_warps}
            message.update(num_stages=o.num_stages, num_ctas=o.num_ctas, shared=self._shared or 0, maxnreg=o.maxnreg or 0)
            message.update(fp_fusion=bool(o.enable_fp_fusion), pdl=bool(o.launch_pdl))
            message["cooperative"] = bool(o.launch_cooperative_grid)
            _kernels[key] = _call(message)["kernel"]
        return _kernels[key]

    def _launch(self, x, y, z, stream, function, packed, metadata, enter, leave, *args):
        grid = [operator.index(x), operator.index(y), operator.index(z)]
        if min(grid) < 0 or grid[0] > 2**31 - 1 or max(grid[1:]) > 65535:
            raise RuntimeError(f"Triton Error [CUDA]: invalid argument (grid {tuple(grid)})")
        if 0 in grid:
            return  # no program runs
        if self._number is None:
            self._number = self._send()
        if enter is not None:
            enter(metadata)
        sender = tensors.Sender()
        message = {"do": "launch", "kernel": self._number, "grid": grid, "line": SESSION.line()}
        message["args"] = [_argument(arg, sender) for arg in flatten(self._kinds, args)]
        _call(message)
        if leave is not None:
            leave(metadata)


def flatten(kinds, args):
    """Arguments in the order of the IR's function: constexprs left out, tuples flattened, and a tensor descriptor as
    base, shape, strides, whether it pads with NaN, shape, strides. From sm_90 on the function has one argument of type
    !tt.tensordesc in the place of base, shape, strides and padding."""
    flat = []
    for kind, arg in zip(kinds, args):
        if isinstance(kind, (tuple, list)):
            flat += flatten(kind, arg)
        elif kind.startswith("tensordesc"):
            flat += [arg.base, *arg.shape, *arg.strides, arg.padding == "nan", *arg.shape, *arg.strides]
        elif kind != "constexpr":
            flat.append(arg)
    return flat


def _argument(arg, sender):
    if type(arg) is int:
        return arg
    if hasattr(arg, "data_ptr"):
        base = getattr(arg, "base", arg)  # of triton.reinterpret
        if not isinstance(base, torch.Tensor) or not base.is_cuda:
            raise ValueError("Pointer argument cannot be accessed from Triton (cpu tensor?)")
        return sender.tensor(base)
    return sender.encode(arg)


def _call(message):
    """The reply; what Triton would have raised for a kernel that the executor could not compile or load."""
    try:
        return SESSION.call(message)
    except RuntimeError as error:
        found, text = _OUT_OF_RESOURCE.match(str(error)), str(error)
        if found is None and not text.startswith(_PTXAS):
            raise
    if found is None:
        raise PTXASError(text.removeprefix(_PTXAS))
    raise OutOfResources(int(found[2]), int(found[3]), found[1])


class _Bench:
    """Benchmarking is a command: the executor times what is sent meanwhile, and then puts all of it back."""

    def __init__(self):
        self._inner = None  # of the benchmark that runs: whether another one ran inside of it

    def __call__(self, fn, warmup=25, rep=100, grad_to_none=None, quantiles=None, return_mode="mean"):
        if self._inner is None:
            ms = self._outermost(fn)
        else:  # for example an autotuner inside of what a program measures
            self._inner = True
            SESSION.call({"do": "bench", "begin": False})
            try:
                ms = self._once(fn)
            finally:
                SESSION.call({"do": "bench", "begin": True})
        if quantiles is not None:
            return [ms] * len(quantiles)
        return [ms] if return_mode == "all" else ms

    def _outermost(self, fn):
        try:
            for _ in range(3):  # again, if an inner one took part of the time
                self._inner = False
                ms = self._once(fn)
                if not self._inner:
                    break
            return ms
        finally:
            self._inner = None

    def _once(self, fn):
        SESSION.call({"do": "bench", "begin": True})
        try:
            fn()
        finally:
            ms = SESSION.call({"do": "bench", "begin": False})["ms"]
        return ms


def _properties(device):
    return {
        "max_shared_mem": SESSION.device["shared_bytes"],
        "multiprocessor_count": SESSION.device["multiprocessors"],
        "max_num_regs": 65536,
        "warpSize": _WARP,
        "sm_clock_rate": 2520000,
        "mem_clock_rate": 9001000,
        "mem_bus_width": 384,
    }


class _Driver(DriverBase):
    """Triton's questions to the driver."""

    launcher_cls = None  # kernels launch themselves
    utils = types.SimpleNamespace(get_device_properties=_properties)
    is_active = classmethod(lambda cls: True)

    def __init__(self, bench):
        super().__init__()
        self._bench = bench
        self.get_device_capability = lambda device=0: tuple(SESSION.device["capability"])
        self.get_current_device = lambda: 0
        self.get_current_stream = lambda device=None: 0
        self.set_current_device = self.clear_cache = lambda argument: None
        self.get_device_interface = lambda: torch.cuda
        self.get_empty_cache_for_benchmark = lambda: torch.empty(1)

    def map_python_to_cpp_type(self, ty):
        return ty

    def get_current_target(self):
        return target()

    def get_active_torch_device(self):
        return torch.device("cuda", 0)

    def get_benchmarker(self):
        return self._bench


def install():
    """Once in a process."""
    bench = _Bench()
    triton.runtime.driver.set_active(_Driver(bench))
    triton.testing.do_bench = triton.testing.do_bench_cudagraph = bench
    triton.compile = triton.compiler.compile = triton.compiler.compiler.compile = compile_to_ir
    knobs.autotuning.cache = False
