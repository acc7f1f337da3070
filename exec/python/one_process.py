"""Oracle and runner one after the other in this process, with nothing between them: for warming up and for tests.

Nothing is compared here; whoever wants to know reads expected and handed over outputs from what comes back.
"""

import json
import os
import socket
import threading

import layout
import runner

_BYTES = 256 << 20


class Both:
    """Results of the two jobs, by call (expected output, output, inputs afterwards) as values, the kernels that the
    runner names in the end, and for each order of an ablated call (answer, output)."""

    def __init__(self):
        self.results = []
        self.calls = []
        self.kernels = None
        self.ablated = []


def _answer(line, memory, both, expected, orders):
    """Takes the supervisor's place: says "go" to each call, gives the orders, and keeps what was handed over."""
    reader, orders = layout.Reader(memory), iter(orders)
    while True:
        data = line.recv(1 << 20)
        if not data:
            return
        message = json.loads(data)
        if "call" not in message:
            if "kernels" in message:
                both.kernels = message["kernels"]
            else:
                both.ablated.append((message, message["output"] and reader.get(message["output"])))
            order = next(orders, None)
            line.send(json.dumps({"ablate": order} if order else {"done": True}).encode())
            continue
        got = []
        for part in ("output", "inputs"):
            try:
                got.append(reader.get(message[part]))
            except ValueError as error:
                got.append(error)
        both.calls.append((expected[message["call"]], *got))
        line.send(b'{"go": true}')


def run_both(reference_source, candidate_source, trials=5, seed=0, measure_time=True, oracle_fields=None, orders=(), **fields):
    """Both with the results of an oracle job and, if that went well, of a runner job, which is then given `orders` of
    ablated calls. `fields` go into both jobs."""
    both = Both()
    fds = {name: os.memfd_create(name) for name in ("visible", "hidden", "memory")}
    for fd in fds.values():
        os.ftruncate(fd, _BYTES)
    common = {
        "weights_seed": seed + 1,
        "forward_seeds": [seed + 100 + trial for trial in range(trials)],
        "measure_time": measure_time,
        "calls": [0, *range(trials)],
        **fields,
    }
    seeds = [seed + 200 + trial for trial in range(trials)]
    try:
        job = {"role": "oracle", "reference_source": reference_source, "input_seeds": seeds, "fds": fds, **common}
        made = runner.run_job({**job, **(oracle_fields or {})})
        both.results.append(made)
        if made["outcome"] == "ok" and candidate_source is not None:
            _run_candidate(both, made, candidate_source, fds, common, orders)
    finally:
        for fd in fds.values():
            os.close(fd)
    return both


def _run_candidate(both, made, source, fds, common, orders):
    hidden = layout.Reader(fds["hidden"])
    expected = [hidden.get(call["output"]) for call in made["calls"]]
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    thread = threading.Thread(target=_answer, args=(ours, fds["memory"], both, expected, orders))
    thread.start()
    try:
        job = {"role": "runner", "candidate_source": source, "visible": made["visible"], **common}
        job["calls"] = [call["trial"] for call in made["calls"]]
        job["fds"] = {**fds, "control": theirs.fileno()}
        both.results.append(runner.run_job(job))
    finally:
        theirs.close()
        thread.join()
        ours.close()
