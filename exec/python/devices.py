"""Where a reference runs: on the CPU or on a GPU. A device is a context manager around a whole job."""

import torch

import operator_counts
from cuda_on_cpu import CudaOnCpu
from failures import is_device_full
from layout import map_tensors
from plain_torch import check_modes


class Cpu:
    """No GPU: times are modelled from counted operators."""

    modelled = True
    name = ""  # by the model, which the supervisor has

    def __init__(self):
        self.ops = {}  # of the first call
        self._on_cpu = CudaOnCpu()

    def __enter__(self):
        self._on_cpu.__enter__()
        return self

    def __exit__(self, *error):
        return self._on_cpu.__exit__(*error)

    def place(self, value):
        return value

    def release(self):
        """Nothing is held here beyond what is used."""

    def settle(self):
        """Nothing is queued here."""

    def make(self, function):
        """What `function` builds, a module or tensors, where code is to run."""
        check_modes()  # of no consequence here, but where there is a GPU
        return function()

    def reference_call(self, function, index):
        """function(); the operators of call 0 are counted."""
        counter = operator_counts.OperatorCounter(index == 0)
        with counter:
            result = function()
            self.settle()
        if index == 0:
            self.ops = counter.ops
        return result


class Cuda(Cpu):
    """A GPU. After a CUDA error that sticks the process is of no more use."""

    modelled = False

    def __init__(self):
        if not torch.cuda.is_available():
            raise RuntimeError("the job asks for device cuda, but torch finds no GPU on this machine")
        self.ops = {}
        self.name = torch.cuda.get_device_name()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False

    def place(self, value):
        if isinstance(value, torch.nn.Module):
            return value.cuda()
        return map_tensors(value, lambda tensor: tensor.cuda())

    def release(self):
        """Gives unused memory back to the GPU, which others use as well."""
        torch.cuda.empty_cache()

    def settle(self):
        """Errors of kernels surface here."""
        torch.cuda.synchronize()

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

    def clock(self):
        """(clock, watch, what the supervisor is to know of the GPU): how fast it is at best, and who else uses it."""
        import nvml
        from cuda_clock import CudaClock

        clock = CudaClock()
        watch = nvml.open_watch(f"GPU-{getattr(torch.cuda.get_device_properties(), 'uuid', '')}")
        best = {
            "bytes_per_second": clock.bytes_per_second(),
            "operations_per_second": clock.operations_per_second(),
        }
        return clock, (watch.read if watch else lambda: None), best


def of_job(job):
    return Cuda() if job["device"] == "cuda" else Cpu()
