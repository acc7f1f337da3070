"""A Triton driver without a GPU: kernels are specialised and compiled for real, launches go to the Triton IR executor.

`StubDriver(arch, ...)` is a context manager. Inside it `kernel[grid](...)` takes Triton's own path (binder, specialisation,
cache, autotuner, compiler, ptxas, check of shared memory); only loading the binary and the launch itself are ours.
"""

import operator
import types

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.runtime.cache import FileCacheManager

import launch_arguments
from compile_watch import CompileWatch, LaunchRecord, definition_line
from counters import LaunchCounters
from failures import KernelError
from fake_cuda import CUDA
from plain_torch import plain_torch
from ttir_executor import kernel_of

# Limits that Triton asks the driver for, by compute capability.
_DEVICES = {
    80: {"max_shared_mem": 166912, "multiprocessor_count": 108},
    86: {"max_shared_mem": 101376, "multiprocessor_count": 84},
    89: {"max_shared_mem": 101376, "multiprocessor_count": 142},
    90: {"max_shared_mem": 232448, "multiprocessor_count": 132},
}


def flatten_arguments(signature, args):
    """Arguments of the kernel's IR: constexprs dropped, tuples and tensor descriptors taken apart."""
    flat = []
    for kind, arg in zip(signature, args):
        if isinstance(kind, (tuple, list)):
            flat += flatten_arguments(kind, arg)
        elif isinstance(kind, str) and kind.startswith("tensordesc"):
            shape, strides = list(arg.shape), list(arg.strides)
            flat += [arg.base, *shape, *strides, getattr(arg, "padding", "zero") == "nan", *shape, *strides]
        elif kind != "constexpr":
            flat.append(arg)
    return flat


class Launcher:
    """Takes the place of Triton's CudaLauncher: one for each compiled kernel."""

    recorder = None  # set on a subclass by StubDriver

    def __init__(self, src, metadata):
        self.src = src
        self.metadata = metadata
        self.text = None  # the kernel's Triton IR

    def __call__(self, gx, gy, gz, stream, function, packed, launch_metadata, enter_hook, exit_hook, *args):
        grid = tuple(operator.index(size) for size in (gx, gy, gz))
        if min(grid) < 0 or grid[0] > 2**31 - 1 or max(grid[1:]) > 65535:
            raise RuntimeError(f"Triton Error [CUDA]: invalid argument (grid {grid})")
        recorder, name, line = self.recorder, self.src.fn.__name__, definition_line(self.src.fn)
        if not recorder.begin(name, line, grid):
            return
        counters = LaunchCounters() if recorder.counting else None
        with plain_torch():
            try:
                kernel = kernel_of(self.text)
                flat = flatten_arguments(self.src.signature.values(), args)
                kernel.launch(flat, grid, counters, recorder.deadline, recorder.source_path)
            except KernelError as error:
                error.kernel = error.kernel or name
                if not error.line and error.module is not None:
                    error.line = error.module.find_line(error.loc, recorder.source_path)
                recorder.kernel_errors.append(error)
                raise
        if counters is not None:
            tensors = launch_arguments.note(self.src.signature, args)
            recorder.records.append(LaunchRecord(name, line, grid, self.metadata, counters, tensors))


def _give_text(kernel):
    kernel._run.text = kernel.asm["ttir"]


class PrivateCache(FileCacheManager):
    """Triton's file cache in a folder that no other process writes: no lock, no temporary folder for each file."""

    def put(self, data, filename, binary=True):
        path = self._make_path(filename)
        with open(path, "wb") as file:
            file.write(data if isinstance(data, bytes) else str(data).encode())
        return path


class _Driver(DriverBase):
    def __init__(self, arch, launcher_class, benchmarker):
        self.arch = arch
        self.launcher_cls = launcher_class
        self._benchmarker = benchmarker
        properties = dict(
            max_num_regs=65536, warpSize=32, sm_clock_rate=2520000, mem_clock_rate=9001000, mem_bus_width=384
        )
        properties.update(_DEVICES.get(arch, _DEVICES[89]))
        self.utils = types.SimpleNamespace(
            load_binary=lambda name, cubin, shared, device: (object(), object(), 32, 0, 1024),
            get_device_properties=lambda device: dict(properties),
        )

    @classmethod
    def is_active(cls):
        return True

    def map_python_to_cpp_type(self, kind):
        return kind

    def get_current_target(self):
        return GPUTarget("cuda", self.arch, 32)

    def get_current_device(self):
        return 0

    def set_current_device(self, device):
        pass

    def get_current_stream(self, device=None):
        return 0

    def get_device_capability(self, device=0):
        return divmod(self.arch, 10)

    def get_active_torch_device(self):
        return CUDA

    def get_device_interface(self):
        return torch.cuda

    def get_benchmarker(self):
        return self._benchmarker

    def get_empty_cache_for_benchmark(self):
        return torch.empty(1)

    def clear_cache(self, cache):
        pass


class StubDriver:
    """Context manager. `seconds_of(record)` ranks the configurations that an autotuner tries; they run once each."""

    def __init__(self, arch, recorder, seconds_of):
        self.recorder = recorder
        self.seconds_of = seconds_of
        launcher = type("StubLauncher", (Launcher,), {"recorder": recorder})
        self.driver = _Driver(arch, launcher, self._benchmark)
        self._watch = CompileWatch(recorder, plain_torch, _give_text)

    def _benchmark(self, call, quantiles=None, **unused):
        recorder, before, counting = self.recorder, len(self.recorder.records), self.recorder.counting
        recorder.counting = True
        try:
            call()
            milliseconds = 1e3 * sum(self.seconds_of(record) for record in recorder.records[before:])
        finally:
            recorder.counting = counting
            del recorder.records[before:]
        return [milliseconds] * len(quantiles) if quantiles else milliseconds

    def __enter__(self):
        self._watch.__enter__()
        self._knobs = triton.knobs.cache.scope()
        self._knobs.__enter__()
        triton.knobs.cache.manager_class = PrivateCache
        self._active = triton.runtime.driver._active  # not reset_active(): that looks for a GPU
        triton.runtime.driver.set_active(self.driver)
        return self

    def __exit__(self, *error):
        triton.runtime.driver._active = self._active
        self._knobs.__exit__(None, None, None)
        return self._watch.__exit__(*error)
