"""A session of a reference host as the tests of this folder need it."""

import mmap
import os
import time
import types

import torch

import testing  # first: it finds the others

import devices
import testing_client
import layout
import leaves
from cuda_clock import CudaClock

TRIALS = 3
MORE = 12
BATCH_NORM = "        self.norm = nn.BatchNorm1d(16)\n        self.line = nn.Linear(16, 16)\n"
COUNTER = "        self.register_buffer('n', torch.zeros(()))\n"


class _Event:
    def __init__(self, enable_timing=True):
        self._at = 0.0

    def record(self):
        self._at = time.perf_counter()

    def elapsed_time(self, other):
        return (other._at - self._at) * 1e3


class _CpuStandIn:
    """Takes the place of torch.cuda in a CudaClock: what it times is the host's own work."""

    Event = _Event

    def _sleep(self, cycles):
        """Nothing is queued here that would have to wait."""

    def synchronize(self):
        pass

    def empty_cache(self):
        pass

    def mem_get_info(self):
        pages, size = os.sysconf("SC_AVPHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
        return pages * size, os.sysconf("SC_PHYS_PAGES") * size

    def get_device_properties(self):
        return types.SimpleNamespace(multi_processor_count=1)


def _clock(device):
    return CudaClock(_CpuStandIn(), "cpu"), lambda: None, {"bytes_per_second": 1e12, "operations_per_second": 1e15}


devices.Cpu.clock = _clock  # for the processes that hosts fork, too


def job(source, mode="paper", **fields):
    return {
        "role": "oracle",
        "reference_source": source,
        "weights_seed": 1,
        "input_seeds": list(range(10, 10 + TRIALS)),
        "forward_seeds": list(range(20, 20 + TRIALS + MORE)),
        "variant_seeds": list(range(50, 50 + MORE)) if mode == "robust" else [],
        "calls": [0, *range(TRIALS)],
        "mode": mode,
        **fields,
    }


WHOLE = {"own_memory": 64 << 20}
IN_WINDOWS = {**WHOLE, "whole_bytes": 0}


def map_window(fd, size):
    """A window's bytes, as an executor without a GPU maps it. The descriptor is closed."""
    memory = mmap.mmap(fd, size)
    os.close(fd)
    return torch.frombuffer(memory, dtype=torch.uint8)


class Session:
    """A host with one open session, seen from both sides of its windows. Without a GPU."""

    def __init__(self, source, mode="paper", **fields):
        self.host = testing_client.HostProcess(job(source, mode, **{**IN_WINDOWS, **fields}))
        self.result = self.host.result
        if self.result["outcome"] != "ok":
            return
        _, (self.visible, self.hidden) = self.host.order({"export": True})
        self.number, *fds = self.host.open()
        sizes = self.result["in_bytes"], self.result["out_bytes"]
        self.inside, self.outside = (map_window(fd, size) for fd, size in zip(fds, sizes))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.host.finish()
        os.close(self.visible)
        os.close(self.hidden)

    def order(self, name, **what):
        return self.host.order({name: {"session": self.number, **what}})

    def constants(self, name):
        return testing.Reader(self.visible).get(self.result["visible"][name])

    def window(self, trial):
        """What lies in the window for inputs, as those of that trial."""
        return _Window(self.inside).get(self.result["visible"]["inputs"][trial])

    def inputs(self, trial):
        self.order("fill", trial=trial)
        return self.window(trial)

    def put(self, value):
        """Description of a value that is put into the window for outputs."""
        collector = leaves.Collector("cpu")
        described, _ = leaves.window_layout(collector.put(value), spans=False)
        leaves.write(described, collector.leaves, self.outside)
        return described

    def compare(self, call, value):
        """Differences by leaf of a value handed over as the call's output."""
        return testing_client.compare_output(self.host, self.number, call, self.put(value))

    def right(self, call, value):
        found = self.compare(call, value)
        return found is not None and not any(difference["bad"] for difference in found)


class _Window(layout.Builder):
    def __init__(self, memory):
        self._memory = memory

    def _tensor(self, node):
        dtype, shape, stride = getattr(torch, node["dtype"]), node["shape"], node["stride"]
        span = 1 + sum(step * (size - 1) for step, size in zip(stride, shape))
        if 0 in shape:
            return torch.empty(shape, dtype=dtype)
        raw = self._memory[node["offset"] : node["offset"] + span * dtype.itemsize]
        return raw.clone().view(dtype).as_strided(shape, stride)
