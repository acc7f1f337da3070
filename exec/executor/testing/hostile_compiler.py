"""In the place of compile_worker.py: what a compiler tries that a kernel has taken over. The answer is what came of it.

A request names a function of this file under "try" and has its argument under "with".
"""

import ctypes
import errno
import fcntl
import glob
import json
import os
import resource
import signal
import socket
import sys
import time

LIBC = ctypes.CDLL(None, use_errno=True)
PTRACE_ATTACH = ctypes.c_long(16)
PROCESS_VM_READV = ctypes.c_long(310)
LEFT = []  # by the request before


def _outcome(action):
    """The error's name, or that there was none."""
    try:
        action()
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))
    return "done"


def _call(function, *arguments):
    if function(*arguments) == -1:
        raise OSError(ctypes.get_errno(), "call")


def _write(path):
    with open(path, "wb") as file:
        file.write(b"x")


def read(paths):
    return {path: _outcome(lambda path=path: open(path, "rb").read()) for path in paths}


def listing(paths):
    return {path: _outcome(lambda path=path: os.listdir(path)) for path in paths}


def write(folders):
    return {folder: _outcome(lambda folder=folder: _write(folder + "/hostile")) for folder in folders}


def packages(_):
    """Folders of what compiles the next kernel."""
    return {path: _outcome(lambda path=path: _write(path + "/hostile")) for path in sys.path if os.path.isdir(path)}


def connect(_):
    families = (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_NETLINK, socket.AF_PACKET, socket.AF_VSOCK)
    return {kind.name: _outcome(lambda kind=kind: socket.socket(kind, socket.SOCK_DGRAM)) for kind in families}


def processes(_):
    """The command lines that /proc shows."""
    lines = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        with open(path, encoding="utf-8", errors="replace") as file:
            lines.append(file.read().replace("\0", " "))
    return lines


def trace(_):
    """The first process of the namespace is one that a job could see."""
    buffer = ctypes.create_string_buffer(8)
    part = (ctypes.c_ulong * 2)(ctypes.addressof(buffer), 8)
    zero, one = ctypes.c_long(0), ctypes.c_long(1)
    return {
        "attach": _outcome(lambda: _call(LIBC.ptrace, PTRACE_ATTACH, one, zero, zero)),
        "memory": _outcome(lambda: _call(LIBC.syscall, PROCESS_VM_READV, one, part, one, part, one, zero)),
        "file": _outcome(lambda: open("/proc/1/mem", "rb")),
    }


def kill_all(_):
    return _outcome(lambda: os.kill(-1, signal.SIGKILL))


def descriptors(_):
    found = []
    for fd in range(1024):
        try:
            fcntl.fcntl(fd, fcntl.F_GETFD)
            found.append(fd)
        except OSError:
            pass
    return found


def devices(_):
    return sorted(os.listdir("/dev"))


def environment(_):
    return dict(os.environ)


def limits(_):
    return {
        "core": resource.getrlimit(resource.RLIMIT_CORE)[1],
        "cpu": resource.getrlimit(resource.RLIMIT_CPU)[1],
        "file": resource.getrlimit(resource.RLIMIT_FSIZE)[1],
        "data": resource.getrlimit(resource.RLIMIT_DATA)[1],
        "processes": resource.getrlimit(resource.RLIMIT_NPROC)[1],
    }


def status(_):
    with open("/proc/self/status", encoding="ascii") as file:
        return {name: value.strip() for name, _, value in (line.partition(":") for line in file)}


def leave(_):
    _write("/tmp/left")
    _write("/dev/shm/left")
    LEFT.append(1)
    if os.fork() == 0:
        while True:
            time.sleep(1)
    return "left"


def look(_):
    return [os.path.exists("/tmp/left"), os.path.exists("/dev/shm/left"), len(LEFT), len(processes(None))]


def wait(_):
    while True:
        time.sleep(1)


def spin(_):
    while True:
        pass


def crash(_):
    os.kill(os.getpid(), signal.SIGSEGV)


def say(text):
    return text


def run_job(job, _report):
    fd = job["fds"]["answer"]
    os.lseek(fd, 0, os.SEEK_SET)
    request = job["request"]
    if request["try"] == "huge":
        os.ftruncate(fd, 1 << 40)
    if request["try"] == "silent":
        return
    os.write(fd, json.dumps({"said": globals()[request["try"]](request["with"])}).encode())
