"""The process: its phases and failures, what it holds, and how it ends."""

import os
import sys
import unittest
from unittest import mock

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")]

from client.testing.client_case import ClientTest
from client.testing import fake_executor, fake_wire
from client.testing.programs import program
from client import job, main  # what they import lies on the path that client.testing makes

import torch


class FailureTest(ClientTest):
    def check_failure(self, source, phase, kind, text, line=None):
        executor = self.serve(source)
        failure = executor.failure
        self.assertIsNotNone(failure)
        self.assertEqual((failure["phase"], failure["kind"]), (phase, kind))
        self.assertIn(text, failure["text"])
        self.assertEqual("# here" in source.split("\n")[failure["line"] - 1], failure["line"] > 0)
        self.assertEqual(failure["line"] > 0, "# here" in source)
        return executor

    def test_phases(self):
        fine = program("return twice(x)")
        for source, phase, kind, text in (
            ("import no_such_module  # here\n" + fine, "import", "ModuleNotFoundError", "no_such_module"),
            (fine + "\nx = = 3  # here\n", "import", "SyntaxError", "invalid syntax"),
            (fine.replace("ModelNew", "Other"), "init", "AttributeError", "no ModelNew"),
            (program("return x", "raise KeyError(3)  # here"), "init", "KeyError", "3"),
            (program("return x.no_such  # here"), "forward", "AttributeError", "no_such"),
            (program("raise SystemExit(4)  # here"), "forward", "SystemExit", "4"),
            (program("return object()"), "output", "TypeError", "cannot be sent"),
            (program("def f(n): return f(n + 1)  # here\nreturn f(0)"), "forward", "RecursionError", "recursion"),
        ):
            with self.subTest(phase=phase, kind=kind):
                self.check_failure(source, phase, kind, text)

    def test_texts_are_short(self):
        executor = self.check_failure(program("raise ValueError('x' * 100000)  # here"), "forward", "ValueError", "xxx")
        self.assertLessEqual(len(executor.failure["text"]), 2000)

    def test_texts_are_characters(self):
        executor = self.check_failure(program("raise ValueError('a\\ud800b')  # here"), "forward", "ValueError", "a?b")
        self.assertEqual(executor.failure["text"], "a?b")

    def test_seeds_are_the_executors(self):
        source = program("return torch.rand(2, device='cpu').cuda(), torch.rand(2, device='cuda'), random.random()",
                         before="import random")  # fmt: skip
        first, second = (self.serve(source, seed=5).outputs[0] for _ in range(2))
        self.assertEqual(first[0].tolist(), first[1].tolist())  # as torch's generators agree on the CPU
        self.assertEqual((first[1].tolist(), first[2]), (second[1].tolist(), second[2]))


class BeforeForkTest(unittest.TestCase):
    def test_the_compiler_is_imported_for_programs_that_name_it(self):
        name = "torch.utils.bundled_inputs"  # in the compiler's place: one that nothing else imports
        with mock.patch.object(main, "_COMPILER", (name,)):
            job.before_fork({"compiler": False})
            self.assertNotIn(name, sys.modules)
            job.before_fork({"compiler": True})
            self.assertIn(name, sys.modules)


class ProcessTest(ClientTest):
    def test_only_the_socket_is_open(self):
        executor = self.serve(program("""
            import os, stat
            held = []
            for name in os.listdir("/proc/self/fd"):
                try:
                    held.append((int(name), stat.S_ISSOCK(os.stat(int(name)).st_mode)))
                except OSError:
                    pass  # the listing's own
            return [(fd, is_socket) for fd, is_socket in held if fd > 2]
        """))
        self.check_ended(executor)
        self.assertEqual([is_socket for _, is_socket in executor.outputs[0]], [True])

    def test_candidates_share_nothing(self):
        for _ in range(2):
            executor = self.check_twice(program("""
                assert not hasattr(torch, "mark")
                torch.mark = 1
                return twice(x)
            """))
        self.assertIsNone(executor.failure)

    def test_an_executor_that_ends_ends_the_process(self):
        for after in ("begin", "constructed", "op", "launch"):
            with self.subTest(after=after):
                source = program("""
                    while True:
                        try:
                            y = twice(x)
                        except RuntimeError:
                            pass  # a refusal, were it one
                """)
                self.check_ends(source, after, lambda sock: None)

    def test_replies_that_are_none(self):
        for data in (b"\xff" * 8, b"\x02\0\0\0\0\0\0\0[]", b"\x02\0\0\0\0\0\0\0xy", b"\x01\0\0\0\0\0\0\x41{"):
            with self.subTest(data=data):
                self.check_ends(program("return twice(x)"), "op", lambda sock: sock.sendall(data))

    def check_ends(self, source, after, last):
        """The process ends by itself after `last` was said instead of a reply to the first request of this kind."""
        sock, pid = self.zygote.start()
        executor = fake_executor.Executor(sock, source, calls=[[torch.ones(16, 64)]])
        answer = executor._answer

        def stop(message, payload):
            if message["do"] != after:
                return answer(message, payload)
            last(sock)
            sock.shutdown(1)  # it may still send
            while sock.recv(1 << 16):
                pass  # until its end is closed; a process that went on would pass the socket's deadline
            raise fake_wire.Gone

        executor._answer = stop
        with sock:
            executor.serve()
        self.assertEqual(executor.log[-1]["do"], after)


if __name__ == "__main__":
    unittest.main()
