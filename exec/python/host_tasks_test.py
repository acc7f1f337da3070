"""One process, several tasks: each is as in a process of its own, and what a reference leaves behind is put back or told."""

import json
import os
import unittest

import testing_client

_SEEDS = {"weights_seed": 3, "input_seeds": [1, 2], "forward_seeds": [4, 5], "calls": [0, 0, 1], "whole_bytes": 0}
_PLAIN = """
import torch
class Model(torch.nn.Module):
    def forward(self, x): return x @ x.t() + torch.rand(4, 4)
def get_inputs(): return [torch.randn(4, 4)]
def get_init_inputs(): return []
"""
_SETTINGS = _PLAIN + """
torch.set_default_dtype(torch.float64)
torch.set_grad_enabled(False)
torch.backends.cuda.matmul.allow_tf32 = not torch.backends.cuda.matmul.allow_tf32
torch.use_deterministic_algorithms(True)
"""
_PATCHED = _PLAIN + "torch.nn.functional.relu = lambda x: x\n"
_BROKEN = _PLAIN.replace("x.t()", "x.no()")


class _Host(testing_client.HostProcess):
    """A host whose descriptor of results stays open, so that it can be given tasks."""

    def __init__(self, source):
        super().__init__({"role": "oracle", "reference_source": source, **_SEEDS})

    def drop(self):
        return self.order({"drop": True})

    def task(self, source):
        """(what was made, how the answer calls it) of another task."""
        job = {"role": "oracle", "host": True, "reference_source": source, **_SEEDS}
        text = json.dumps(job).encode()
        os.pwrite(self.papers, text, 0)
        self._line.send(json.dumps({"task": len(text)}).encode())
        ((how, size),) = json.loads(self._line.recv(1 << 20)).items()
        return json.loads(os.pread(self.papers, size, 0)), how

    def compared(self):
        """Whether the window's inputs and a right output are what a process of its own has, as text."""
        session, into, out = self.open()
        self.order({"fill": {"session": session, "trial": 1}})
        shown = os.pread(into, self.result["in_bytes"], 0)
        order = {"session": session, "call": 2, "leaf": 0, "offset": 0, "atol": 1e-2, "rtol": 1e-2}
        difference = self.order({"compare": order})
        for fd in (into, out):
            os.close(fd)
        return shown, difference


class HostTasksTest(unittest.TestCase):
    def _fresh(self):
        host = _Host(_PLAIN)
        try:
            return host.compared()
        finally:
            host.finish()

    def test_a_task_after_others_is_as_in_a_process_of_its_own(self):
        want = self._fresh()
        for before in (_PLAIN, _SETTINGS):
            host = _Host(before)
            try:
                host.compared()
                self.assertIs(host.drop(), True)
                host.result, how = host.task(_PLAIN)
                self.assertEqual(how, "made")
                self.assertEqual(host.result["outcome"], "ok")
                self.assertEqual(host.compared(), want)
            finally:
                host.finish()
            self.assertEqual(host.end["outcome"], "ok")

    def test_an_exchanged_function_is_told(self):
        host = _Host(_PATCHED)
        try:
            self.assertIs(host.drop(), False)
        finally:
            host.finish()

    def test_a_broken_task_is_told_and_the_next_one_served(self):
        host = _Host(_PLAIN)
        try:
            self.assertIs(host.drop(), True)
            result, how = host.task(_BROKEN)
            self.assertEqual((how, result["outcome"]), ("failed", "reference_error"))
            self.assertIn("no", result["message"])
            self.assertIs(host.drop(), True)
            self.assertEqual(host.task(_PLAIN)[1], "made")
        finally:
            host.finish()


if __name__ == "__main__":
    unittest.main()
