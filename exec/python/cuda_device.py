"""The device "cuda": a real GPU. Kernels are launched by Triton itself and timed with CUDA events."""

import contextlib

import torch
import triton

import gpu_profile
import launch_arguments
import operators
import sources
from aten_counter import AtenCounter, most_of
from compile_watch import CompileWatch, LaunchRecord, Recorder, definition_line, error_chain
from element_reads import ElementReads
from failures import describe, is_device_full
from interpreter_device import compare_afterwards, describe_ops
from layout import map_tensors
from plain_torch import check_modes

_STICKY = ("illegal memory access", "misaligned address", "an illegal instruction", "unspecified launch failure")


class CudaDevice:
    """Context manager around a whole job. After a CUDA error that sticks the process is of no more use."""

    modelled = False

    def __init__(self, job, folder, deadline):
        if not torch.cuda.is_available():
            raise RuntimeError("the job asks for device cuda, but torch finds no GPU on this machine")
        self.job = job
        self.name = torch.cuda.get_device_name()
        self.recorder = Recorder(sources.candidate_path(folder), deadline)
        self.reference_ops = {}
        self.candidate_ops = {}  # the most of any call
        self.pattern = 0  # of fresh memory in calls of forward, see aten_counter.poison
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        self._stack.enter_context(CompileWatch(self.recorder))
        self._stack.enter_context(operators.noted())
        driver = triton.runtime.driver.active
        self._stack.callback(setattr, driver, "launcher_cls", driver.launcher_cls)
        driver.launcher_cls = recording_launcher(driver.launcher_cls, self.recorder)
        return self

    def __exit__(self, *error):
        self._stack.close()
        return False

    def place(self, value):
        if isinstance(value, torch.nn.Module):
            return value.cuda()
        return map_tensors(value, lambda tensor: tensor.cuda())

    def make(self, function):
        """What `function` builds, on the GPU: torch's default device is the GPU meanwhile, as one core of the host is
        too slow for inputs and weights of gigabytes. Code that cannot work so is run without it; that the GPU's memory is
        full does not count as that, or what is made again later could be drawn by another generator."""
        check_modes()
        try:
            with torch.device("cuda"):
                return self.place(function())
        except Exception as error:
            if is_device_full(error):
                raise
            torch.cuda.empty_cache()
            return self.place(function())

    def release(self):
        """Gives unused memory back to the GPU, which others use as well."""
        torch.cuda.empty_cache()

    def read(self, reader, node):
        return self.place(reader.get(node, "cuda"))

    def watch_inputs(self, inputs, writer):
        """As gigabytes are at stake, the inputs are not handed over, but compared here with a copy. A process that lies
        about it could as well have put them back, and has harmed nobody outside itself."""
        return compare_afterwards(inputs, writer)

    def fetch(self, value):
        return map_tensors(value, lambda tensor: tensor.detach().cpu())

    def _watched(self, function, ops, counting, inside=contextlib.nullcontext):
        counter = AtenCounter(counting, self.pattern, inside)
        with counter:
            result = function()
            torch.cuda.synchronize()  # errors of kernels surface here
        if counting:
            most_of(ops, counter.ops)
        return result

    def reference_call(self, function, index):
        return self._watched(function, self.reference_ops, index == 0)

    def candidate_call(self, function, index):
        """Launches are counted in call 0 of forward, operators in all; index None is import or construction."""
        self.recorder.counting = index == 0
        ops = {}
        try:
            if index is None:
                return self._watched(function, ops, False)
            with ElementReads(ops):
                return self._watched(function, ops, True, lambda: ElementReads(ops))
        finally:
            self.recorder.counting = False
            most_of(self.candidate_ops, ops)

    def profiled_call(self, function):
        """(result, kernels, note) of function(), see gpu_profile."""
        return gpu_profile.measure(function, self.recorder)

    def check_swallowed(self):
        self.recorder.raise_swallowed()

    def explain(self, error):
        chain = error_chain(error)
        known = self.recorder.explain_compile_error(chain, self.job["candidate_source"])
        return known or explain_cuda_error(chain)

    @property
    def compiled(self):
        return self.recorder.compile_state

    def name_arguments(self, inputs, model, output):
        launch_arguments.describe(self.recorder.records, inputs, model, output)

    def describe_launches(self):
        zeros = dict.fromkeys(
            (
                "load_bytes",
                "store_bytes",
                "atomic_bytes",
                "sector_bytes",
                "unique_bytes",
                "flops",
                "dot_flops",
                "tensor_flops",
            ),
            0,
        )
        return [
            {
                "name": r.name,
                "line": r.line,
                "grid": list(r.grid),
                "num_warps": r.num_warps,
                "num_stages": r.num_stages,
                "shared_bytes": r.shared_bytes,
                "arguments": r.arguments,
                **zeros,
                "modelled_seconds": None,
            }
            for r in self.recorder.shown_records
        ]

    def describe_ops(self, which):
        return describe_ops(self.reference_ops if which == "reference" else self.candidate_ops)

    def modelled_seconds(self, which):
        return None  # measured in rounds, see timing.py

    def bytes_per_second(self):
        return None  # the process that times the reference measures it, see clock()

    def clock(self):
        """(clock, watch, what the supervisor is to know of the GPU) for rounds of timed calls. A process that times
        the reference says how fast the GPU is at best and who else uses it."""
        from cuda_clock import CudaClock

        clock = CudaClock()
        if self.job["role"] == "runner":
            return clock, lambda: None, {}
        import nvml

        watch = nvml.open_watch(f"GPU-{getattr(torch.cuda.get_device_properties(), 'uuid', '')}")
        best = {
            "bytes_per_second": clock.bytes_per_second(),
            "operations_per_second": clock.operations_per_second(),
        }
        return clock, (watch.read if watch else lambda: None), best


def recording_launcher(base, recorder):
    """A subclass of Triton's launcher that notes each launch."""

    class RecordingLauncher(base):
        def __init__(self, src, metadata):
            super().__init__(src, metadata)
            self._note = (src.fn.__name__, definition_line(src.fn), metadata, src.signature)
            self._binary = getattr(metadata, "name", src.fn.__name__)

        def __call__(self, gx, gy, gz, *args, **kwargs):
            name, line, metadata, signature = self._note
            if not recorder.begin(name, line, (gx, gy, gz)):
                return None
            recorder.binaries[self._binary] = recorder.binaries.get(self._binary, 0) + 1
            if recorder.counting:
                # After the grid: stream, function, metadata twice, two hooks; then the kernel's own arguments.
                tensors = launch_arguments.note(signature, args[6:])
                recorder.records.append(LaunchRecord(name, line, (gx, gy, gz), metadata, None, tensors))
            return super().__call__(gx, gy, gz, *args, **kwargs)

    return RecordingLauncher


def explain_cuda_error(chain):
    """(outcome, fault, message, detail, line) of an error that CUDA reported, or None."""
    for error in chain:
        text = str(error)
        if "out of memory" in text and "CUDA" in text or is_device_full(error):
            return "out_of_device_memory", "candidate", f"out of GPU memory: {describe(error)}", "", 0
        if "CUDA error" in text and any(word in text for word in _STICKY):
            return (
                "out_of_bounds",
                "candidate",
                f"a kernel touched memory that is not its own: {describe(error)}",
                "",
                0,
            )
    return None
