"""Takes the time of single calls on a GPU with CUDA events.

One queued call is  [wait] [inputs] [flush of the L2 cache] [start] forward [end]  in the order of the current stream.
The wait is as long as the host needs to queue all of it, so that gaps between launches do not count.
"""

import time

import torch

import sources

FLUSH_BYTES = 256 << 20  # written before each timed call: more than any L2 cache
LEAST_SECONDS = 1e-7  # two events with nothing between them can have the same time
_CALIBRATION = 2_000_000  # cycles


class CudaClock:
    """`cuda` is torch.cuda, or a stand-in for tests."""

    def __init__(self, cuda=torch.cuda, device="cuda"):
        self._cuda = cuda
        self._device = device
        self._flush = None
        self._cycles_per_second = self._calibrate()

    def flush_cache(self):
        if self._flush is None:
            size = FLUSH_BYTES if self._device == "cuda" else 64
            self._flush = torch.empty(size, dtype=torch.int8, device=self._device)
        self._flush.zero_()

    def rest(self):
        """Holds no memory until the next call is timed."""
        self._flush = None

    def _event(self):
        return self._cuda.Event(enable_timing=True)

    def _wait(self, seconds):
        self._cuda._sleep(int(seconds * self._cycles_per_second))

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

    def seed(self, seed):
        sources.seed_everything(seed)

    def enqueue_seconds(self, prepare, call):
        """What the host needs to queue one call."""
        self._cuda.synchronize()
        self._wait(2e-3)
        start = time.perf_counter()
        prepare()
        self.flush_cache()
        self._event().record()
        call()
        taken = time.perf_counter() - start
        self._cuda.synchronize()
        return taken

    def queued(self, prepare, call, spin_seconds):
        """Seconds of one call behind a wait that covers its launches."""
        start, end = self._event(), self._event()
        self._cuda.synchronize()
        self._wait(spin_seconds)
        prepare()
        self.flush_cache()
        return self._timed(start, call, end)

    def plain(self, prepare, call):
        """The same as KernelBench does it: nothing queued ahead, the cache as it is, so that launches count."""
        start, end = self._event(), self._event()
        prepare()
        self._cuda.synchronize()
        return self._timed(start, call, end)

    def _timed(self, start, call, end):
        start.record()
        call()
        end.record()
        self._cuda.synchronize()
        return max(start.elapsed_time(end) * 1e-3, LEAST_SECONDS)

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
