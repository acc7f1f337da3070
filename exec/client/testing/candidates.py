"""Runs programs in processes of their own: a prepared zygote forks one for each, the test's process is the executor."""

import os
import shutil
import signal
import socket
import sys
import tempfile

_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(_HERE, "..", ".."), os.path.join(_HERE, "..", "..", "workers", "python")]

import torch

torch.set_num_threads(1)

DEADLINE = 120  # seconds for one program


class Zygote:
    """A child process that has called client.main.prepare(); it ends when its socket is closed."""

    def __init__(self):
        self._sock, child = socket.socketpair()
        self._pid = os.fork()
        if self._pid == 0:
            self._sock.close()
            _exit_after(lambda: _serve(child))
        child.close()
        _expect(self._sock.recv(1), b"r")

    def start(self):
        """(socket of the executor's end, pid of the candidate's process)."""
        ours, theirs = socket.socketpair()
        ours.settimeout(DEADLINE)
        socket.send_fds(self._sock, [b"f"], [theirs.fileno()])
        theirs.close()
        return ours, int.from_bytes(self._sock.recv(4), "little")

    def close(self):
        self._sock.close()
        os.waitpid(self._pid, 0)


def _expect(got, wanted):
    if got != wanted:
        raise RuntimeError("the zygote could not be prepared")


def _exit_after(function):
    """In a forked process: never returns into the test."""
    try:
        function()
    except BaseException:
        import traceback

        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _serve(sock):
    from client import main

    main.prepare()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    sock.sendall(b"r")
    while True:
        message, fds, _, _ = socket.recv_fds(sock, 1, 1)
        if not message:
            return
        pid = os.fork()
        if pid == 0:
            _exit_after(lambda: _candidate(main, socket.socket(fileno=fds[0])))
        os.close(fds[0])
        sock.sendall(pid.to_bytes(4, "little"))


def _candidate(main, sock):
    signal.alarm(DEADLINE)
    folder = tempfile.mkdtemp(prefix="tritonrl-client-")
    os.environ["TRITON_CACHE_DIR"] = os.path.join(folder, "cache")
    try:
        main.run(sock, folder)
        sys.stdout.flush()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(zygote, source, **options):
    """The served testing.fake_executor.Executor of one program."""
    from client.testing.fake_executor import Executor

    sock, _ = zygote.start()
    with sock:
        return Executor(sock, source, **options).serve()
