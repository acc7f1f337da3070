"""Attempts to use up the machine's memory by ways other than the heap, and what else is finite."""

import ctypes
import glob
import mmap
import os


def shared_anonymous_memory():
    while True:
        area = mmap.mmap(-1, 1 << 26, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
        for page in range(0, 1 << 26, 4096):
            area[page] = 1
        FORGED.setdefault("areas", []).append(area)


def memory_files():
    """Written, never mapped: no process looks large."""
    while True:
        fd = os.memfd_create("m")
        for _ in range(32):
            os.write(fd, bytes(1 << 20))


def memory_files_in_large_pages():
    while True:
        fd = os.memfd_create("m", 4)  # MFD_HUGETLB
        os.ftruncate(fd, 1 << 30)
        area = mmap.mmap(fd, 1 << 30)
        area[0] = 1


def private_memory_piece_by_piece():
    areas = []
    said = each(at_once=lambda: mmap.mmap(-1, 1 << 40, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000))
    try:
        while True:
            areas.append(mmap.mmap(-1, 1 << 24, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
            for page in range(0, 1 << 24, 4096):
                areas[-1][page] = 1
    except OSError as error:
        return f"{said}; {name_of(error)} after {len(areas) * 16} MiB"


def stacks_and_locks():
    return each(
        mlockall=lambda: call(151, 3),
        mlock=lambda: call(149, ctypes.addressof(ctypes.create_string_buffer(1 << 26)), 1 << 26),
        stack=lambda: __import__("resource").setrlimit(3, (1 << 40, 1 << 40)),
    )


def full_pipes():
    """Kernel memory in pipes: as many as there may be, each as large as it may be."""
    import fcntl

    pipes, filled = [], 0
    try:
        while True:
            ends = os.pipe()
            pipes.append(ends)
            try:
                fcntl.fcntl(ends[1], 1031, 1 << 20)  # F_SETPIPE_SZ
            except OSError:
                pass
            os.set_blocking(ends[1], False)
            try:
                while True:
                    filled += os.write(ends[1], bytes(1 << 16))
            except BlockingIOError:
                pass
    except OSError as error:
        for ends in pipes:
            os.close(ends[0])
            os.close(ends[1])
        return f"{name_of(error)} after {len(pipes)} pipes, {filled >> 20} MiB"


def socket_buffers():
    pairs, filled = [], 0
    try:
        while True:
            pair = socket.socketpair()
            pairs.append(pair)
            pair[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 28)
            pair[0].setblocking(False)
            try:
                while True:
                    filled += pair[0].send(bytes(1 << 16))
            except BlockingIOError:
                pass
    except OSError as error:
        for pair in pairs:
            pair[0].close()
            pair[1].close()
        return f"{name_of(error)} after {len(pairs)} pairs, {filled >> 20} MiB"


def page_cache():
    """Reads what there is on disk; file cache is charged to the reader and given back under pressure."""
    total, end = 0, time.monotonic() + 1.5
    for path in sorted(glob.glob("/usr/lib/x86_64-linux-gnu/*.so*")):
        with open(path, "rb") as file:
            while chunk := file.read(1 << 22):
                total += len(chunk)
                if time.monotonic() > end:
                    return f"{total >> 20} MiB read"
    return f"{total >> 20} MiB read"


def timers_and_watches():
    def many(action, most=100000):
        count = 0
        try:
            while count < most:
                action()
                count += 1
        except OSError as error:
            return f"{name_of(error)} after {count}"
        return f"no end after {count}"

    timer = ctypes.c_void_p()

    def make_timer():
        if LIBC.timer_create(1, None, ctypes.byref(timer)) != 0:
            raise OSError(ctypes.get_errno(), "timer_create")

    watch = LIBC.inotify_init()
    said = [many(make_timer), many(lambda: call(253)), many(lambda: call(291, 0)), many(lambda: os.eventfd(0))]
    LIBC.inotify_add_watch(watch, b"/tmp", 0xFFF)
    for fd in range(16, 1024):
        try:
            os.close(fd)
        except OSError:
            pass
    return said


def memory_of_many_processes():
    for _ in range(12):
        if os.fork() == 0:
            block = bytearray(os.urandom(1 << 20) * 128)
            time.sleep(1000)
            del block
    os.wait()
    time.sleep(1000)


def a_flood_of_timers():
    """As many timers as there may be, each due every nanosecond, and somebody who waits for all."""
    import select

    waiting, count = select.epoll(), 0
    every = ctypes.create_string_buffer(struct.pack("qqqq", 0, 1, 0, 1))
    try:
        while count < 5000:
            fd = call(283, 1, 0)
            call(286, fd, 0, every, 0)
            waiting.register(fd, select.EPOLLIN)
            count += 1
    except OSError:
        pass
    end, noticed = time.monotonic() + 1.5, 0
    while time.monotonic() < end:
        for fd, _ in waiting.poll(0):
            os.read(fd, 8)
            noticed += 1
    os.closerange(16, 6000)
    return f"{count} timers, noticed {noticed} times"


def signals_that_wait():
    """Queued signals count for the user, not for the job."""
    signal.pthread_sigmask(signal.SIG_BLOCK, range(34, 65))
    notice = ctypes.create_string_buffer(struct.pack("iii4xii", 40, 0, -1, os.getpid(), os.getuid()) + bytes(112))
    count = 0
    try:
        while count < 1 << 20:
            call(129, os.getpid(), 40, notice)
            count += 1
    except OSError as error:
        return f"{name_of(error)} after {count}"
    return f"no end after {count}"


def huge_arguments():
    """Programs whose arguments and surroundings fill the kernel's memory, many at once."""
    argument = "x" * ((128 << 10) - 16)
    said = []
    for pieces in (100, 15, 10):
        for _ in range(8):
            child = os.fork()
            if child == 0:
                try:
                    os.execve("/usr/bin/sleep", ["sleep", "0.2"], {f"V{n}": argument for n in range(pieces)})
                except OSError as error:
                    os._exit(error.errno)
        codes = {os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(8)}
        said.append(f"{pieces * 128} KiB: {sorted(codes)}")
    return said


def attributes_of_files():
    """Extended attributes are kept beside a file's bytes: not counted by the size of /tmp."""
    value, kept = bytes(60 << 10), 0
    end = time.monotonic() + 3
    try:
        for number in range(16000):
            path = f"/tmp/attribute-{number}"
            write(path, b"")
            for name in ("user.a", "user.b", "security.a", "trusted.a"):
                try:
                    os.setxattr(path, name, value)
                    kept += len(value)
                except OSError:
                    pass
            if time.monotonic() > end:
                break
    except OSError as error:
        return f"{name_of(error)} with {kept >> 20} MiB"
    finally:
        for path in glob.glob("/tmp/attribute-*"):
            os.unlink(path)
    return f"{kept >> 20} MiB"
