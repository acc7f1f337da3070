"""Attempts at other processes: signals, memory, descriptors, limits; and ways to outstay one's welcome."""

import ctypes
import os
import resource
import signal
import threading

PTRACE_ATTACH, PTRACE_SEIZE = 16, 0x4206


def _targets():
    """Everybody who would be worth it: the host's process outside, init, the parent, the first numbers."""
    return sorted({PARAM["sentinel"], PARAM["supervisor"], 1, os.getppid(), *range(2, 40)} - {os.getpid(), 0})


def signal_everybody():
    done = []
    for pid in _targets():
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP):
            try:
                os.kill(pid, number)
                done.append(pid)
            except OSError:
                pass
            try:
                os.killpg(pid, number)
            except OSError:
                pass
    return f"signals taken by {sorted(set(done))}"


def signal_by_descriptor():
    def send(pid):
        fd = os.pidfd_open(pid)
        signal.pidfd_send_signal(fd, signal.SIGKILL)

    def steal(pid):
        fd = os.pidfd_open(pid)
        return [call(438, fd, number, 0) for number in range(8)]

    pids = {"sentinel": PARAM["sentinel"], "supervisor": PARAM["supervisor"], "init": 1}
    actions = {f"kill {name}": lambda pid=pid: send(pid) for name, pid in pids.items()}
    actions.update({f"take {name}": lambda pid=pid: steal(pid) for name, pid in pids.items()})
    return each(**actions)


def signal_by_ownership():
    """Signals that the kernel sends in our name: to the owner of a descriptor."""
    import fcntl

    def own(pid):
        left, right = socket.socketpair()
        fcntl.fcntl(left, fcntl.F_SETOWN, pid)
        fcntl.fcntl(left, 10, signal.SIGKILL)  # F_SETSIG
        fcntl.fcntl(left, fcntl.F_SETFL, fcntl.fcntl(left, fcntl.F_GETFL) | os.O_ASYNC)
        right.send(b"x")

    return each(sentinel=lambda: own(PARAM["sentinel"]), supervisor=lambda: own(-PARAM["supervisor"]))


def trace_everybody():
    actions = {}
    for pid in _targets()[:4] + [PARAM["sentinel"]]:
        actions[f"attach {pid}"] = lambda pid=pid: call(101, PTRACE_ATTACH, pid, 0, 0)
        actions[f"seize {pid}"] = lambda pid=pid: call(101, PTRACE_SEIZE, pid, 0, 0)
    return each(**actions)


def write_memory_of_everybody():
    class Vector(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]

    data = ctypes.create_string_buffer(b"x" * 64)
    local = Vector(ctypes.addressof(data), 64)
    remote = Vector(PARAM["address"], 64)
    addresses = [ctypes.addressof(local), 1, ctypes.addressof(remote), 1, 0]
    actions = {}
    for pid in (1, PARAM["supervisor"], PARAM["sentinel"]):
        actions[f"read {pid}"] = lambda pid=pid: call(310, pid, *addresses)
        actions[f"write {pid}"] = lambda pid=pid: call(311, pid, *addresses)
    return each(**actions)


def read_proc_of_everybody():
    """Environment, memory, open files of each process in sight."""
    said = []
    pids = [name for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
    for pid in [*pids, str(PARAM["sentinel"]), str(PARAM["supervisor"])]:
        for name in ("environ", "mem", "maps", "fd/0", "fd/2", "fd/3", "root", "cwd", "ns/mnt", "stack", "io"):
            try:
                said.append(f"{pid}/{name}: {read(f'/proc/{pid}/{name}', 256)}")
            except OSError as error:
                said.append(f"{pid}/{name} {name_of(error)}")
    return ", ".join(said)


def write_to_the_workers_descriptors():
    """The first process of the job's namespace was started by the zygote."""
    said = []
    for pid in (1, os.getppid()):
        for number in range(8):
            try:
                write(f"/proc/{pid}/fd/{number}", PARAM["mark"].encode())
                said.append(f"{pid}/{number} DONE")
            except OSError as error:
                said.append(name_of(error))
    return sorted(set(said))


def stop_itself():
    os.kill(os.getpid(), signal.SIGSTOP)


def stop_in_a_child_that_holds_everything():
    child = os.fork()
    if child == 0:
        os.setsid()
        os.kill(os.getpid(), signal.SIGSTOP)
    os.waitpid(child, 0)


def thread_bomb():
    count = 0
    try:
        while True:
            threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
            count += 1
    except RuntimeError as error:
        return f"{error} after {count} threads"


def shell_fork_bomb():
    os.system("bomb() { bomb | bomb & }; bomb; sleep 100")


def timer_signal():
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    while True:
        pass


def timers_without_end():
    """Timers that fire for ever and threads that take no signal, then sleep."""
    for number in range(1, 32):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.001, 0.001)
    signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001)
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
    while True:
        time.sleep(1)


def own_signal_stack_and_overflow():
    """A crash whose handler runs on a stack of its own and goes on for ever."""

    class Stack(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t)]

    memory = ctypes.create_string_buffer(1 << 16)
    stack = Stack(ctypes.addressof(memory), 0, 1 << 16)
    LIBC.sigaltstack(ctypes.byref(stack), None)
    handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda number: time.sleep(1000))
    LIBC.signal(signal.SIGSEGV, handler)
    ctypes.string_at(8)


def recursion_without_limit():
    sys.setrecursionlimit(1 << 30)

    class Deep:
        def __repr__(self):
            return repr(self)

    return repr(Deep())


def become_another_program():
    os.execv("/usr/bin/python3", ["python3", "-c", f"print('escape: correct'); open('/tmp/x', 'w')  # {PARAM['mark']}"])


def raise_the_limits():
    infinity = resource.RLIM_INFINITY
    names = [name for name in dir(resource) if name.startswith("RLIMIT_")]
    actions = {
        name: lambda name=name: resource.setrlimit(getattr(resource, name), (infinity, infinity)) for name in names
    }
    for pid in (1, PARAM["sentinel"], PARAM["supervisor"]):
        actions[f"of {pid}"] = lambda pid=pid: resource.prlimit(pid, resource.RLIMIT_NOFILE, (0, 0))
    return each(**actions)


def not_the_first_to_be_killed():
    """Memory that belongs to no process, by a process that looks small; the zygote looks larger then."""
    actions = {
        "own": lambda: write("/proc/self/oom_score_adj", b"-1000"),
        "less": lambda: write("/proc/self/oom_score_adj", b"0"),
        "init": lambda: write("/proc/1/oom_score_adj", b"1000"),
    }
    print(each(**actions), flush=True)
    program = (
        "import os\n"
        "for n in range(1000):\n"
        "    fd = os.memfd_create('m')\n"
        "    for _ in range(32): os.write(fd, bytes(1 << 20))\n"
    )
    os.execv("/usr/bin/python3", ["python3", "-c", program])


def close_every_descriptor():
    os.closerange(0, 1 << 16)


def a_core_dump():
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except (OSError, ValueError) as error:
        print(error, flush=True)
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a limit of 0 would start a core handler
        print("limit of 0 DONE", flush=True)
    except (OSError, ValueError) as error:
        print(error, flush=True)
    os.chdir("/dev/shm")
    os.abort()


def many_terminals():
    count = 0
    try:
        while count < 5000:
            os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY)
            count += 1
    except OSError as error:
        return f"{name_of(error)} after {count}"
    return f"DONE {count}"


def signal_by_other_calls():
    """tkill, tgkill, and signals with a sender's name of one's own choice."""
    import ctypes

    forged = ctypes.create_string_buffer(struct.pack("iii4xii", signal.SIGKILL, 0, -1, 1, 0) + bytes(112))
    done = []
    for pid in _targets():
        for number in (signal.SIGKILL, signal.SIGSTOP):
            for name, arguments in {
                "tkill": (200, pid, number),
                "tgkill": (234, pid, pid, number),
                "sigqueue": (129, pid, number, forged),
                "tgsigqueue": (297, pid, pid, number, forged),
            }.items():
                try:
                    call(*arguments)
                    done.append(f"{name} {pid}")
                except OSError:
                    pass
    return f"signals taken: {done}"


def names_that_confuse_proc():
    """Whoever reads /proc/N/stat finds a name with brackets, spaces, a line's end and false numbers in it."""
    for name in (b") R 1 1 (", b"x) Z 0\n1 (y", b"(((((((((((((((", b"\xff\xfe) S 2"):
        if os.fork() == 0:
            LIBC.prctl(15, name)
            if os.fork() == 0:
                LIBC.prctl(15, name)
            os.setsid()
            time.sleep(1000)
    return "named"


def a_program_from_memory():
    """A program that lies in no file system, with what Python closes on exec kept open."""
    fd = os.memfd_create("program", 0)
    with open("/usr/bin/python3", "rb") as source:
        os.write(fd, source.read())
    for number in range(3, 16):
        try:
            os.set_inheritable(number, True)
        except OSError:
            pass
    program = (
        "import os\n"
        "for fd in range(3, 16):\n"
        "  try: os.write(fd, b'{\"result\": {\"outcome\": \"ran\"}}\\n')\n"
        "  except OSError: pass\n"
    )
    os.execv(f"/proc/self/fd/{fd}", ["python3", "-c", program])


def a_parent_that_waits_for_its_copy():
    """vfork: the parent cannot be woken until the child, which sleeps, runs another program."""
    call(58)
    time.sleep(1000)


def a_thousand_zombies():
    count = 0
    try:
        while count < 1000:
            if os.fork() == 0:
                os._exit(0)
            count += 1
    except OSError as error:
        return f"{name_of(error)} after {count}"
    return f"DONE {count}"


def first_in_every_queue():
    """Scheduling classes, deadlines, priorities of input and output, processors: of this process and of others."""
    import ctypes

    deadline = struct.pack("IIQiIQQQ", 48, 6, 0, 0, 0, 9_000_000, 10_000_000, 10_000_000)
    fifo = struct.pack("IIQiIQQQ", 48, 1, 0, 0, 99, 0, 0, 0)
    actions = {"autogroup": lambda: write("/proc/self/autogroup", b"-20")}
    for name, pid in {"own": 0, "init": 1, "sentinel": PARAM["sentinel"], "supervisor": PARAM["supervisor"]}.items():
        actions[f"deadline {name}"] = lambda pid=pid: call(314, pid, ctypes.create_string_buffer(deadline), 0)
        actions[f"fifo {name}"] = lambda pid=pid: call(314, pid, ctypes.create_string_buffer(fifo), 0)
        actions[f"round robin {name}"] = lambda pid=pid: os.sched_setscheduler(pid, os.SCHED_RR, os.sched_param(99))
        actions[f"input {name}"] = lambda pid=pid: call(251, 1, pid, 1 << 13)
        if pid != 0:
            actions[f"idle {name}"] = lambda pid=pid: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))
            actions[f"affinity {name}"] = lambda pid=pid: os.sched_setaffinity(pid, {0})
            actions[f"nice {name}"] = lambda pid=pid: os.setpriority(os.PRIO_PROCESS, pid, 19)
    return each(**actions)
