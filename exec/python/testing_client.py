"""A reference host in a process of its own, talked to as the supervisor does: for tests, with nothing confined."""

import json
import os
import socket
import subprocess
import sys

import testing  # first: it finds the others
import oracle_worker
from layout import leaves_of

RESULT_BYTES = 64 << 20
_SECONDS = 120.0  # nothing here takes longer


def _run(job, end):
    """In the child: runs the job and leaves what comes of it."""
    os.pwrite(end, json.dumps(oracle_worker.run_job(job)).encode(), 0)


def _fork(job, end):
    """Process id of a child that runs the job and has no other descriptors of ours but its own."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        keep = {end, *job["fds"].values()}
        for fd in range(3, 256):
            if fd not in keep:
                try:
                    os.close(fd)
                except OSError:
                    pass
        _run(job, end)
        status = 0
    finally:
        os._exit(status)


def _spawn(job, end):
    text = os.memfd_create("job")
    os.pwrite(text, json.dumps(job).encode(), 0)
    fds = (text, end, *job["fds"].values())
    child = subprocess.Popen([sys.executable, os.path.abspath(__file__), str(text), str(end)], pass_fds=fds)
    os.close(text)
    return child.pid


class HostProcess:
    """Runs an oracle's job as a host. `result` is what it made (or how it failed); then order() until finish()."""

    def __init__(self, job):
        self.papers = os.memfd_create("result")  # jobs and results
        os.ftruncate(self.papers, RESULT_BYTES)
        self._end = os.memfd_create("end")  # what run_job returned in the child
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line.settimeout(_SECONDS)
        job = {**job, "host": True, "fds": {"control": theirs.fileno(), "result": self.papers}}
        # CUDA does not survive a fork: with a GPU the process is a fresh one, which takes seconds.
        self._child = (_spawn if job.get("device") == "cuda" else _fork)(job, self._end)
        theirs.close()
        made = self._line.recv(1 << 20)
        self.result = json.loads(os.pread(self.papers, json.loads(made)["made"], 0)) if made else self._wait()

    def order(self, message):
        """The answer, without its name; ({...}, descriptors) for "open" and "export"."""
        self._line.send(json.dumps(message).encode())
        data, fds, _, _ = socket.recv_fds(self._line, 1 << 20, 4)
        if not data:
            raise RuntimeError("the host has ended")
        answer = json.loads(data)
        if "error" in answer:
            raise HostError(answer)
        ((_, value),) = answer.items()
        return (value, fds) if "open" in message or "export" in message else value

    def open(self):
        """(session, descriptor of the window for inputs, of the one for outputs)."""
        opened, fds = self.order({"open": True})
        return opened["session"], *fds

    def finish(self):
        """What the job returned in the end."""
        if self._child:
            try:
                self._line.send(b'{"end": true}')
            except OSError:
                pass
            self._wait()
        return self.end

    def _wait(self):
        _, status = os.waitpid(self._child, 0)
        self._child = 0
        self._line.close()
        size = os.fstat(self._end).st_size
        self.end = json.loads(os.pread(self._end, size, 0)) if status == 0 else {"outcome": "worker_lost"}
        os.close(self._end)
        os.close(self.papers)
        return self.end


class HostError(Exception):
    """An order failed; `answer` says how."""

    def __init__(self, answer):
        super().__init__(answer["error"])
        self.answer = answer


def compare_output(host, session, call, described):
    """The host's differences of an output that a runner handed over, by leaf; None where it is not even alike. As the
    supervisor does, with the tolerances of the result's mode (1e-2 in the paper's)."""
    want = leaves_of(host.result["calls"][call]["output"])
    got = leaves_of(described)
    if len(want) != len(got):
        return None
    found = []
    for number, ((kind, a), (other, b)) in enumerate(zip(want, got)):
        if kind != other or kind != "tensor":
            if kind == "tensor" or other == "tensor" or a != b:
                return None
            continue
        if (a["shape"], a["dtype"]) != (b["shape"], b["dtype"]) or b["offset"] is None:
            return None
        place = {"session": session, "call": call, "leaf": number, "offset": b["offset"]}
        found.append(host.order({"compare": {**place, **tolerance(host.result["calls"][call], number)}}))
    return found


def tolerance(call, leaf):
    """What an order to compare says of the tolerance."""
    limits = call.get("precise", {}).get("limits", [])
    if leaf < len(limits) and limits[leaf] is not None:
        return {"exact": True, "absolute": limits[leaf][0], "relative": limits[leaf][1]}
    return {"atol": 1e-2, "rtol": 1e-2}


if __name__ == "__main__":
    with open(int(sys.argv[1]), encoding="utf-8") as _file:
        _run(json.load(_file), int(sys.argv[2]))
