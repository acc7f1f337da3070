"""A runner without torch for tests of the pool: executes the sources as plain Python.

The candidate can change `result`, the dict that is returned.
"""


def blank_result():
    return {
        "outcome": "ok",
        "fault": "none",
        "phase": "done",
        "message": "",
        "detail": "",
        "line": 0,
        "compiled": True,
        "correct": True,
        "trials_run": 5,
        "max_error": 0.0,
        "mismatch": None,
        "launches": [],
        "aten_ops": [],
        "reference_ops": [],
        "modelled": True,
        "reference_seconds": 2e-6,
        "candidate_seconds": 1e-6,
        "speedup": 2.0,
        "device_name": "none",
        "seconds": {"forward": 0.0},
        "versions": {"python": "3"},
    }


def run_job(job, on_phase):
    result = blank_result()
    on_phase("reference")
    exec(compile(job["reference_source"], "reference", "exec"), {"result": result})
    on_phase("import")
    try:
        exec(compile(job["candidate_source"], "candidate", "exec"), {"result": result, "job": job})
    except Exception as error:
        kind = "out_of_memory" if isinstance(error, MemoryError) else "runtime_error"
        result.update(outcome=kind, fault="candidate", message=f"{type(error).__name__}: {error}")
    return result
