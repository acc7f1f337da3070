"""What one job may use. The supervisor sends every value; the wall clock is held over there."""

import dataclasses
import resource


_SIGNALS = 1024  # that wait, of all processes of the user together


@dataclasses.dataclass(frozen=True)
class Limits:
    cpu_seconds: float
    memory_bytes: int
    processes: int
    output_bytes: int
    file_bytes: int
    tmp_bytes: int
    shm_bytes: int
    open_files: int
    # RLIMIT_DATA and RLIMIT_NPROC are of no use in some set-ups: CUDA reserves huge ranges, and
    # without a user namespace all processes of the same user count.
    limit_data: bool
    limit_nproc: bool


def parse(fields):
    """Limits from a frame; a missing or unknown field raises TypeError."""
    return Limits(**fields)


def _data_bytes():
    """Private writable memory of this process as RLIMIT_DATA counts it."""
    with open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmData:"):
                return int(line.split()[1]) * 1024
    return 0


def _set(kind, value):
    _, hard = resource.getrlimit(kind)
    value = int(value)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(kind, (value, value))


def apply(limits):
    """Sets the rlimits of this process; all it starts inherits them and none can raise them."""
    # With 1 the kernel neither writes a core file nor starts the host's core handler, which it does at 0.
    _set(resource.RLIMIT_CORE, 1)
    _set(resource.RLIMIT_FSIZE, limits.file_bytes)
    _set(resource.RLIMIT_NOFILE, limits.open_files)
    _set(resource.RLIMIT_MEMLOCK, 8 << 20 if limits.limit_data else resource.RLIM_INFINITY)
    # Queued signals, timers and message queues take memory of the kernel that is no process's.
    _set(resource.RLIMIT_SIGPENDING, _SIGNALS)
    _set(resource.RLIMIT_MSGQUEUE, 0)
    for kind in (resource.RLIMIT_NICE, resource.RLIMIT_RTPRIO):
        _set(kind, 0)
    cpu = max(1, int(limits.cpu_seconds + 0.999))
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    # SIGXCPU at the soft limit says why; SIGKILL a second later ends those who ignore it.
    if hard == resource.RLIM_INFINITY or hard > cpu:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
    if limits.limit_data:
        _set(resource.RLIMIT_DATA, _data_bytes() + limits.memory_bytes)
    if limits.limit_nproc:
        # Beside the job's: bubblewrap, launcher, zygote and the job namespace's first process.
        _set(resource.RLIMIT_NPROC, limits.processes + 4)
