"""A warm worker: imports the runner once, then serves jobs that come through a socket.

Started by the supervisor as `python worker.py <socket fd> <isolation> <runner module>`, isolation
being "namespaces" (inside bubblewrap) or "none".
"""

import gc
import importlib
import os
import signal
import sys
import time

# The folder of this file, also under -I or a bare PYTHONPATH.
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import linux
import protocol
import zygote


def _enter_own_pid_namespace():
    """The zygote becomes the first process of a pid namespace that it owns.

    A pid namespace can be entered again only by its owner's capability, and the one bubblewrap made
    belongs to another user namespace. Returns in the child; the parent waits and passes on its end.
    """
    linux.unshare(linux.CLONE_NEWPID | linux.CLONE_NEWNS)
    child = os.fork()
    if child == 0:
        linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
        flags = linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
        linux.mount("proc", "/proc", "proc", flags)
        return
    os.closerange(3, 1024)
    _, status = os.waitpid(child, 0)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def main():
    socket_fd, isolation, runner_name = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    os.set_inheritable(socket_fd, False)
    namespaces = isolation == "namespaces"
    if namespaces:
        _enter_own_pid_namespace()
    else:
        linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
    linux.prctl(linux.PR_SET_DUMPABLE, 0)  # a candidate of the same user must not read us
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the supervisor's to handle
    connection = protocol.Connection(socket_fd)
    start = time.monotonic()
    gc.disable()  # a tenth of the time of importing torch is a search for garbage that is none
    runner = importlib.import_module(runner_name)
    warm_up = getattr(runner, "warm_up", None)
    if warm_up is not None:
        warm_up()
    gc.collect()
    gc.freeze()  # forks share the pages of what is here now
    gc.enable()
    linux.use_huge_pages()
    connection.write({"ready": True, "seconds": time.monotonic() - start})
    zygote.Zygote(connection, runner, namespaces).serve()


if __name__ == "__main__":
    main()
