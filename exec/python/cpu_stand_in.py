"""Takes the place of torch.cuda in a CudaClock where there is no GPU: what it times is the host's own work. For trying
out the talk with a supervisor; nobody is to believe the figures."""

import os
import time
import types


class _Event:
    def __init__(self, enable_timing=True):
        self._at = 0.0

    def record(self):
        self._at = time.perf_counter()

    def elapsed_time(self, other):
        return (other._at - self._at) * 1e3


class CpuStandIn:
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
