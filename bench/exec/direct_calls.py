"""The paper's figure by direct calls: the mean of ten calls of a reference and of a candidate, launches included, in
one process on a GPU without any check.

What `paper_speedup` of a verdict is compared with: `python direct_calls.py PROGRAMS.jsonl` prints one JSON object a
line, for programs with "id", "reference_source" and "candidate_source".
"""

import importlib.util
import json
import statistics
import sys
import tempfile
import time

import torch
import triton
import triton.language as tl
from torch.utils._python_dispatch import TorchDispatchMode

CALLS, WARM_UPS, ROUNDS = 10, 5, 3


class Operators(TorchDispatchMode):
    """Counts operators of torch."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += 1
        return func(*args, **(kwargs or {}))


class Launches:
    """Counts launches of Triton's kernels, and their arguments that are no constants of the compiler."""

    def __enter__(self):
        self.count = self.arguments = 0
        self._run = run = triton.runtime.jit.JITFunction.run
        counter = self

        def counted(function, *args, **kwargs):
            counter.count += 1
            counter.arguments += sum(not parameter.is_constexpr for parameter in function.params)
            return run(function, *args, **kwargs)

        triton.runtime.jit.JITFunction.run = counted
        return self

    def __exit__(self, *_):
        triton.runtime.jit.JITFunction.run = self._run


@triton.jit
def _small(a, b, c, d):
    tl.store(a, 1.0)


@triton.jit
def _large(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p):
    tl.store(a, 1.0)


def load(source, folder, name):
    path = f"{folder}/{name}.py"
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def on_gpu(value):
    return value.cuda() if isinstance(value, torch.Tensor) else value


def mean_ms(call):
    """The best of a few means of ten calls, each between two events with nothing queued ahead."""
    for _ in range(WARM_UPS):
        call()
    means = []
    for _ in range(ROUNDS):
        times = []
        for _ in range(CALLS):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda.synchronize()
            start.record()
            call()
            end.record()
            torch.cuda.synchronize()
            times.append(start.elapsed_time(end))
        means.append(statistics.mean(times))
    return means


def host_us(call, count=200):
    """Microseconds that the host takes to queue a call, the best of a few rounds."""
    rounds = []
    for _ in range(5):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            call()
        rounds.append((time.perf_counter() - start) / count * 1e6)
    torch.cuda.synchronize()
    return min(rounds)


def measure(program, folder, number):
    reference = load(program["reference_source"], folder, f"reference_{number}")
    candidate = load(program["candidate_source"], folder, f"candidate_{number}")
    arguments = reference.get_init_inputs()
    models = []
    for kind in (reference.Model, candidate.ModelNew):
        torch.manual_seed(1)
        models.append(kind(*arguments).cuda())
    inputs = [on_gpu(value) for value in reference.get_inputs()]
    with torch.no_grad():
        means = [mean_ms(lambda: model(*inputs)) for model in models]
        with Launches() as launches, Operators() as operators:
            models[1](*inputs)
        with Operators() as of_reference:
            models[0](*inputs)
    return {
        "reference_ms": means[0],
        "candidate_ms": means[1],
        "launches": launches.count,
        "launch_arguments": launches.arguments,
        "operators": operators.count,
        "reference_operators": of_reference.count,
    }


def main():
    one = torch.ones(1, device="cuda")
    host = {
        "operator_us": host_us(lambda: torch.add(one, one)),
        "launch_of_4_us": host_us(lambda: _small[(1,)](one, one, 3, 4)),
        "launch_of_16_us": host_us(lambda: _large[(1,)](*[one] * 8, *range(8))),
    }
    print(json.dumps({"device": torch.cuda.get_device_name(), **host}), flush=True)
    with tempfile.TemporaryDirectory() as folder, open(sys.argv[1], encoding="utf-8") as file:
        for number, line in enumerate(file):
            program = json.loads(line)
            try:
                result = measure(program, folder, number)
            except Exception as error:  # a program that only our client runs
                result = {"error": f"{type(error).__name__}: {error}"[:300]}
            print(json.dumps({"id": program["id"], **result}), flush=True)


if __name__ == "__main__":
    main()
