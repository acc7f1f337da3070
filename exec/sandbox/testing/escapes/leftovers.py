"""Attempts to reach the next candidate: caches, hooks, memory and settings that are left behind."""

import ctypes
import os
import signal


def poison_the_triton_cache():
    """Every compiled file becomes one of another kernel's; the next candidate compiles this very kernel."""
    count = 0
    for root in {os.environ["TRITON_CACHE_DIR"], "/tmp", os.path.expanduser("~/.triton"), "/dev/shm"}:
        for folder, _, names in os.walk(root):
            for name in names:
                try:
                    write(os.path.join(folder, name), b"\x7fELF garbage" * 10)
                    count += 1
                except OSError:
                    pass
    return f"{count} files overwritten"


def leave_python_hooks():
    places = ["/tmp", "/dev/shm", os.path.expanduser("~"), os.path.expanduser("~/.local/lib/python3.11/site-packages")]
    text = f"open('/tmp/{PARAM['mark']}', 'w')\nraise SystemExit(0)\n".encode()
    for place in places:
        os.makedirs(place, exist_ok=True)
        for name in ("sitecustomize.py", "usercustomize.py", "torch.py", "triton.py", "json.py", "client.py"):
            write(os.path.join(place, name), text)
    return each(
        system=lambda: write("/usr/lib/python3/dist-packages/sitecustomize.py", text),
        etc=lambda: write("/etc/python3.11/sitecustomize.py", text),
    )


def leave_a_preload():
    os.environ["LD_PRELOAD"] = "/tmp/evil.so"
    os.environ["PYTHONSTARTUP"] = "/tmp/evil.py"
    os.environ["TRITON_PTXAS_PATH"] = "/tmp/evil"
    write("/tmp/evil.so", b"\x7fELF")
    LIBC.setenv(b"LD_PRELOAD", b"/tmp/evil.so", 1)
    return each(etc=lambda: write("/etc/ld.so.preload", b"/tmp/evil.so"), cache=lambda: write("/etc/ld.so.cache"))


def break_every_module():
    """In this process everything is in reach; nothing of it may reach the zygote."""
    ours = ("client.job", "client.main", "client.session", "client.wire")
    for name in (*ours, "job_process", "linux", "limits", "protocol", "zygote", "json"):
        module = sys.modules.get(name)
        for attribute in list(vars(module)) if module else ():
            if not attribute.startswith("__") and callable(getattr(module, attribute)):
                setattr(module, attribute, None)
    os._exit(0)


def scribble_on_shared_mappings():
    """Memory that a fork shares instead of copying would be a way into the zygote."""
    count = 0
    with open("/proc/self/maps", encoding="ascii", errors="replace") as maps:
        for line in maps:
            area, rights = line.split()[:2]
            if rights.startswith("rw") and rights.endswith("s"):
                begin, end = (int(part, 16) for part in area.split("-"))
                ctypes.memset(begin, 0xFF, end - begin)
                count += 1
    return f"{count} shared mappings overwritten"


def leave_shared_memory():
    def posix_queue():
        fd = LIBC.mq_open(b"/" + PARAM["mark"].encode(), os.O_CREAT | os.O_RDWR, 0o666, None)
        if fd < 0:
            raise OSError(ctypes.get_errno(), "mq_open")
        return fd

    write("/dev/shm/" + PARAM["mark"])
    write("/dev/shm/sem." + PARAM["mark"])
    return each(
        segment=lambda: call(29, PARAM["ipc_key"], 1 << 20, 0o1666),
        semaphore=lambda: call(64, PARAM["ipc_key"], 4, 0o1666),
        queue=lambda: call(68, PARAM["ipc_key"], 0o1666),
        posix_queue=posix_queue,
        own_space=lambda: call(29, 0, 1 << 20, 0o1666),
    )


def leave_settings():
    """Affinity, priority, limits, masks and handlers of this process, for whoever is forked next."""
    import resource

    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
    for number in range(1, 32):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_IGN)
    os.umask(0o777)
    os.nice(10)
    resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
    os.environ.clear()
    return "set"


def raise_the_priority():
    return each(
        nice=lambda: os.nice(-10),
        others=lambda: os.setpriority(os.PRIO_USER, os.getuid(), 19),
        init=lambda: os.setpriority(os.PRIO_PROCESS, 1, 19),
        real_time=lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50)),
        sentinel=lambda: os.sched_setaffinity(PARAM["sentinel"], {0}),
        io=lambda: call(251, 1, 0, (1 << 13) | 0),
    )


def leave_marked_daemons():
    """Daemons of every make: own session, adopted, ignoring all signals, starting each other again."""
    for kind in range(3):
        if os.fork() == 0:
            os.setsid()
            for number in range(1, 32):
                if number not in (signal.SIGKILL, signal.SIGSTOP):
                    signal.signal(number, signal.SIG_IGN)
            if os.fork() == 0:
                while True:
                    if kind == 2:
                        os.execv("/bin/sh", ["sh", "-c", f"while :; do sleep 1; done; : {PARAM['mark']}"])
                    time.sleep(0.05)
                    if kind == 1 and os.fork() != 0:
                        os._exit(0)
            os._exit(0)
    return "daemons left"


def surroundings():
    """What the next candidate finds; equal before and after every attempt."""
    import resource

    limits = [resource.getrlimit(n) for n in range(16) if n != resource.RLIMIT_DATA]
    handlers = [str(signal.getsignal(n)) for n in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM, signal.SIGXCPU)]
    umask = os.umask(0o22)
    facts = [
        sorted(os.listdir("/tmp")),
        os.listdir("/dev/shm"),
        sorted(os.sched_getaffinity(0)),
        os.getpriority(os.PRIO_PROCESS, 0),
        sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        handlers,
        umask,
        limits,
        os.uname().nodename,
        sorted(os.environ),
        read("/proc/sysvipc/shm"),
        sum(name.isdigit() for name in os.listdir("/proc")),
    ]
    return facts
