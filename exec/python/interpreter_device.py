"""The device "interpreter": no GPU. Kernels are compiled for real and executed from their Triton IR on the CPU; times are modelled."""

import contextlib

import launch_arguments
import layout
import roofline
import sources
from aten_counter import AtenCounter, most_of
from compile_watch import Recorder, error_chain
from cpu_stand_in import CpuStandIn
from cuda_clock import CudaClock
from element_reads import ElementReads
from failures import DeadlinePassed, KernelError, NotExecutable, OutOfBounds
from fake_cuda import FakeCuda
from plain_torch import check_modes
from stub_driver import StubDriver


class InterpreterDevice:
    """Context manager around a whole job."""

    modelled = True

    def __init__(self, job, folder, deadline):
        self.job = job
        self.model = roofline.device_model(job["device_model"])
        self.name = self.model.name
        self.recorder = Recorder(sources.candidate_path(folder), deadline)
        self.reference_ops = {}
        self.candidate_ops = {}  # of call 0, for the modelled time
        self.audited_ops = {}  # the most of any call
        self.pattern = 0  # of fresh memory in calls of forward, see aten_counter.poison
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        self._stack.enter_context(
            StubDriver(self.job["arch"], self.recorder, lambda r: roofline.launch_seconds(self.model, r))
        )
        self._stack.enter_context(FakeCuda())
        return self

    def __exit__(self, *error):
        self._stack.close()
        return False

    def place(self, value):
        return value

    def release(self):
        """Nothing is held here beyond what is used."""

    def make(self, function):
        """What `function` builds, a module or tensors, where code is to run."""
        check_modes()  # of no consequence here, but where there is a GPU
        return function()

    def read(self, reader, node):
        """A value that was handed over, where code is to run."""
        return reader.get(node)

    def watch_inputs(self, inputs, writer):
        """A function for after a call of forward: the inputs as they are then, handed over by `writer`; or, where they
        came through a window, compared here as on a GPU."""
        if self.job.get("windows"):
            return compare_afterwards(inputs, writer)
        return lambda: writer.put(inputs)

    def fetch(self, value):
        return layout.map_tensors(value, lambda tensor: tensor.detach())

    def _watched(self, function, ops, counting, inside=contextlib.nullcontext):
        counter = AtenCounter(counting, self.pattern, inside)
        with counter:
            result = function()
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
            most_of(self.audited_ops, ops)
            if index == 0:
                self.candidate_ops.update(ops)

    def check_swallowed(self):
        self.recorder.raise_swallowed()

    def explain(self, error):
        chain = error_chain(error)
        for link in chain:
            if isinstance(link, KernelError):
                return _explain_kernel_error(link)
        return self.recorder.explain_compile_error(chain, self.job["candidate_source"])

    @property
    def compiled(self):
        return self.recorder.compile_state

    def name_arguments(self, inputs, model, output):
        """After the counted call: what the tensors of its launches are."""
        launch_arguments.describe(self.recorder.records, inputs, model, output)

    def describe_launches(self):
        return [describe_launch(r, roofline.launch_seconds(self.model, r)) for r in self.recorder.shown_records]

    def describe_ops(self, which):
        return describe_ops(self.reference_ops if which == "reference" else self.audited_ops)

    def modelled_seconds(self, which):
        if which == "reference":
            return roofline.total_seconds(self.model, [], self.reference_ops)
        return roofline.total_seconds(self.model, self.recorder.records, self.candidate_ops)

    def bytes_per_second(self):
        """What the memory of the modelled GPU moves: no kernel reads its inputs and writes its outputs faster."""
        return self.model.dram_bytes

    def clock(self):
        """As CudaDevice.clock(), of this machine's CPU."""
        clock = CudaClock(CpuStandIn(), "cpu")
        return clock, lambda: None, {"bytes_per_second": self.model.dram_bytes, "operations_per_second": 1e15}


def compare_afterwards(inputs, writer):
    """A function for after a call of forward: whether the inputs are as they were, and a description without content."""
    before = layout.map_tensors(inputs, lambda tensor: tensor.clone())
    return lambda: {"tuple": [{"value": layout.same(before, inputs)}, writer.describe(inputs)]}


def _explain_kernel_error(error):
    if isinstance(error, OutOfBounds):
        return "out_of_bounds", "candidate", str(error), "", error.line
    if isinstance(error, DeadlinePassed):
        return "timeout", "candidate", str(error), "", error.line
    if isinstance(error, NotExecutable):
        return "not_executable", "ours", str(error), "", error.line
    return "runtime_error", "candidate", str(error), "", error.line


def describe_launch(record, seconds):
    c = record.counters
    return {
        "name": record.name,
        "line": record.line,
        "grid": list(record.grid),
        "num_warps": record.num_warps,
        "num_stages": record.num_stages,
        "shared_bytes": record.shared_bytes,
        "arguments": record.arguments,
        "load_bytes": c.load_bytes,
        "store_bytes": c.store_bytes,
        "atomic_bytes": c.atomic_bytes,
        "sector_bytes": c.sector_bytes,
        "unique_bytes": c.unique_bytes,
        "flops": c.flops,
        "dot_flops": c.dot_flops,
        "tensor_flops": c.tensor_flops,
        "modelled_seconds": seconds,
    }


def describe_ops(ops):
    return [
        {
            "name": name,
            "calls": c.calls,
            "bytes": c.bytes,
            "flops": c.flops,
            "elements": c.elements,
            "largest": c.largest,
            "view": c.view,
            "line": c.line,
        }
        for name, c in sorted(ops.items())
    ]
