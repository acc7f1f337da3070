"""The life of one job inside its own process, from the fork to os._exit."""

import faulthandler
import fcntl
import json
import os
import signal
import sys

import limits as limits_module
import linux
from channel import for_json

RESULT_FD = 3  # above it a job keeps those that the supervisor passed for it, and no other
MAX_RESULT = 1 << 20
# The seccomp program that the supervisor made (exec/sandbox/seccomp_policy.h), taken before any job sees the environment.
_JOB_FILTER = bytes.fromhex(os.environ.pop("TRITONRL_JOB_FILTER", ""))


class Isolation:
    """How jobs are kept apart from the worker and from each other."""

    def __init__(self, namespaces, work_dir):
        self.namespaces = namespaces  # False: nothing but rlimits and a folder (sandbox "none")
        self.work_dir = work_dir


def _private_mounts(limits):
    """Fresh /tmp, /dev/shm and /proc that end with the job."""
    linux.unshare(linux.CLONE_NEWNS | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS)
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
    flags = linux.MS_NOSUID | linux.MS_NODEV
    options = "mode=0700,nr_inodes=16384,size="
    linux.mount("tmpfs", "/tmp", "tmpfs", flags, f"{options}{limits.tmp_bytes}")
    linux.mount("tmpfs", "/dev/shm", "tmpfs", flags, f"{options}{limits.shm_bytes}")
    linux.mount("proc", "/proc", "proc", flags | linux.MS_NOEXEC)


def _first_to_be_killed():
    """When the worker's memory is full, the kernel is to end the job, not the zygote."""
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("1000")
    except OSError:
        pass  # no such file in some containers; the job is the largest process anyway


def _wire_descriptors(result_fd, out_fd, passed):
    """stdin: nothing; stdout and stderr: the capture pipe; RESULT_FD: the result; then those of `passed` (number by
    name), no other. Returns their new numbers by name."""
    # Sources are first moved out of the way of the numbers they are to get.
    result_fd = fcntl.fcntl(result_fd, fcntl.F_DUPFD, 64)
    out_fd = fcntl.fcntl(out_fd, fcntl.F_DUPFD, 64)
    moved = {name: fcntl.fcntl(fd, fcntl.F_DUPFD, 64) for name, fd in passed.items()}
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    os.dup2(out_fd, 1)
    os.dup2(out_fd, 2)
    os.dup2(result_fd, RESULT_FD, inheritable=False)
    numbers = {}
    for number, (name, fd) in enumerate(moved.items(), RESULT_FD + 1):
        numbers[name] = os.dup2(fd, number, inheritable=False)
    os.closerange(RESULT_FD + 1 + len(numbers), os.sysconf("SC_OPEN_MAX"))
    return numbers


def _send(message):
    data = memoryview(json.dumps(message, allow_nan=False).encode() + b"\n")
    while data:
        data = data[os.write(RESULT_FD, data) :]


def _flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass


def _filter_system_calls(isolation):
    """Last of all: what confines a job needs calls that the job must not make."""
    if _JOB_FILTER:
        linux.install_filter(_JOB_FILTER)
    elif isolation.namespaces:
        raise RuntimeError("the supervisor gave no system call filter")


def _enter(isolation, limits, job, result_fd, out_fd, passed):
    """Confines this process; the numbers that the passed descriptors have now."""
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    linux.prctl(linux.PR_SET_DUMPABLE, 1)  # the zygote is not; /proc/self belongs to root then
    _first_to_be_killed()
    numbers = _wire_descriptors(result_fd, out_fd, passed)
    if isolation.namespaces:
        _private_mounts(limits)
    else:
        linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
    os.chdir(isolation.work_dir)
    for name in ("HOME", "TMPDIR"):
        os.environ[name] = isolation.work_dir
    os.environ["TRITON_CACHE_DIR"] = os.path.join(isolation.work_dir, "triton_cache")
    limits_module.apply(limits)
    linux.drop_all_capabilities()
    faulthandler.enable(file=2, all_threads=False)
    if job.get("role", "runner") != "runner":
        # With sandbox "none" a candidate may run as the same user at the same time.
        linux.prctl(linux.PR_SET_DUMPABLE, 0)
    _filter_system_calls(isolation)
    return numbers


def run(isolation, limits, job, runner, result_fd, out_fd, passed):
    """Never returns. Exit status 0 after exactly one result; anything else is not a result."""
    status = 70
    try:
        numbers = _enter(isolation, limits, job, result_fd, out_fd, passed)
    except BaseException as error:  # our fault, said as such
        try:
            os.write(RESULT_FD, json.dumps({"setup_error": str(error)}).encode() + b"\n")
        finally:
            os._exit(71)
    try:
        job = dict(job, work_dir=isolation.work_dir, fds=numbers)
        result = runner.run_job(job, lambda phase: _send({"phase": str(phase)}))
        _flush()
        _send({"result": for_json(result)})
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except BaseException:
        # Runners catch what programs raise; this is for what slipped through.
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(status & 0xFF)
