"""Takes the time of single calls on a GPU with CUDA events, so that work hidden beside the current stream counts too.

One queued call is  [wait] [inputs] [flush of the L2 cache] [start] forward [end] [copy of the output]  in the order of
the current stream. The wait is as long as the host needs to queue all of it, so that gaps between launches do not
count. What runs beside the stream:
  before start: it sees the inputs of the call before, as the new ones come after the wait: its output is wrong;
  after end: the output is copied at once behind `end`, so that what is written later is missing from it, and what is
    still running when the stream is empty is added to the time.
"""

import time

import torch

import layout
import sources
from plain_torch import plain_torch

FLUSH_BYTES = 256 << 20  # written before each timed call: more than any L2 cache
LATE_SECONDS = 50e-6  # a host that looks again so much later than usual was held up by work, not by chance
PAD_BYTES = (640 << 10, 5 << 20)  # torch takes blocks of the one and of the other size from places of their own
LEAST_SECONDS = 1e-7  # two events with nothing between them can have the same time
_CALIBRATION = 2_000_000  # cycles


class CudaClock:
    """`cuda` is torch.cuda, or a stand-in for tests."""

    def __init__(self, cuda=torch.cuda, device="cuda"):
        self._cuda = cuda
        self._device = device
        self._flush = None
        self._pads = []
        self._cycles_per_second = self._calibrate()
        self._idle = min(self._after_end() for _ in range(8))

    def flush_cache(self):
        if self._flush is None:
            size = FLUSH_BYTES if self._device == "cuda" else 64
            self._flush = torch.empty(size, dtype=torch.int8, device=self._device)
        self._flush.zero_()

    def rest(self):
        """Holds no memory until the next call is timed."""
        self._flush = None
        self._pads = []

    @plain_torch()
    def scatter(self, pads):
        """Gives unused memory back and holds so many small pieces, so that what is allocated next lies elsewhere."""
        self._pads = []
        self._cuda.empty_cache()
        try:
            for _ in range(pads):
                self._pads += [torch.empty(size, dtype=torch.int8, device=self._device) for size in PAD_BYTES]
        except torch.OutOfMemoryError:
            self._pads = []  # nearly full: it lies where it can

    def _event(self):
        return self._cuda.Event(enable_timing=True)

    def _calibrate(self):
        rates = []
        for _ in range(3):
            start, end = self._event(), self._event()
            start.record()
            self._cuda._sleep(_CALIBRATION)
            end.record()
            self._cuda.synchronize()
            rates.append(_CALIBRATION / max(start.elapsed_time(end) * 1e-3, 1e-9))
        return max(rates)

    def _after_end(self):
        """Seconds from an event on an idle stream to one that is recorded once the device is known to be idle."""
        last = self._event()
        self._cuda.synchronize()
        last.record()
        return self._idle_since(last)

    def _idle_since(self, last):
        self._cuda.synchronize()
        after = self._event()
        after.record()
        self._cuda.synchronize()
        return last.elapsed_time(after) * 1e-3

    def free_bytes(self):
        return self._cuda.mem_get_info()[0]

    def place(self, reader, node):
        """Values that a Writer described, on the device."""
        return layout.map_tensors(reader.get(node, self._device), lambda tensor: tensor.to(self._device))

    def seed(self, seed):
        sources.seed_everything(seed)

    def enqueue_seconds(self, prepare, call):
        """What the host needs to queue one call."""
        self._cuda.synchronize()
        self._cuda._sleep(int(2e-3 * self._cycles_per_second))
        start = time.perf_counter()
        prepare()
        self.flush_cache()
        self._event().record()
        _settled(call())
        taken = time.perf_counter() - start
        self._cuda.synchronize()
        return taken

    def queued(self, prepare, call, keep, spin_seconds):
        """(seconds, copy of the output or None) of one call behind a wait that covers its launches."""
        start, end = self._event(), self._event()
        self._cuda.synchronize()
        self._cuda._sleep(int(spin_seconds * self._cycles_per_second))
        prepare()
        self.flush_cache()
        start.record()
        output = _settled(call())
        end.record()
        return self._finished(start, end, _copy(output) if keep else None)

    def plain(self, prepare, call, keep):
        """The same as KernelBench does it: nothing queued ahead, the cache as it is, so that launches count."""
        start, end = self._event(), self._event()
        prepare()
        self._cuda.synchronize()
        start.record()
        output = _settled(call())
        end.record()
        return self._finished(start, end, _copy(output) if keep else None)

    def _finished(self, start, end, kept):
        """(seconds, kept), with what went on beside the stream after all that was queued on it."""
        last = self._event()
        last.record()
        late = self._idle_since(last) - self._idle
        seconds = max(start.elapsed_time(end) * 1e-3, LEAST_SECONDS)
        return (seconds + late if late > max(LATE_SECONDS, seconds / 4) else seconds), kept

    def bytes_per_second(self):
        """Rate at which this GPU writes a block that no cache holds; the best of a few."""
        times = []
        for _ in range(8):
            start, end = self._event(), self._event()
            self.flush_cache()
            start.record()
            self.flush_cache()
            end.record()
            self._cuda.synchronize()
            times.append(start.elapsed_time(end) * 1e-3)
        return self._flush.numel() / max(min(times), 1e-9)

    def operations_per_second(self):
        """No GPU of this size makes more simple operations: 128 lanes a multiprocessor, at 3 GHz."""
        return self._cuda.get_device_properties().multi_processor_count * 128 * 3e9


def _settled(value):
    """A tensor of another class than torch's own may compute when it is first looked at: it is looked at here."""

    def settle(tensor):
        return tensor if type(tensor) in (torch.Tensor, torch.nn.Parameter) else tensor.clone()

    return layout.map_tensors(value, settle)


@plain_torch()
def _copy(value):
    return layout.map_tensors(value, lambda tensor: tensor.detach().clone())
