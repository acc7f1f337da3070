"""Which kernels took the GPU's time during one call of forward, as CUPTI saw them through torch.profiler."""

import torch

from failures import describe

MAX_KERNELS = 64
_MAX_NAME = 300


def summarize(events, launched):
    """[{"name", "calls", "seconds", "own"}], the longest first, of events [(name, seconds)]. `launched` says how often
    Triton launched a kernel of each name for the candidate. A kernel's name proves nothing, as a program may call its
    own like one of a library: runs beyond that count are somebody else's."""
    found = {}
    for name, seconds in events:
        launched_before = found[name, True]["calls"] if (name, True) in found else 0
        own = launched_before < launched.get(name, 0)
        entry = found.setdefault((name, own), {"name": name[:_MAX_NAME], "calls": 0, "seconds": 0.0, "own": own})
        entry["calls"] += 1
        entry["seconds"] += seconds
    return sorted(found.values(), key=lambda entry: -entry["seconds"])[:MAX_KERNELS]


def measure(call, recorder):
    """(result of the call, kernels as above, "" or why nothing was measured)."""
    from torch.profiler import ProfilerActivity, profile

    recorder.binaries.clear()
    try:
        session = profile(activities=[ProfilerActivity.CUDA])
        profiler = session.__enter__()
    except Exception as error:  # no CUPTI, or not allowed to use it
        return call(), [], f"the profiler does not start: {describe(error)}"
    try:
        result = call()
        torch.cuda.synchronize()
    finally:
        session.__exit__(None, None, None)
    try:
        events = [
            (event.name, event.time_range.elapsed_us() * 1e-6)
            for event in profiler.events()
            if event.device_type == torch.autograd.DeviceType.CUDA and not event.is_user_annotation
        ]
    except Exception as error:
        return result, [], f"the profiler's events cannot be read: {describe(error)}"
    if not events:
        return result, [], "the profiler saw no work on the GPU (CUPTI is not available to it here)"
    return result, summarize(events, dict(recorder.binaries)), ""
