"""A test case whose programs run in processes of their own, against the fake executor."""

import os
import sys
import unittest

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")]

from client.testing import candidates

import torch


class ClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.zygote = candidates.Zygote()

    @classmethod
    def tearDownClass(cls):
        cls.zygote.close()

    def serve(self, source, calls=None, **options):
        """The executor after the program's end; by default with one call of forward on 16 x 64 numbers."""
        self.x = torch.randn(16, 64, generator=torch.Generator().manual_seed(3))
        return candidates.run(self.zygote, source, calls=[[self.x]] if calls is None else calls, **options)

    def check_twice(self, source, **options):
        """The program ends well and doubles its input. Returns the executor."""
        executor = self.serve(source, **options)
        self.check_ended(executor)
        torch.testing.assert_close(executor.outputs[0], 2 * self.x)
        return executor

    def check_ended(self, executor):
        self.assertIsNone(executor.failure)
        self.assertTrue(executor.outputs, "no output arrived")

    def commands(self, executor, what):
        return [message for message in executor.log if message["do"] == what]
