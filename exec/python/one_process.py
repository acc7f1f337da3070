"""Oracle and runner one after the other with nothing between them: for warming up and for tests.

Nothing is compared here; whoever wants to know reads expected and handed over outputs from what comes back.
"""

import json
import os
import socket
import threading

import layout
import runner
from host_client import HostProcess, compare_output

_BYTES = 256 << 20


class Both:
    """Results of the two jobs, by call (expected output, output, inputs afterwards) as values, the kernels that the
    runner names in the end, and for each order of an ablated call (answer, output). With windows, by call (what the
    host says of the output, the output's description, the inputs' description) instead, and descriptions for outputs of
    ablated calls."""

    def __init__(self):
        self.results = []
        self.calls = []
        self.kernels = None
        self.ablated = []


class _Memory:
    """What lies between the two jobs as shared memory."""

    def __init__(self, fds, made):
        hidden = layout.Reader(fds["hidden"])
        self._expected = [hidden.get(call["output"]) for call in made["calls"]]
        self._reader = layout.Reader(fds["memory"])

    def judge(self, message):
        return (self._expected[message["call"]], *(self._read(message[part]) for part in ("output", "inputs")))

    def _read(self, node):
        try:
            return self._reader.get(node)
        except ValueError as error:
            return error

    def before(self, trial):
        """Called before the runner reads a trial's inputs."""

    def read(self, message):
        return message["output"] and self._reader.get(message["output"])


class _Windows:
    """A session of a reference host between the two."""

    def __init__(self, host, session):
        self._host, self._session = host, session

    def judge(self, message):
        found = compare_output(self._host, self._session, message["call"], message["output"])
        return found, message["output"], message["inputs"]

    def before(self, trial):
        self._host.order({"fill": {"session": self._session, "trial": trial}})

    def read(self, message):
        return message["output"]


def _answer(line, between, trials, both, orders):
    """Takes the supervisor's place: says "go" to each call (`trials` are theirs), gives the orders, and keeps what was
    handed over."""
    orders = iter(orders)
    while True:
        data = line.recv(1 << 20)
        if not data:
            return
        message = json.loads(data)
        if "call" in message:
            both.calls.append(between.judge(message))
            if message["call"] + 1 < len(trials):
                between.before(trials[message["call"] + 1])
            line.send(b'{"go": true}')
            continue
        if "kernels" in message:
            both.kernels = message["kernels"]
        else:
            both.ablated.append((message, between.read(message)))
        order = next(orders, None)
        if order:
            between.before(order["trial"])
        line.send(json.dumps({"ablate": order} if order else {"done": True}).encode())


def run_both(
    reference_source,
    candidate_source,
    trials=5,
    seed=0,
    measure_time=True,
    oracle_fields=None,
    orders=(),
    windows=False,
    **fields,
):
    """Both with the results of an oracle job and, if that went well, of a runner job, which is then given `orders` of
    ablated calls. `fields` go into both jobs. With `windows` the oracle stays as a reference host, in a process of its
    own."""
    both = Both()
    common = {
        "weights_seed": seed + 1,
        "forward_seeds": [seed + 100 + trial for trial in range(trials)],
        "measure_time": measure_time,
        "calls": [0, *range(trials)],
        **fields,
    }
    seeds = [seed + 200 + trial for trial in range(trials)]
    job = {"role": "oracle", "reference_source": reference_source, "input_seeds": seeds, **common}
    job.update(oracle_fields or {})
    run = _run_with_windows if windows else _run_with_memory
    run(both, job, candidate_source, common, orders)
    return both


def _run_with_memory(both, job, candidate_source, common, orders):
    fds = {name: os.memfd_create(name) for name in ("visible", "hidden", "memory")}
    for fd in fds.values():
        os.ftruncate(fd, _BYTES)
    try:
        made = runner.run_job({**job, "fds": fds})
        both.results.append(made)
        if made["outcome"] == "ok" and candidate_source is not None:
            _run_candidate(both, made, candidate_source, fds, common, orders, _Memory(fds, made))
    finally:
        for fd in fds.values():
            os.close(fd)


def _run_with_windows(both, job, candidate_source, common, orders):
    host = HostProcess(job)
    both.results.append(host.result)
    try:
        if host.result["outcome"] == "ok" and candidate_source is not None:
            session, visible, memory = host.open()
            sizes = {name: host.result[name] for name in ("in_bytes", "out_bytes")}
            fields = {**common, **sizes, "windows": True}
            between = _Windows(host, session)
            _run_candidate(
                both, host.result, candidate_source, {"visible": visible, "memory": memory}, fields, orders, between
            )
            host.order({"close": {"session": session}})
    finally:
        host.finish()


def _run_candidate(both, made, source, fds, common, orders, between):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    trials = [call["trial"] for call in made["calls"]]
    thread = threading.Thread(target=_answer, args=(ours, between, trials, both, orders))
    thread.start()
    try:
        job = {"role": "runner", "candidate_source": source, "visible": made["visible"], **common}
        job.update(calls=trials, fds={**fds, "control": theirs.fileno()})
        both.results.append(runner.run_job(job))
    finally:
        theirs.close()
        thread.join()
        ours.close()
