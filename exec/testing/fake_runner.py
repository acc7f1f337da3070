"""A runner without torch for tests of the pool and the backend: executes the sources as plain Python.

For a reference it executes the reference and expects the number 1 from each call. As a reference process it goes on and
takes orders, to which a function `order(message)` of the reference may give other answers (but to `export`), and a dict
`sizes` other sizes; giving its memory back takes `drop_seconds`. For a candidate it executes the candidate, if the job has its
source, which can change `result`, the dict that is returned, and talk through `control`.
"""

import array
import fcntl
import json
import os
import socket
import time

import channel

_EXPECTED = {"value": 1}
_MEMORY = 4096  # bytes


def blank_result(role):
    result = {
        "outcome": "ran" if role == "runner" else "ok",
        "fault": "none",
        "phase": "done",
        "message": "",
        "detail": "",
        "line": 0,
        "modelled": True,
        "device_name": "none",
        "seconds": {"forward": 0.0},
        "versions": {"python": "3"},
    }
    if role == "runner":
        result.update(compiled=True, launches=[], aten_ops=[], candidate_seconds=1e-6)
    if role == "oracle":
        result.update(mutates_inputs=False, has_buffers=False, shares_memory=False, reference_ops=[], trials=[])
    return result


def notify(path):
    """Tells a test of an event (job_event.h)."""
    open(path, "w").close()


def wait(path):
    """Waits for an event that the test tells of."""
    while not os.path.exists(path):
        time.sleep(0.002)


def answer_to(order, names):
    """(the answer to an order, descriptors that go with it)."""
    if "export" in order:
        return {"exported": True}, [_memory() for _ in range(2)]
    told = names.get("order", lambda message: None)(order)
    if told is not None:
        return told, []
    return {"fill": {"filled": True}, "close": {"closed": True}}[next(iter(order))], []


def _memory():
    fd = os.memfd_create("memory", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, _MEMORY)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return fd


def serve_as_host(job, result, names):
    """What was made goes into the memory "result"; then one answer to each order."""
    result.update(in_bytes=0, out_bytes=0, call_bytes=0, device_bytes=0)
    result.update(names.get("sizes", {}))
    made = json.dumps(result).encode()
    os.pwrite(job["fds"]["result"], made, 0)
    line = socket.socket(fileno=os.dup(job["fds"]["control"]))
    line.send(json.dumps({"made": len(made)}).encode())
    while data := line.recv(1 << 20):
        order = json.loads(data)
        if "end" in order:
            return
        if "drop" in order:
            time.sleep(names.get("drop_seconds", 0))
            line.send(b'{"dropped": true}')
            order = json.loads(line.recv(1 << 20))
            if "task" in order:
                task = json.loads(os.pread(job["fds"]["result"], order["task"], 0))
                run_job({**task, "fds": job["fds"]}, lambda phase: None)
            return
        answer, fds = answer_to(order, names)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        line.sendmsg([json.dumps(answer).encode()], rights)
        for fd in fds:
            os.close(fd)


def run_job(job, on_phase):
    role = job.get("role", "runner")
    result = blank_result(role)
    names = {"result": result, "job": job, "notify": notify, "wait": wait}
    if role == "oracle":
        on_phase("reference")
        exec(compile(job["reference_source"], "reference", "exec"), names)
        empty, none = {"list": []}, {"dict": []}
        trials = max(job["calls"]) + 1
        result["visible"] = {"arguments": {"tuple": [empty, none]}, "state": none, "inputs": [empty] * trials}
        result["trials"] = ["random"] * trials
        result["left_out"] = []
        result["calls"] = [{"trial": trial, "output": _EXPECTED} for trial in job["calls"]]
        if job.get("host"):
            serve_as_host(job, result, names)
        return result
    on_phase("import")
    if "control" in job["fds"]:
        names["control"] = channel.Control(job["fds"]["control"])
    exec(compile(job.get("candidate_source", ""), "candidate", "exec"), names)
    return result
