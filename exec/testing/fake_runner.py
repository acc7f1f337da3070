"""A runner without torch for tests of the pool and the backend: executes the sources as plain Python.

As an oracle it executes the reference and expects one number from each call. As a runner it executes the candidate,
which can change `result`, the dict that is returned, and hands that number over for each call.
"""

import channel

_EXPECTED = {"value": 1}


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
    else:
        result.update(mutates_inputs=False, has_buffers=False, reference_ops=[], reference_seconds=2e-6)
        result["bytes_per_second"] = 1e9
    return result


def run_job(job, on_phase):
    role = job.get("role", "runner")
    result = blank_result(role)
    if role == "oracle":
        on_phase("reference")
        exec(compile(job["reference_source"], "reference", "exec"), {"result": result})
        empty = {"list": []}
        trials = max(job["calls"]) + 1
        result["visible"] = {"arguments": empty, "state": empty, "inputs": [empty] * trials}
        result["calls"] = [{"trial": trial, "output": _EXPECTED} for trial in job["calls"]]
        return result
    on_phase("import")
    try:
        exec(compile(job["candidate_source"], "candidate", "exec"), {"result": result, "job": job})
    except Exception as error:
        kind = "out_of_memory" if isinstance(error, MemoryError) else "runtime_error"
        result.update(outcome=kind, fault="candidate", message=f"{type(error).__name__}: {error}")
        return result
    if "control" in job["fds"]:
        control = channel.Control(job["fds"]["control"])
        for index in range(len(job["calls"])):
            control.ask({"call": index, "output": _EXPECTED, "inputs": {"list": []}})
    return result
