"""Timed calls on a simulated GPU: streams are times at which they will be done, the host has a clock of its own."""

import types
import unittest

import testing  # first: it finds the others
import cuda_clock
import nvml

HOST = 5e-6  # what one call of the driver takes the host


class Gpu:
    """Stands for torch.cuda."""

    def __init__(self):
        self.now = 0.0  # the host's clock
        self.streams = {"current": 0.0}
        gpu = self

        class Event:
            def __init__(self, enable_timing):
                self.at = None

            def record(self):
                gpu.now += HOST
                gpu.streams["current"] = self.at = max(gpu.streams["current"], gpu.now)

            def elapsed_time(self, other):
                return (other.at - self.at) * 1e3

        self.Event = Event

    def work(self, seconds, stream="current", joins=False):
        """A kernel. On another stream it starts when the host says so, whatever the current stream does."""
        self.now += HOST
        begin = max(self.streams.get(stream, 0.0), self.now)
        if joins:
            begin = max(begin, self.streams["current"])
        self.streams[stream] = begin + seconds
        if joins:
            self.streams["current"] = self.streams[stream]

    def _sleep(self, cycles):
        self.work(cycles / 1e9)

    def synchronize(self):
        self.now = max(self.now, *self.streams.values()) + HOST

    def get_device_properties(self):
        return types.SimpleNamespace(multi_processor_count=132)


class ClockTest(unittest.TestCase):
    def setUp(self):
        self.gpu = Gpu()
        self.clock = cuda_clock.CudaClock(self.gpu, "cpu")

    def queued(self, call, spin=1e-3):
        return self.clock.queued(lambda: None, call, spin)

    def test_work_counts_and_launches_behind_a_wait_do_not(self):
        def call():
            for _ in range(10):
                self.gpu.work(20e-6)

        self.assertAlmostEqual(self.queued(call), 200e-6, delta=1e-9)
        self.assertGreater(self.clock.plain(lambda: None, lambda: self.gpu.work(1e-6)), 1e-6 + HOST / 2)

    def test_a_host_slower_than_the_wait_shows(self):
        def call():
            self.gpu.now += 5e-3
            self.gpu.work(20e-6)

        self.assertGreater(self.queued(call), 4e-3)
        self.assertLess(self.queued(call, spin=6e-3), 30e-6)

    def test_a_side_stream_that_is_joined_counts_once(self):
        self.assertAlmostEqual(self.queued(lambda: self.gpu.work(3e-3, stream="side", joins=True)), 3e-3, delta=1e-5)

    def test_enqueue_seconds(self):
        def call():
            end = cuda_clock.time.perf_counter() + 2e-3
            while cuda_clock.time.perf_counter() < end:
                pass

        self.assertGreaterEqual(self.clock.enqueue_seconds(lambda: None, call), 2e-3)


class NvmlTest(unittest.TestCase):
    def library(self, processes=3, reasons=0x4):
        def clock(handle, kind, value):
            value._obj.value = 1980
            return 0

        def throttle(handle, value):
            value._obj.value = reasons
            return 0

        def running(handle, count, infos):
            count._obj.value = processes
            return 0

        return types.SimpleNamespace(
            nvmlInit_v2=lambda: 0,
            nvmlDeviceGetHandleByUUID=lambda uuid, handle: 0 if uuid == b"GPU-1" else 2,
            nvmlDeviceGetClockInfo=clock,
            nvmlDeviceGetCurrentClocksThrottleReasons=throttle,
            nvmlDeviceGetComputeRunningProcesses_v3=running,
        )

    def test_reads(self):
        watch = nvml.open_watch("GPU-1", load=lambda name: self.library())
        self.assertEqual(watch.read(), {"sm_mhz": 1980, "other_programs": 1, "throttled": True})
        watch = nvml.open_watch("GPU-1", load=lambda name: self.library(2, 0x1))
        self.assertEqual(watch.read(), {"sm_mhz": 1980, "other_programs": 0, "throttled": False})

    def test_where_it_cannot_be_used(self):
        def missing(name):
            raise OSError("no such library")

        self.assertIsNone(nvml.open_watch("GPU-1", load=missing))
        self.assertIsNone(nvml.open_watch("GPU-2", load=lambda name: self.library()))
        self.assertIsNone(nvml.open_watch("GPU-1", load=lambda name: types.SimpleNamespace()))


if __name__ == "__main__":
    unittest.main()
