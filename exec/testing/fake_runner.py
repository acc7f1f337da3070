"""A runner without torch for tests of the pool and the backend: executes the sources as plain Python.

As the reference runner it executes the reference and expects one number from each call; as a reference process it goes
on and takes orders, to which a function `order(message)` of the reference may give other answers, and a dict `sizes`
other sizes; giving its memory back takes `drop_seconds`. As a candidate's runner it executes the candidate, which can
change `result`, the dict that is returned, and hands that number over for each call. Where the reference says that
times are not modelled, both serve rounds of timed calls, which sleep as long as `timing` says.
"""

import array
import json
import os
import socket
import time

import channel

_EXPECTED = {"value": 1}
_WINDOW = 4096


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
        result.update(mutates_inputs=False, has_buffers=False, reference_ops=[], reference_seconds=2e-6)
        result.update(bytes_per_second=1e9, shares_memory=False, trials=[])
    return result


def notify(path):
    """Tells a test of an event (job_event.h)."""
    open(path, "w").close()


def wait(path):
    """Waits for an event that the test tells of."""
    while not os.path.exists(path):
        time.sleep(0.002)


def timed(order, timing):
    """The answer to an order of timed calls."""
    if "prepare" in order:
        return {"prepared": True}
    if ("begin" in order) == timing.setdefault("begun", False):  # one begins after the other has ended, nothing before
        return {"error": "out of turn"}
    timing["begun"] = "end" not in order
    if "begin" in order:
        return {"ready": {"seconds": timing["sleep"], "enqueue_seconds": 1e-5, "bytes_per_second": 1e9}}
    if "show" in order:
        return {"output": timing["output"]}
    if "load" in order:
        return {"loaded": True}
    if "move" in order:
        return {"moved": timing["moved"]}
    if "end" in order:
        return {"ended": True}
    seconds = []
    for _ in range(order["round"]["calls"]):
        start = time.perf_counter()
        time.sleep(timing["sleep"])
        seconds.append(timing["claim"] or time.perf_counter() - start)
    return {"round": {"seconds": seconds, "gpu": timing["gpu"]}}


def serve_rounds(control, timing):
    order = control.ask(timed({"begin": True}, timing))
    while "done" not in order:
        order = control.ask(timed(order, timing))


def serve_as_host(job, result, names):
    """What was made goes into the memory "result"; then one answer to each order."""
    result.update(in_bytes=_WINDOW, out_bytes=_WINDOW, call_bytes=0, device_bytes=0)
    result.update(names.get("sizes", {}))
    made = json.dumps(result).encode()
    os.pwrite(job["fds"]["result"], made, 0)
    line = socket.socket(fileno=os.dup(job["fds"]["control"]))
    line.send(json.dumps({"made": len(made)}).encode())
    answer_as_told = names.get("order", lambda message: None)
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
                run_job({**task, "fds": job["fds"]}, lambda phase: None, None)
            return
        windows = [os.memfd_create("window") for _ in range(2 if "open" in order else 0)]
        answers = {"open": {"opened": {"session": 1}}, "fill": {"filled": True}, "close": {"closed": True}}
        answers["follow"] = {"followed": {"elements": 0, **dict.fromkeys(("variation", "covariance", "own_variation", "rounding"), "0.0")}}
        if (answer := answer_as_told(order)) is None:
            (name,) = order
            answer = timed(order[name], names["timing"]) if name == "time" else answers[name]
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", windows))] if windows else []
        line.sendmsg([json.dumps(answer).encode()], rights)
        for window in windows:
            os.close(window)


def serve_ablation(control, names):
    """Names the candidate's `kernels`; in each ablated call hands over what its function `ablated(order)` gives."""
    ablated = names.get("ablated", lambda order: {"output": {"value": 0}})
    order, done = control.ask({"kernels": names.get("kernels", [])}), 0
    if "profile" in order:
        order = control.ask({"profiled": names.get("profiled", {"output": _EXPECTED, "kernels": [], "note": "fake"})})
    while "ablate" in order:
        answer = {"ablated": done, "output": None, "raised": "", "late": False, "left_out": 1, **ablated(order["ablate"])}
        order, done = control.ask(answer), done + 1


def run_job(job, on_phase, on_result):
    role = job.get("role", "runner")
    result = blank_result(role)
    timing = {"sleep": 0.01, "claim": None, "output": _EXPECTED, "gpu": [], "moved": True}
    names = {"result": result, "job": job, "timing": timing, "notify": notify, "wait": wait}
    if role == "oracle":
        on_phase("reference")
        exec(compile(job["reference_source"], "reference", "exec"), names)
        empty = {"list": []}
        trials = max(job["calls"]) + 1
        result["visible"] = {"arguments": empty, "state": empty, "inputs": [empty] * trials}
        result["trials"] = ["random"] * trials
        result["left_out"] = []
        result["calls"] = [{"trial": trial, "output": _EXPECTED} for trial in job["calls"]]
        if job.get("host"):
            serve_as_host(job, result, names)
        return result
    on_phase("import")
    try:
        exec(compile(job["candidate_source"], "candidate", "exec"), names)
    except Exception as error:
        kind = "out_of_memory" if isinstance(error, MemoryError) else "runtime_error"
        result.update(outcome=kind, fault="candidate", message=f"{type(error).__name__}: {error}")
        return result
    if "control" in job["fds"]:
        control = channel.Control(job["fds"]["control"])
        inputs = {"tuple": [{"value": True}]} if job["device"] == "cuda" else {"list": []}
        for index in range(len(job["calls"])):
            control.ask({"call": index, "output": _EXPECTED, "inputs": inputs})
        if job["measure_time"] and job["device"] == "cuda":
            serve_rounds(control, timing)
        on_result(result)
        serve_ablation(control, names)
    return result
