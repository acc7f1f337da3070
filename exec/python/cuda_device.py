"""The device "cuda": a real GPU. Kernels are launched by Triton itself and timed with CUDA events."""

import contextlib
import statistics

import torch
import triton

import compare
import phases
import sources
from aten_counter import AtenCounter
from compile_watch import CompileWatch, LaunchRecord, Recorder, definition_line, error_chain
from failures import JobFailure, describe
from interpreter_device import describe_ops

WARM_UPS = 3  # calls of each before the clock runs
RUNS = 10  # timed calls of each
FLUSH_BYTES = 256 << 20  # written before each timed call: more than any L2 cache
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
        self.candidate_ops = {}
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        self._stack.enter_context(CompileWatch(self.recorder))
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

    def fetch(self, value):
        return map_tensors(value, lambda tensor: tensor.detach().cpu())

    def misplaced(self, output):
        for index, (_, leaf) in enumerate(compare.flatten(output)):
            if isinstance(leaf, torch.Tensor) and not leaf.is_cuda:
                return compare.Mismatch(
                    index, "device", f"output {index} is on {leaf.device}, expected cuda", want="cuda", got=leaf.device
                )
        return None

    def _watched(self, function, ops, counting):
        counter = AtenCounter(counting)
        with counter:
            result = function()
            torch.cuda.synchronize()  # errors of kernels surface here
        if counting:
            ops.update(counter.ops)
        return result

    def reference_call(self, function, trial):
        return self._watched(function, self.reference_ops, trial == 0)

    def candidate_call(self, function, trial):
        self.recorder.counting = trial == 0
        try:
            return self._watched(function, self.candidate_ops, trial == 0)
        finally:
            self.recorder.counting = False

    def check_swallowed(self):
        self.recorder.raise_swallowed()

    def explain(self, error):
        chain = error_chain(error)
        known = self.recorder.explain_compile_error(chain, self.job["candidate_source"])
        return known or explain_cuda_error(chain)

    @property
    def compiled(self):
        return self.recorder.compile_state

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
                **zeros,
                "modelled_seconds": None,
            }
            for r in self.recorder.records
        ]

    def describe_ops(self, which):
        return describe_ops(self.reference_ops if which == "reference" else self.candidate_ops)

    def measure(self, job, reference, candidate_model, check_time):
        """(reference seconds, candidate seconds): means of RUNS calls each, in turns, with the L2 cache flushed before
        each. The candidate's last timed output is compared once more."""
        module = sources.load_reference(job["reference_source"])
        reference_model = self.place(sources.build_model(module.Model, reference.arguments, job["seed"]))
        sources.forget_reference()
        inputs = self.place(reference.store.get(reference.inputs[0]))
        flush = torch.empty(FLUSH_BYTES, dtype=torch.int8, device="cuda")
        calls = [lambda: reference_model(*inputs), lambda: candidate_model(*inputs)]
        with torch.no_grad():
            try:
                times, outputs = time_in_turns(calls, lambda call: timed_call(call, flush), check_time)
            except JobFailure:
                raise
            except Exception as error:
                raise JobFailure(
                    "runtime_error", "candidate", "timing", f"a timed run failed: {describe(error)}"
                ) from error
        if not reference.mutates_inputs and not _has_state(reference_model):
            outcome = {"max_error": None, "trials_run": 0, "mismatch": None}
            phases.compare_trial(job, self, reference, 0, outcome, inputs, outputs[1])
        return statistics.fmean(times[0]), statistics.fmean(times[1])


def _has_state(model):
    """Whether a model's output may depend on earlier calls (buffers such as running statistics)."""
    return any(True for _ in model.buffers()) if isinstance(model, torch.nn.Module) else False


def timed_call(call, flush):
    """(seconds, output) of one call after a flush of the L2 cache."""
    flush.zero_()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    output = call()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) * 1e-3, output


def time_in_turns(calls, timed, check_time, warm_ups=WARM_UPS, runs=RUNS):
    """(times, last outputs) of each call: all take turns, A B B A ..., first untimed, then timed."""
    times, outputs = [[] for _ in calls], [None] * len(calls)
    for turn in range(warm_ups + runs):
        check_time("timing")
        order = range(len(calls)) if turn % 2 == 0 else reversed(range(len(calls)))
        for which in order:
            seconds, outputs[which] = timed(calls[which])
            if turn >= warm_ups:
                times[which].append(seconds)
    return times, outputs


def map_tensors(value, function):
    """The structure with `function` applied to its tensors."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, (list, tuple)):
        items = [map_tensors(item, function) for item in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        return {key: map_tensors(item, function) for key, item in value.items()}
    return value


def recording_launcher(base, recorder):
    """A subclass of Triton's launcher that notes each launch."""

    class RecordingLauncher(base):
        def __init__(self, src, metadata):
            super().__init__(src, metadata)
            self._note = (src.fn.__name__, definition_line(src.fn), metadata)

        def __call__(self, gx, gy, gz, *args, **kwargs):
            name, line, metadata = self._note
            recorder.launches += 1
            recorder.launched.add(name)
            if recorder.counting:
                recorder.records.append(LaunchRecord(name, line, (gx, gy, gz), metadata, None))
            return super().__call__(gx, gy, gz, *args, **kwargs)

    return RecordingLauncher


def explain_cuda_error(chain):
    """(outcome, fault, message, detail, line) of an error that CUDA reported, or None."""
    for error in chain:
        text = str(error)
        if "out of memory" in text and ("CUDA" in text or isinstance(error, torch.OutOfMemoryError)):
            return "out_of_memory", "candidate", f"out of GPU memory: {describe(error)}", "", 0
        if "CUDA error" in text and any(word in text for word in _STICKY):
            return (
                "out_of_bounds",
                "candidate",
                f"a kernel touched memory that is not its own: {describe(error)}",
                "",
                0,
            )
    return None
