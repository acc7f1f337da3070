"""The reference host on a real GPU (a manual target: `bazel run //exec/python:host_gpu_test`, or with python3 directly).

It prints what took how long.
"""

import os
import time
import unittest

import torch
from testing import elementwise_candidate, task_source
from testing_host import BATCH_NORM, TRIALS, Session

import host_again_test
import one_process

CUDA = {"device": "cuda", "time_limit_s": 120.0}
LARGE = "[torch.rand(1 << 30)]"  # 4 GiB


class Watch:
    """Prints seconds since the last lap."""

    def __init__(self):
        self._last = time.monotonic()

    def lap(self, name):
        now = time.monotonic()
        print(f"  {name}: {now - self._last:.4f} s", flush=True)
        self._last = time.monotonic()


class HostOnGpuTest(unittest.TestCase):
    def tearDown(self):
        torch.cuda.empty_cache()

    def test_both_sides_of_the_windows(self):
        watch = Watch()
        with Session(task_source("x * 2", "[torch.randn(4, 8), 3]"), **CUDA) as s:
            watch.lap("host and windows")
            self.assertEqual(s.result["in_bytes"] % (2 << 20), 0)
            inputs = [s.inputs(trial) for trial in range(TRIALS)]
            s.inside.fill_(1)
            torch.cuda.synchronize()
            for call, trial in enumerate([0, *range(TRIALS)]):
                self.assertTrue(s.right(call, inputs[trial][0] * 2))
                self.assertFalse(s.right(call, inputs[trial][0] * 2.1))
            watch.lap("8 comparisons")
            s.order("fill", trial=1)
            self.assertTrue(s.inputs(1)[0].equal(inputs[1][0]))
            for _ in range(20):
                number, *fds = s.host.open()
                for fd in fds:
                    os.close(fd)
                s.host.order({"close": {"session": number}})
            watch.lap("20 sessions opened and closed")

    def test_rounds_of_timed_calls(self):
        order = {"calls": 10, "trial": 1, "checked": 2, "spin_seconds": 1e-3, "plain": False}
        source = task_source("self.norm(self.line(x))", "[torch.randn(4096, 16)]", body=BATCH_NORM)
        with Session(source, "robust", **CUDA) as s:
            print(" ", s.host.order({"time": {"begin": True}}))
            self.assertTrue(s.host.order({"time": {"load": 1}}))
            answer = s.host.order({"time": {"round": order}})
            print(" ", answer)
            self.assertTrue(all(0 < seconds < 0.1 for seconds in answer["seconds"]))
            self.assertTrue(s.host.order({"time": {"end": True}}))

    def test_large_tensors(self):
        watch = Watch()
        with Session(task_source("torch.relu(x)", LARGE), **CUDA) as s:
            watch.lap("host made and opened, 4 GiB a trial")
            sizes = ("in_bytes", "out_bytes", "call_bytes", "device_bytes")
            print(" ", {name: f"{s.result[name] / (1 << 30):.2f} GiB" for name in sizes}, s.result["seconds"])
            self.assertTrue(s.result["visible"]["in_turn"])
            for call in (0, 2, 2, 3):
                s.order("fill", trial=s.result["calls"][call]["trial"])
                watch.lap(f"fill for call {call}")
                output = torch.relu(s.inputs(s.result["calls"][call]["trial"])[0])
                torch.cuda.synchronize()
                watch.lap("the candidate's own call")
                described = s.compare(call, output)
                watch.lap("output into the window, compared")
                self.assertEqual(described[0]["bad"], 0)
                del output
            bad = s.inputs(2)[0].relu_()
            bad[12345] = 7
            (found,) = s.compare(3, bad)
            watch.lap("one wrong element")
            self.assertEqual((found["bad"], found["first"]), (1, 12345))
            self.assertTrue(s.order("keep", bytes=4 << 30))
            watch.lap("keep")
            leaf = {"dtype": "float32", "elements": 1 << 30, "offset": 0, "kept_offset": 0}
            self.assertTrue(s.order("same", leaves=[leaf], share=0.01))
            watch.lap("same")
            print("  GPU memory in use:", [f"{b / (1 << 30):.2f} GiB" for b in torch.cuda.mem_get_info()])

    def test_large_tensors_in_robust_mode(self):
        watch = Watch()
        source = task_source("torch.tanh(x)", "[torch.randn(1 << 26)]")
        with Session(source, "robust", probes=True, **CUDA) as s:
            watch.lap("host made and opened, 256 MiB a trial")
            print(" ", s.result["trials"], s.result["seconds"])
            for call in range(len(s.result["calls"])):
                trial = s.result["calls"][call]["trial"]
                s.order("fill", trial=trial)  # more trials than fit in the window at the same time
                output = torch.tanh(s.inputs(trial)[0])
                self.assertTrue(s.right(call, output))
            watch.lap("all calls compared")
            for name in host_again_test.forged.NAMES:
                self.assertGreater((s.probe(name) or {"bad": 1})["bad"], 0, name)
                watch.lap(name)

    def test_candidates(self):
        relu = task_source("torch.relu(x)", "[torch.randn(32, 512)]")
        for expression, bad in (("tl.maximum(v, 0.0)", False), ("tl.maximum(v * 1.5, 0.0)", True)):
            orders = [{"trial": 1, "skip": "all", "scale": 1.0, "pattern": 0, "seconds": 5.0}]
            watch = Watch()
            both = one_process.run_both(
                relu, elementwise_candidate(expression), measure_time=False, windows=True, orders=orders, **CUDA
            )
            watch.lap("host and candidate")
            self.assertEqual([result["outcome"] for result in both.results], ["ok", "ran"], both.results)
            self.assertEqual([found[0]["bad"] > 0 for found, _, _ in both.calls], [bad] * 6)
            self.assertTrue(all(inputs["tuple"][0]["value"] for _, _, inputs in both.calls))
            self.assertEqual(both.ablated[0][0]["left_out"], 1)

    def test_freed_memory_of_a_host_shows_nothing(self):
        """Expected outputs that the host gave back to the driver are nowhere in what another process gets."""
        source = task_source("torch.full_like(x, 77.25)", "[torch.empty(1 << 28).fill_(1.0)]")
        with Session(source, keep_bytes=0, **CUDA) as s:
            for call in (2, 3):
                s.compare(call, torch.zeros(1 << 28, device="cuda"))
            s.order("close")
            blocks, found = [], 0
            for _ in range(8):
                blocks.append(torch.empty(1 << 31, dtype=torch.float32, device="cuda"))
                found += int((blocks[-1] == 77.25).sum())
            print("  elements found in 64 GiB:", found)
            self.assertEqual(found, 0)


class AgainOnGpuTest(host_again_test.AgainTest):
    """What is not kept is made again, the same, on a GPU as well."""

    FIELDS = CUDA
    test_a_tolerance_alone_is_made_again = None  # without a GPU
    test_robust_results_are_those_of_an_ordinary_oracle = None  # of another random generator


if __name__ == "__main__":
    unittest.main(verbosity=2)
