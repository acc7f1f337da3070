"""Calls after the ordinary ones: kernels left out, other inputs, errors and lateness, a profile of the GPU."""

import contextlib
import time
import types
import unittest
import unittest.mock

import torch

from testing import elementwise_candidate, task_source

import gpu_profile
import launch_arguments
import one_process
from compile_watch import LaunchRecord, Recorder

RELU = task_source("torch.relu(x * 1.5)")
FUSED = elementwise_candidate("tl.maximum(v * 1.5, 0.0)")
ORDER = {"trial": 0, "skip": "all", "scale": 1.0, "pattern": 0, "seconds": 20.0}

# mul into memory of its own, relu from there into the output.
TWO_KERNELS = """
import torch
import triton
import triton.language as tl

@triton.jit
def mul(x, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i, mask=i < n) * 1.5, mask=i < n)

@triton.jit
def relu(x, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, tl.maximum(tl.load(x + i, mask=i < n), 0.0), mask=i < n)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        t, o = torch.empty_like(x), torch.empty_like(x)
        n = x.numel()
        mul[(triton.cdiv(n, 1024),)](x, t, n, BLOCK=1024)
        relu[(triton.cdiv(n, 1024),)](t, o, n, BLOCK=1024)
        return o
"""


def run(candidate, *orders, reference=RELU):
    both = one_process.run_both(
        reference, candidate, device_model="l40s_mini", orders=[{**ORDER, **order} for order in orders]
    )
    assert both.results[-1]["outcome"] == "ran", both.results[-1]
    return both


class AblationTest(unittest.TestCase):
    def test_a_kernel_left_out_writes_nothing(self):
        both = run(FUSED, {}, {"trial": 3}, {"skip": 0}, {"skip": "none"})
        self.assertEqual(both.kernels, [["kernel", 8]])
        for answer, output in both.ablated[:3]:
            self.assertTrue(output.isnan().all())
            self.assertEqual((answer["raised"], answer["late"], answer["left_out"]), ("", False, 1))
        self.assertTrue(torch.equal(both.ablated[3][1], both.calls[0][1]))
        self.assertEqual([answer["ablated"] for answer, _ in both.ablated], [0, 1, 2, 3])

    def test_one_of_two_kernels(self):
        both = run(TWO_KERNELS, {"skip": 0}, {"skip": 1})
        self.assertEqual(both.kernels, [["mul", 7], ["relu", 12]])
        # Without mul relu makes zeros of the NaN that nobody wrote over; without relu nobody writes the output.
        self.assertFalse(both.ablated[0][1].any())
        self.assertTrue(both.ablated[1][1].isnan().all())

    def test_the_result_and_its_counts_are_those_of_the_ordinary_calls(self):
        plain, ablated = run(TWO_KERNELS), run(TWO_KERNELS, {}, {"skip": 1})
        for field in ("launches", "aten_ops", "candidate_seconds", "compiled"):
            self.assertEqual(plain.results[-1][field], ablated.results[-1][field], field)

    def test_inputs_are_scaled(self):
        both = run(FUSED, {"skip": "none", "scale": -3.0})
        self.assertTrue(torch.allclose(both.ablated[0][1], torch.relu(-4.5 * both.calls[0][2][0])))

    def test_fresh_memory_of_booleans_follows_the_pattern(self):
        task = task_source("x > -1000")
        source = elementwise_candidate("v > -1000").replace("empty_like(x)", "empty_like(x, dtype=torch.bool)")
        both = run(source, {}, {"pattern": 1}, reference=task)
        self.assertTrue(both.ablated[0][1].all() and not both.ablated[1][1].any())

    def test_autotuned_kernels_are_left_out(self):
        source = FUSED.replace(
            "@triton.jit",
            "@triton.autotune([triton.Config({'BLOCK': b}) for b in (256, 1024)], key=['n'])\n@triton.jit",
        )
        source = source.replace(
            "kernel[(triton.cdiv(n, 1024),)](x, o, n, BLOCK=1024)",
            "kernel[lambda m: (triton.cdiv(n, m['BLOCK']),)](x, o, n)",
        )
        both = run(source, {}, {"skip": "none"})
        self.assertTrue(both.ablated[0][1].isnan().all())
        self.assertFalse(both.ablated[1][1].isnan().any())

    def test_an_error_is_an_answer(self):
        checked = elementwise_candidate("tl.maximum(v * 1.5, 0.0)", result="self.check(o)").replace(
            "    def forward",
            "    def check(self, o):\n        assert not o.isnan().any(), 'NaN'\n        return o\n\n    def forward",
        )
        both = run(checked, {}, {"skip": "none"})
        self.assertIn("NaN", both.ablated[0][0]["raised"])
        self.assertFalse(both.ablated[0][0]["late"])
        self.assertIsNone(both.ablated[0][1])
        self.assertIsNotNone(both.ablated[1][1])
        self.assertEqual(both.results[-1]["outcome"], "ran")

    def test_a_call_that_takes_too_long_is_late(self):
        waiting = elementwise_candidate("tl.maximum(v * 1.5, 0.0)", result="self.wait(o)").replace(
            "    def forward",
            "    def wait(self, o):\n        while o.view(-1)[0].isnan():\n            pass\n        return o\n\n"
            "    def forward",
        )
        start = time.monotonic()
        both = run(waiting, {"seconds": 0.2}, {"skip": "none"})
        self.assertTrue(both.ablated[0][0]["late"])
        self.assertFalse(both.ablated[1][0]["late"])
        self.assertLess(time.monotonic() - start, 60)

    def test_a_result_kept_from_earlier_needs_no_launch(self):
        kept = elementwise_candidate(
            "tl.maximum(v * 1.5, 0.0)",
            before="if KEPT: return KEPT[0]",
            result="KEPT.append(o) or o",
            head="KEPT = []",
        )
        both = run(kept, {})
        self.assertEqual(both.ablated[0][0]["left_out"], 0)
        self.assertTrue(torch.equal(both.ablated[0][1], both.calls[0][1]))


class LaunchArgumentsTest(unittest.TestCase):
    def test_tensors_are_named_by_their_storage(self):
        model = torch.nn.Linear(4, 3)
        x, scratch, out = torch.ones(2, 4), torch.ones(5), torch.ones(2, 3)
        signature = {"x": "*fp32", "w": "*fp32", "n": "i32", "pair": ("*fp32", "*fp32"), "s": "*fp32"}
        notes = launch_arguments.note(signature, [x.t(), model.weight, 7, (out.view(-1), out), scratch])
        record = LaunchRecord("k", 1, (1, 1, 1), types.SimpleNamespace(num_warps=1, shared=0), None, notes)
        launch_arguments.describe([record], [x], model, (out,))
        self.assertEqual(
            [(a["name"], a["what"], a["shape"]) for a in record.arguments],
            [
                ("x", "input 0", [4, 2]),
                ("w", "weight weight", [3, 4]),
                ("pair[0]", "output 0", [6]),
                ("pair[1]", "output 0", [2, 3]),
                ("s", "scratch", [5]),
            ],
        )

    def test_memory_that_is_gone_is_nobodys(self):
        notes = launch_arguments.note({"s": "*fp32"}, [torch.ones(1 << 20)])
        later = [torch.ones(1 << 20) for _ in range(3)]  # likely at the same address
        record = LaunchRecord("k", 1, (1, 1, 1), types.SimpleNamespace(num_warps=1, shared=0), None, notes)
        launch_arguments.describe([record], later, None, later)
        self.assertEqual(record.arguments[0]["what"], "scratch")

    def test_numbers_are_bounded(self):
        many = {f"{'x' * 100}{i}": "*fp32" for i in range(50)}
        notes = launch_arguments.note(many, [torch.ones(1)] * 50)
        self.assertEqual(len(notes), launch_arguments.MAX_ARGUMENTS)
        self.assertLess(len(notes[0].name), 100)
        records = [LaunchRecord("k", 1, (1, 1, 1), types.SimpleNamespace(num_warps=1, shared=0), None, notes)] * 100
        launch_arguments.describe(list(records), [], None, None)


class _Event:
    def __init__(self, name, microseconds, device="CUDA"):
        self.name = name
        self.time_range = types.SimpleNamespace(elapsed_us=lambda: microseconds)
        self.device_type = getattr(torch.autograd.DeviceType, device)
        self.is_user_annotation = False


class GpuProfileTest(unittest.TestCase):
    def test_own_kernels_are_those_that_triton_launched(self):
        events = [("softmax", 2e-6), ("softmax", 2e-6), ("gemm", 5e-6), ("softmax", 3e-6)]
        found = gpu_profile.summarize(events, {"softmax": 2})
        self.assertEqual(
            [(k["name"], k["calls"], k["own"]) for k in found],
            [("gemm", 1, False), ("softmax", 2, True), ("softmax", 1, False)],
        )
        self.assertAlmostEqual(found[1]["seconds"], 4e-6)
        self.assertEqual(len(gpu_profile.summarize([(str(i), 1e-6) for i in range(200)], {})), gpu_profile.MAX_KERNELS)

    def measure(self, events):
        recorder = Recorder()

        @contextlib.contextmanager
        def profile(activities):
            yield types.SimpleNamespace(events=lambda: events)

        def call():
            recorder.binaries["k"] = 1
            return "result"

        with unittest.mock.patch("torch.profiler.profile", profile), unittest.mock.patch("torch.cuda.synchronize"):
            return gpu_profile.measure(call, recorder)

    def test_events_of_the_gpu_are_taken(self):
        # The profiler's stand-in gives its events on entering.
        result, kernels, note = self.measure([_Event("k", 7.0), _Event("aten::mm", 90.0, "CPU")])
        self.assertEqual((result, note), ("result", ""))
        self.assertEqual([(k["name"], k["own"]) for k in kernels], [("k", True)])

    def test_nothing_seen_is_said(self):
        result, kernels, note = self.measure([])
        self.assertEqual((result, kernels), ("result", []))
        self.assertIn("no work on the GPU", note)

    def test_a_profiler_that_does_not_start_is_no_failure(self):
        with unittest.mock.patch("torch.profiler.profile", side_effect=RuntimeError("CUPTI_ERROR")):
            result, kernels, note = gpu_profile.measure(lambda: "result", Recorder())
        self.assertEqual((result, kernels), ("result", []))
        self.assertIn("CUPTI_ERROR", note)


if __name__ == "__main__":
    unittest.main()
