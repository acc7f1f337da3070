"""A reference host for candidates without data: what it hands over, and that it times."""

import fcntl
import os
import unittest

import torch
from testing import task_source
from testing_host import BATCH_NORM, TRIALS, job

import host_client
import layout

_MEMORY = 64 << 20
_SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL


class Session:
    """A host and what it handed over, with its memories sealed as the supervisor does."""

    def __init__(self, source, mode="paper", **fields):
        self.host = host_client.HostProcess(job(source, mode, own_memory=_MEMORY, **fields))
        self.result = self.host.result
        _, (self.visible, self.hidden) = self.host.order({"export": True})
        for fd in (self.visible, self.hidden):
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS)  # fails while it is mapped for writing
        self.inputs = [layout.Reader(self.visible).get(node) for node in self.result["visible"]["inputs"]]
        self.outputs = [layout.Reader(self.hidden).get(call["output"]) for call in self.result["calls"]]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.host.finish()
        os.close(self.visible)
        os.close(self.hidden)

    def time(self, **what):
        return self.host.order({"replays": what})


class TimedHostTest(unittest.TestCase):
    def test_inputs_and_outputs_are_in_memory_of_the_supervisor(self):
        with Session(task_source("x * 2", "[torch.randn(4, 8)]")) as s:
            self.assertEqual(s.result["outcome"], "ok", s.result["message"])
            self.assertEqual(len(s.inputs), TRIALS)
            self.assertEqual(len(s.outputs), TRIALS + 1)
            for inputs, output in zip(s.inputs, s.outputs[1:]):
                self.assertTrue(torch.equal(output, inputs[0] * 2))

    def test_robust_rules_hand_over_exact_results(self):
        with Session(task_source("x * 2", "[torch.randn(4, 8)]"), "robust") as s:
            call = s.result["calls"][0]
            exact = layout.Reader(s.hidden).get(call["precise"]["exact"])[0]
            self.assertTrue(torch.equal(exact.double(), s.inputs[0][0].double() * 2))

    def test_calls_are_timed(self):
        with Session(task_source("self.line(self.norm(x))", "[torch.randn(4, 16)]", body=BATCH_NORM)) as s:
            with self.assertRaisesRegex(host_client.HostError, "did not begin"):
                s.time(count=1)
            for graph in (True, False):  # without a GPU there are no graphs, which is said
                begun = s.time(begin={"graph": graph})
                self.assertNotEqual(begun["not_a_graph"], "")
                self.assertGreater(begun["operator_seconds"], 0)
                for what in ({"count": 4}, {"plain": 4}):
                    seconds = s.time(**what)["seconds"]
                    self.assertEqual(len(seconds), 4)
                    self.assertTrue(all(0 < x < 10 for x in seconds))
            self.assertTrue(s.time(end=True))

    def test_it_takes_another_task(self):
        with Session(task_source("x * 2", "[torch.randn(4, 8)]")) as s:
            self.assertTrue(s.host.order({"drop": True}))

    def test_a_broken_reference_is_said(self):
        host = host_client.HostProcess(job(task_source("x @ 2", "[torch.randn(4, 8)]"), own_memory=_MEMORY))
        self.assertEqual(host.result["outcome"], "reference_error")


if __name__ == "__main__":
    unittest.main()
