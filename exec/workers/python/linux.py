"""System calls that Python 3.11 has no function for: namespaces, mounts, capabilities, prctl."""

import ctypes
import os
import re

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000

MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REC = 0x4000
MS_PRIVATE = 1 << 18

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
SECCOMP_MODE_FILTER = 2

_HUGE = 2 << 20
_MADV_COLLAPSE = 25

_CAPABILITY_VERSION_3 = 0x20080522
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mount.argtypes = [
    ctypes.c_char_p,
    ctypes.c_char_p,
    ctypes.c_char_p,
    ctypes.c_ulong,
    ctypes.c_char_p,
]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4


def _check(result, action):
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{action}: {os.strerror(error)}")


def unshare(flags):
    _check(_libc.unshare(flags), "unshare")


def setns(fd, kind):
    _check(_libc.setns(fd, kind), "setns")


def mount(source, target, kind, flags, options=None):
    encoded = None if options is None else options.encode()
    kind = None if kind is None else kind.encode()
    result = _libc.mount(source.encode(), target.encode(), kind, flags, encoded)
    _check(result, f"mount {target}")


def prctl(option, a=0, b=0, c=0, d=0):
    _check(_libc.prctl(option, a, b, c, d), f"prctl {option}")


class _FilterProgram(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_void_p)]


def install_filter(program):
    """Refuses system calls from here on as the seccomp program (bytes, 8 a step) says; needs NO_NEW_PRIVS."""
    steps = ctypes.create_string_buffer(program, len(program))
    head = _FilterProgram(len(program) // 8, ctypes.cast(steps, ctypes.c_void_p))
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(head))


def use_huge_pages():
    """Puts this process's private memory into pages of 2 MiB as far as the kernel can, so that forks copy and free
    a fraction of the page tables (a third of what a short job takes). Where it can't, nothing happens."""
    with open("/proc/self/maps", encoding="ascii", errors="replace") as maps:
        lines = maps.read().splitlines()
    for line in lines:
        found = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw.p \S+ \S+ \S+\s*(\[heap\])?$", line)
        if found is None:
            continue
        start, end = int(found[1], 16), int(found[2], 16)
        start, end = (start + _HUGE - 1) // _HUGE * _HUGE, end // _HUGE * _HUGE
        if start < end:
            _libc.madvise(start, end - start, _MADV_COLLAPSE)


def drop_all_capabilities():
    """Empties every capability set of this thread, so that no later exec can bring one back."""
    for capability in range(64):
        if _libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break  # past the last one the kernel knows, or not allowed: NO_NEW_PRIVS covers it
    _libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    data = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable, twice 32 bits
    _check(_libc.capset(header, data), "capset")
    prctl(PR_SET_NO_NEW_PRIVS, 1)
