"""Candidates whose inputs and outputs go through the windows of a reference host, without a GPU."""

import os
import unittest

from testing import elementwise_candidate, task_source

import kept
import one_process
import runner


class WindowsTest(unittest.TestCase):
    RELU = task_source("torch.relu(x)")

    def test_an_honest_candidate_and_a_wrong_one(self):
        for expression, bad in (("tl.maximum(v, 0.0)", False), ("tl.maximum(v * 1.5, 0.0)", True)):
            orders = [{"trial": 1, "skip": "all", "scale": 1.0, "pattern": 0, "seconds": 5.0}]
            both = one_process.run_both(
                self.RELU, elementwise_candidate(expression), windows=True, orders=orders
            )
            self.assertEqual([result["outcome"] for result in both.results], ["ok", "ran"])
            self.assertEqual([found[0]["bad"] > 0 for found, _, _ in both.calls], [bad] * 6)
            self.assertTrue(all(inputs["tuple"][0]["value"] for _, _, inputs in both.calls))
            (answer, output) = both.ablated[0]
            self.assertEqual((answer["raised"], answer["left_out"]), ("", 1))
            self.assertIsNotNone(output["tensor"]["offset"])

    def test_changed_inputs_are_seen(self):
        source = elementwise_candidate("tl.maximum(v, 0.0)", result="x.copy_(o)")
        both = one_process.run_both(self.RELU, source, windows=True, trials=1)
        self.assertFalse(any(inputs["tuple"][0]["value"] for _, _, inputs in both.calls))

    def test_an_output_without_room_is_described_only(self):
        source = elementwise_candidate("v", result="torch.zeros(1 << 20)")
        both = one_process.run_both(self.RELU, source, windows=True, trials=1)
        self.assertIsNone(both.calls[0][1]["tensor"]["offset"])

    def test_sizes_have_to_be_given(self):
        job = {"role": "runner", "windows": True, "visible": {}, "calls": [0], "forward_seeds": [1]}
        fds = {name: os.memfd_create(name) for name in ("visible", "memory", "control")}
        result = runner.run_job({**job, "candidate_source": "", "fds": fds})
        self.assertEqual(result["outcome"], "internal_error")
        self.assertIn("in_bytes and out_bytes", result["message"])

    def test_large_trials_take_turns(self):
        most, kept.MOST_TOGETHER = kept.MOST_TOGETHER, 5000
        try:
            source = elementwise_candidate("v * 2.0")
            both = one_process.run_both(task_source("x * 2", "[torch.randn(1000)]"), source, windows=True)
        finally:
            kept.MOST_TOGETHER = most
        self.assertTrue(both.results[0]["visible"]["in_turn"])
        self.assertEqual(both.results[1]["outcome"], "ran", both.results[1])
        self.assertEqual([found[0]["bad"] for found, _, _ in both.calls], [0] * 6)


if __name__ == "__main__":
    unittest.main()
