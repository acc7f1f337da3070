"""What a reference host makes when it is asked for: what it did not keep, and results that must not pass."""

import os
import time
import unittest

import torch
from testing import task_source
from testing_host import BATCH_NORM, COUNTER, TRIALS, Session, job

import forged
import layout
import runner
from interpreter_device import InterpreterDevice
from kept import KeptOutlet
from oracle import Oracle


class AgainTest(unittest.TestCase):
    """With nothing kept all is made again, and is the same."""

    FIELDS = {}  # of every job
    SOURCES = {
        "plain": (task_source("torch.softmax(x @ y, -1)", "[torch.randn(8, 16), torch.randn(16, 8)]"), "paper"),
        "random layers": (task_source("F.dropout(x, 0.5) + torch.rand_like(x)", "[torch.randn(8, 16)]"), "paper"),
        "batch norm": (task_source("self.norm(self.line(x))", "[torch.randn(8, 16)]", body=BATCH_NORM), "paper"),
        "a counter": (task_source("(self.n.add_(1), x * self.n)[1]", "[torch.randn(8)]", body=COUNTER), "robust"),
        "robust": (task_source("torch.tanh(x @ y).sum(1)", "[torch.randn(8, 16), torch.randn(16, 8)]"), "robust"),
        "robust batch norm": (
            task_source("self.norm(self.line(x))", "[torch.randn(8, 16)]", body=BATCH_NORM),
            "robust",
        ),
        "changes its inputs": (task_source("x.mul_(2) + 1", "[torch.randn(8)]"), "paper"),
        "several shapes": (
            task_source("torch.relu(x)", "[torch.randn(8)]")
            + "\ndef get_input_variants():\n    return [[torch.randn(3, 7)], [torch.randn(1, 130)]]\n",
            "robust",
        ),
    }

    def seen(self, source, mode, keep_bytes):
        """Everything that comes out of a host for outputs that are nearly zero, twice, in two orders."""
        with Session(source, mode, keep_bytes=keep_bytes, probes=True, **self.FIELDS) as s:
            calls = list(range(len(s.result["calls"])))
            seen = [s.result["calls"], s.result["visible"], s.result["trials"]]
            seen.append([layout.map_tensors(s.inputs(trial), torch.Tensor.tolist) for trial in range(TRIALS)])
            for call in calls + calls[::-1]:
                leaves = layout.leaves_of(s.result["calls"][call]["output"])
                values = tuple(torch.full(leaf["shape"], 0.125) for kind, leaf in leaves if kind == "tensor")
                seen.append(s.compare(call, values if len(values) > 1 else values[0]))
                s.inside.zero_()
                trial = s.result["calls"][call]["trial"]
                s.order("fill", trial=trial)
                seen.append(layout.map_tensors(s.inputs(trial), torch.Tensor.tolist))
            for name in forged.NAMES:
                seen.append([s.probe(name, call) for call in calls[:1] + calls[2:] + calls[2:4]])
            return seen

    def test_the_same_again(self):
        for name, (source, mode) in self.SOURCES.items():
            large, small = self.seen(source, mode, 1 << 30), self.seen(source, mode, 0)
            for part, (a, b) in enumerate(zip(large, small)):
                self.assertEqual(a, b, (name, part))
            found = large[4]
            self.assertTrue(found and found[0]["bad"] > 0, (name, found))

    def test_a_tolerance_alone_is_made_again(self):
        source, mode = self.SOURCES["a counter"]
        full = runner.complete_job({**job(source, mode), "host": True, "fds": {}})
        with InterpreterDevice(full, "", time.monotonic() + 60) as device:
            outlet = KeptOutlet(device, 1 << 20)
            Oracle(full, device, runner.blank_result("oracle"), lambda phase: None, outlet, again=True).run()
            before = [outlet.precise_leaf(call, 0) for call in range(4)]
            outlet.store.release()
            for call in (3, 1, 2):
                outlet.store.drop(("precise", call))
                self.assertTrue(layout.same(before[call], outlet.precise_leaf(call, 0)))

    def test_a_counter_counts_on(self):
        with Session(*self.SOURCES["a counter"], keep_bytes=0, **self.FIELDS) as s:
            for call in (3, 1, 0, 2):
                trial = s.result["calls"][call]["trial"]
                self.assertTrue(s.right(call, s.inputs(trial)[0] * (call + 1)))

    def test_robust_results_are_those_of_an_ordinary_oracle(self):
        source, mode = self.SOURCES["robust"]
        fds = {name: os.memfd_create(name) for name in ("visible", "hidden")}
        for fd in fds.values():
            os.ftruncate(fd, 1 << 20)
        made = runner.run_job({**job(source, mode), "fds": fds})
        hidden, visible = layout.Reader(fds["hidden"]), layout.Reader(fds["visible"])
        with Session(source, mode, keep_bytes=0) as s:
            self.assertEqual(made["trials"], s.result["trials"])
            for trial, node in enumerate(made["visible"]["inputs"]):
                self.assertTrue(layout.same(visible.get(node), s.inputs(trial)))
            for number, (call, theirs) in enumerate(zip(made["calls"], s.result["calls"])):
                self.assertEqual(call["precise"]["limits"], theirs["precise"]["limits"])
                output = hidden.get(call["output"])
                exact, slack = (hidden.get(call["precise"][name])[0].double() for name in ("exact", "slack"))
                absolute, relative = call["precise"]["limits"][0]
                error = (output.double() - exact).abs()
                share = error / (absolute + relative * exact.abs() + slack)
                (found,) = s.compare(number, output)
                self.assertEqual((found["bad"], found["largest"]), (0, repr(float(error.max()))))
                self.assertEqual(found["share"], repr(float(share.max())))
        for fd in fds.values():
            os.close(fd)


class ProbesTest(unittest.TestCase):
    def test_results_that_must_not_pass(self):
        with Session(task_source("x * 2", "[torch.randn(4, 64)]"), probes=True) as s:
            for name in forged.NAMES:
                self.assertGreater(s.probe(name)["bad"], 0, name)
            self.assertAlmostEqual(float(s.probe("half_output")["bad"]), 128, delta=3)
            self.assertAlmostEqual(float(s.probe("half_input", 2)["bad"]), 128, delta=3)

    def test_some_pass(self):
        cases = {
            "torch.zeros_like(x)": {"zeros", *forged._CONSTANTS, "half_output", "half_input", "low_precision"},
            "x + 0": {"identity"},
            "torch.full((3,), 7.0)": {*forged._CONSTANTS, "half_input", "low_precision"},
            "x.half()": {"identity"},
        }
        for forward, passing in cases.items():
            with Session(task_source(forward, "[torch.randn(4, 64)]"), probes=True) as s:
                for name in forged.NAMES:
                    found = s.probe(name, 3)
                    self.assertEqual(found is not None and found["bad"] == 0, name in passing, (forward, name, found))

    def test_some_cannot_be_made(self):
        with Session(task_source("x.sum()", "[torch.randn(4, 64)]"), probes=True) as s:
            self.assertIsNone(s.probe("half_output"))  # of one element
            self.assertIsNone(s.probe("identity"))
            self.assertIsNotNone(s.probe("half_input"))
        with Session(task_source("x * 2", "[torch.ones(())]"), probes=True) as s:
            self.assertIsNone(s.probe("half_input"))
        # A constant of one type is no element of another.
        source = task_source("x", "[torch.ones(3) if torch.initial_seed() == 10 else torch.ones(3).double()]")
        with Session(source, probes=True) as s:
            self.assertIsNotNone(s.probe("constant_mean", 0))
            self.assertIsNone(s.probe("constant_mean", 2))

    def test_a_result_of_another_shape_is_wrong(self):
        with Session(task_source("x[x != 0] * 1", "[torch.randn(4, 64)]"), probes=True) as s:
            found = s.probe("half_input")
            self.assertEqual((found["bad"], found["largest"]), (256, "inf"))

    def test_constants_are_elements_of_the_first_result(self):
        source = task_source("x", "[torch.tensor([5.0, float('nan'), 0.0, 1.0, 10.0, float('inf'), 3.0])]")
        with Session(source, probes=True) as s:
            for name, value in (("constant_mean", 3.0), ("constant_middle", 5.0), ("constant_first", 5.0)):
                found = s.probe(name)
                self.assertEqual((found["got"], found["nan"]), ([repr(value)], False), name)

    def test_models_with_buffers_are_as_they_were_before_the_call(self):
        source = task_source("(self.n.add_(1), x * self.n)[1]", "[torch.ones(8)]", body=COUNTER)
        with Session(source, probes=True, keep_bytes=0) as s:
            for call in (3, 0, 2):
                found = s.probe("half_input", call)
                self.assertEqual((found["bad"], found["first"], found["largest"]), (4, 4, repr(call + 1.0)))
                found = s.probe("low_precision", call)
                self.assertEqual((found["bad"], found["largest"]), (0, "0.0"))


if __name__ == "__main__":
    unittest.main()
