"""Clocks and other users of a GPU from NVIDIA's management library, where it can be loaded; for the process that
times the reference."""

import ctypes

_CLOCK_SM = 1
# Reasons that hold clocks down: power cap, hardware slowdown, thermal (software and hardware), power brake.
_THROTTLED = 0x4 | 0x8 | 0x20 | 0x40 | 0x80
_MOST_PROCESSES = 256
_INSUFFICIENT_SIZE = 7


class _ProcessInfo(ctypes.Structure):
    _fields_ = [
        ("pid", ctypes.c_uint),
        ("used_memory", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


class Watch:
    """`read()` gives {"sm_mhz", "other_programs", "throttled"}; what cannot be read is 0 or False."""

    def __init__(self, library, handle, own_programs):
        self._library = library
        self._handle = handle
        self._own = own_programs

    def read(self):
        clock = ctypes.c_uint()
        if self._library.nvmlDeviceGetClockInfo(self._handle, _CLOCK_SM, ctypes.byref(clock)) != 0:
            clock.value = 0
        reasons = ctypes.c_ulonglong()
        if self._library.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle, ctypes.byref(reasons)) != 0:
            reasons.value = 0
        return {
            "sm_mhz": clock.value,
            "other_programs": self._others(),
            "throttled": bool(reasons.value & _THROTTLED),
        }

    def _others(self):
        count = ctypes.c_uint(_MOST_PROCESSES)
        infos = (_ProcessInfo * _MOST_PROCESSES)()
        code = self._library.nvmlDeviceGetComputeRunningProcesses_v3(self._handle, ctypes.byref(count), infos)
        if code not in (0, _INSUFFICIENT_SIZE):
            return 0
        return max(0, count.value - self._own)


def open_watch(uuid, own_programs=2, load=ctypes.CDLL):
    """A Watch of the GPU with that UUID ("GPU-..."), or None where the library cannot be used. `own_programs` of those
    that use the GPU are reference and candidate."""
    try:
        library = load("libnvidia-ml.so.1")
        if library.nvmlInit_v2() != 0:
            return None
        handle = ctypes.c_void_p()
        if library.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(handle)) != 0:
            return None
        return Watch(library, handle, own_programs)
    except (OSError, AttributeError):
        return None
