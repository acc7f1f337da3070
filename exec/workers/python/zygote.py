"""Forks a fresh process for each job, watches it, and ends it with all it started.

The zygote has imported torch and Triton; it never runs a candidate's code and reads nothing a
candidate wrote except bytes, which it passes on. It holds CAP_SYS_ADMIN inside its sandbox to give
each job a pid, mount and IPC namespace; the job drops all capabilities before anything else runs.
"""

import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

import job_process
import limits as limits_module
import linux

OUTPUT_KEPT = 4096  # bytes kept of the beginning and of the end of what a job prints
MAX_CHANNEL = job_process.MAX_RESULT + (64 << 10)


class Capture:
    """Keeps the beginning and the end of a stream and counts the rest."""

    def __init__(self):
        self.total = 0
        self._head = bytearray()
        self._tail = bytearray()

    def add(self, data):
        self.total += len(data)
        room = OUTPUT_KEPT - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > OUTPUT_KEPT:
            del self._tail[: len(self._tail) - OUTPUT_KEPT]

    def text(self):
        left_out = self.total - len(self._head) - len(self._tail)
        middle = f"\n... {left_out} bytes left out ...\n" if left_out > 0 else ""
        head = self._head.decode("utf-8", "replace")
        return head + middle + self._tail.decode("utf-8", "replace")


def _descendants(root):
    """Process ids below `root`, from /proc."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                    parents[int(name)] = int(file.read().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError, ValueError):
                pass  # ended meanwhile
    found = {root}
    while True:
        more = {pid for pid, parent in parents.items() if parent in found and pid not in found}
        if not more:
            return found - {root}
        found |= more


class _PidNamespace:
    """A pid namespace for one job: its first process sleeps; killing it kills all inside."""

    def __init__(self, own_namespace):
        linux.unshare(linux.CLONE_NEWPID)
        self._own = own_namespace
        self._init = os.posix_spawn("/usr/bin/sleep", ["sleep", "infinity"], {})

    def leave(self):
        """After the fork: later children are born in the zygote's own namespace again."""
        linux.setns(self._own, linux.CLONE_NEWPID)

    def kill(self):
        os.kill(self._init, signal.SIGKILL)

    def collect(self):
        os.waitpid(self._init, 0)  # returns when everything inside is gone


class Zygote:
    def __init__(self, connection, runner, namespaces):
        self._connection = connection
        self._runner = runner
        self._namespaces = namespaces
        self._own_namespace = os.open("/proc/self/ns/pid", os.O_RDONLY) if namespaces else -1
        if not namespaces:
            linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)  # daemons of a job come back to us

    def serve(self):
        """Jobs one after another until the supervisor closes the socket."""
        while True:
            frame = self._connection.read()
            if frame is None:
                return
            if "job" in frame:  # a late "kill" for a job that had just ended is no error
                self._connection.write({"began": frame["id"]})
                self._connection.write(self._run(frame))

    def _run(self, frame):
        limits = limits_module.parse(frame["limits"])
        work_dir = "/tmp" if self._namespaces else tempfile.mkdtemp(prefix="job-")
        isolation = job_process.Isolation(self._namespaces, work_dir)
        names = frame["fds"]
        passed = dict(zip(names, self._connection.take_fds(len(names))))
        before_fork = getattr(self._runner, "before_fork", None)
        if before_fork is not None:
            before_fork(frame["job"])
        namespace = _PidNamespace(self._own_namespace) if self._namespaces else None
        try:
            run = _JobRun(self._connection, limits, namespace)
            run.start(isolation, frame["job"], self._runner, passed)
            if namespace is not None:
                namespace.leave()
            run.watch()
            report = run.finish()
        finally:
            for fd in passed.values():
                os.close(fd)
            if namespace is None:
                _remove_tree(work_dir)
        report["id"] = frame["id"]
        return report


def _remove_tree(path):
    try:
        subprocess.run(["rm", "-rf", path], timeout=20, check=False, stderr=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        shutil.rmtree(path, ignore_errors=True)


class _JobRun:
    """One job: pipes, the process, and why it ended."""

    def __init__(self, connection, limits, namespace):
        self._connection = connection
        self._limits = limits
        self._namespace = namespace
        self._channel = bytearray()
        self._output = Capture()
        self._end = "exit"
        self._most_processes = 0
        self._pid = -1

    def start(self, isolation, job, runner, passed):
        self._result_read, result_write = os.pipe()
        self._out_read, out_write = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            job_process.run(isolation, self._limits, job, runner, result_write, out_write, passed)
        os.close(result_write)
        os.close(out_write)
        self._pidfd = os.pidfd_open(self._pid)

    def watch(self):
        """Until the job's process has ended by itself or was killed for a reason."""
        poll = select.poll()
        for fd in (self._connection.fd, self._result_read, self._out_read, self._pidfd):
            poll.register(fd, select.POLLIN)
        next_count = 0.0
        while True:
            ready = [fd for fd, _ in poll.poll(100)]
            if self._connection.fd in ready:
                self._connection.fill()
                frame = self._connection.next_frame()
                if self._connection.closed or (frame is not None and "kill" in frame):
                    self._end = "killed"
                    return self._kill()
            for fd in (self._result_read, self._out_read):
                if fd in ready and not self._drain(fd):
                    poll.unregister(fd)
            if self._end != "exit":
                return self._kill()
            if self._pidfd in ready:
                return self._kill()  # what it left running
            if self._namespace is None and time.monotonic() > next_count:
                next_count = time.monotonic() + 0.1
                if self._count() > self._limits.processes:
                    self._end = "process_limit"
                    return self._kill()

    def _drain(self, fd):
        """Reads once; False at the end of the stream. Sets the end reason at a limit."""
        data = os.read(fd, 1 << 18)
        if fd == self._result_read:
            self._channel += data
            if len(self._channel) > MAX_CHANNEL:
                self._end = "channel_limit"
        else:
            self._output.add(data)
            if self._output.total > self._limits.output_bytes:
                self._end = "output_limit"
        return bool(data)

    def _count(self):
        if self._namespace is None:
            return len(_descendants(os.getpid()))
        return len(_descendants(os.getpid())) - 1  # without the namespace's first process

    def _kill(self):
        """Ends the job with all its descendants, daemons included."""
        self._most_processes = self._count()
        if self._namespace is not None:
            self._namespace.kill()
            return
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            left = _descendants(os.getpid())
            if not left - {self._pid}:
                break
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
            self._reap_others()
        try:
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        except OSError:
            pass

    def _reap_others(self):
        """Collects adopted processes; the job's own is left for finish()."""
        for pid in _descendants(os.getpid()) - {self._pid}:
            try:
                os.waitpid(pid, os.WNOHANG)
            except OSError:
                pass
        time.sleep(0.002)

    def finish(self):
        """Collects everything; all writers are dead, so both pipes end."""
        _, status, usage = os.wait4(self._pid, 0)
        if self._namespace is not None:
            self._namespace.collect()
        end_before_drain = self._end
        for fd in (self._result_read, self._out_read):
            os.set_blocking(fd, False)
            try:
                while self._drain(fd):
                    pass
            except BlockingIOError:
                pass  # a process that could not be killed still holds it
            os.close(fd)
        if end_before_drain != "exit":
            self._end = end_before_drain
        os.close(self._pidfd)
        exited = os.WIFEXITED(status)
        return {
            "end": self._end,
            "exit_code": os.WEXITSTATUS(status) if exited else -1,
            "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
            "channel": self._channel[:MAX_CHANNEL].decode("utf-8", "replace"),
            "output": self._output.text(),
            "output_bytes": self._output.total,
            # A fork bomb is at its limit when it is ended; the kernel counts refusals only by cgroup.
            "refused_forks": self._most_processes >= self._limits.processes - 1,
            "cpu_seconds": usage.ru_utime + usage.ru_stime,
            "peak_rss_bytes": usage.ru_maxrss * 1024,
        }
