"""The reference host in a process of its own, without a GPU: windows, comparisons, times, ways to end."""

import os
import types
import unittest

import torch
from testing import task_source
from testing_host import BATCH_NORM, TRIALS, Session

import gpu_memory
import host_client
import kept
import layout
import reference_host


class OrdersTest(unittest.TestCase):
    def test_inputs_are_in_the_window_and_only_outputs_are_taken_from_it(self):
        with Session(task_source("x * 2", "[torch.randn(4, 8), 3]")) as s:
            self.assertEqual(s.result["trials"], ["random"] * TRIALS)
            inputs = [s.inputs(trial) for trial in range(TRIALS)]
            self.assertEqual([rest for _, rest in inputs], [3] * TRIALS)
            s.inside.fill_(1)  # a candidate may write what it likes there
            for call, trial in enumerate([0, *range(TRIALS)]):
                self.assertTrue(s.right(call, inputs[trial][0] * 2))
                self.assertFalse(s.right(call, inputs[trial][0] * 2.1))
            self.assertFalse(s.right(3, inputs[0][0] * 2))
            self.assertEqual(s.order("fill", trial=1), True)
            self.assertTrue(s.inputs(1)[0].equal(inputs[1][0]))
            self.assertEqual(int(s.inside[:64].max()), 1)  # nothing else was written

    def test_what_is_expected_is_in_no_window(self):
        with Session(task_source("torch.full_like(x, 77.25)", "[torch.randn(4, 8)]")) as s:
            self.assertTrue(s.right(0, torch.full((4, 8), 77.25)))
            s.outside.zero_()
            s.order("fill", trial=0)
            pattern = torch.full((8,), 77.25).view(torch.uint8).numpy().tobytes()
            for window in (s.inside, s.outside):
                self.assertNotIn(pattern, window.numpy().tobytes())

    def test_state_and_arguments_come_first(self):
        body = "        self.line = nn.Linear(512, 8)\n"
        with Session(task_source("self.line(x)", init="[512, torch.ones(3)]", body=body)) as s:
            visible = s.result["visible"]
            args, kwargs = s.reader.get(visible["arguments"])
            self.assertEqual((args[0], args[1].tolist(), kwargs), (512, [1, 1, 1], {}))
            state = s.reader.get(visible["state"])
            self.assertTrue(s.right(2, s.inputs(1)[0] @ state["line.weight"].t() + state["line.bias"]))

    def test_every_session_has_windows_of_its_own(self):
        with Session(task_source("x + 1", "[torch.randn(16)]")) as s:
            s.outside.fill_(9)
            s.inside.fill_(9)
            other, *fds = s.host.open()
            windows = [
                gpu_memory.Window.open(fd, s.result[name], "interpreter")
                for fd, name in zip(fds, ("in_bytes", "out_bytes"))
            ]
            self.assertNotEqual(other, s.number)
            self.assertEqual(int(windows[1].bytes.max()), 0)
            x = layout.Reader(windows[0].bytes).get(s.result["visible"]["inputs"][0])[0]
            self.assertTrue(s.right(0, x + 1))
            self.assertEqual(s.order("close"), True)
            with self.assertRaisesRegex(host_client.HostError, "no session"):
                s.order("fill", trial=0)
            s.number = other
            self.assertEqual(s.order("close"), True)

    def test_no_more_sessions_than_it_says(self):
        with Session(task_source("x + 1", "[torch.randn(16)]")) as s:
            with self.assertRaisesRegex(host_client.HostError, "128 sessions are open"):
                for _ in range(129):
                    for fd in s.host.open()[1:]:
                        os.close(fd)

    def test_wrong_orders_are_answered_and_change_nothing(self):
        with Session(task_source("(x + 1, 'text')", "[torch.randn(16)]")) as s:
            place = {"session": s.number, "call": 0, "leaf": 0, "offset": 0, "atol": 0.0, "rtol": 0.0}
            for order, message in (
                ({"compare": {**place, "offset": s.result["out_bytes"] - 8}}, "do not lie in a memory"),
                ({"compare": {**place, "offset": -64}}, "do not lie in a memory"),
                ({"compare": {**place, "leaf": 1}}, "no tensor"),
                ({"compare": {**place, "leaf": 2}}, "no tensor"),
                ({"compare": {**place, "exact": True, "absolute": 0.0, "relative": 0.0}}, "float64"),
                ({"same": {"session": s.number, "leaves": [], "share": 0.1}}, "nothing was kept"),
                ({"keep": {"session": s.number, "bytes": 1 << 40}}, "do not lie in a memory"),
                ({"probe": {**place, "name": "zeros"}}, "not asked for probes"),
                ({"time": {"load": 0}}, "did not begin"),
                ({"nothing": 1}, "no order"),
                ({"fill": {"session": s.number, "trial": 99}}, "IndexError"),
            ):
                with self.assertRaisesRegex(host_client.HostError, message):
                    s.host.order(order)
            self.assertTrue(s.right(0, (s.inputs(0)[0] + 1, "text")))

    def test_it_ends_with_what_it_did_and_without_what_is_large(self):
        session = Session(task_source("x + 1", "[torch.randn(16)]"))
        self.assertEqual(session.result["outcome"], "ok")
        self.assertEqual(len(session.result["calls"]), TRIALS + 1)
        end = session.host.finish()
        self.assertEqual((end["outcome"], end["visible"], end["calls"]), ("ok", {}, []))
        self.assertEqual((end["call_bytes"], end["device_bytes"]), (0, 0))

    def test_a_reference_that_fails_says_so_as_ever(self):
        session = Session(task_source("x + nothing"))
        self.assertEqual((session.result["outcome"], session.result["fault"]), ("reference_error", "task"))
        self.assertIn("does not run", session.result["message"])

    def test_it_ends_when_nobody_is_there_any_more(self):
        session = Session(task_source("x + 1", "[torch.randn(16)]"))
        session.host._line.close()
        self.assertEqual(session.host.finish()["outcome"], "ok")

    def test_a_kept_output_is_compared_with_the_one_that_is_there(self):
        with Session(task_source("(x + 1, x.int())", "[torch.randn(16)]")) as s:
            described = s.writer.put((torch.ones(16), torch.arange(16, dtype=torch.int32)))
            s.order("keep", bytes=192)
            places = [leaf["offset"] for _, leaf in layout.leaves_of(described)]
            leaves = [
                {"dtype": dtype, "elements": 16, "offset": at, "kept_offset": at}
                for dtype, at in zip(("float32", "int32"), places)
            ]
            self.assertTrue(s.order("same", leaves=leaves, share=1e-6))
            s.outside[0] = 1  # less than one in a million
            self.assertTrue(s.order("same", leaves=leaves, share=1e-6))
            s.writer.reset()
            s.writer.put((torch.full((16,), 1.01), torch.arange(16, dtype=torch.int32)))
            self.assertFalse(s.order("same", leaves=leaves, share=1e-6))
            self.assertTrue(s.order("same", leaves=leaves, share=1e-1))
            self.assertTrue(s.order("same", leaves=leaves[1:], share=0.0))
            with self.assertRaises(host_client.HostError):
                s.order("same", leaves=[{**leaves[0], "kept_offset": 190}], share=0.1)

    def test_room_for_outputs_is_as_much_as_they_need(self):
        with Session(task_source("(x, x[:1], x.sum())", "[torch.randn(3000)]")) as s:
            self.assertEqual(s.result["out_bytes"], 4096 * 4)  # 12,000 bytes and 5 times 64 around them
            x = s.inputs(0)[0]
            self.assertTrue(s.right(0, (x, x[:1], x.sum())))


class MemoryTest(unittest.TestCase):
    def test_what_can_be_made_again_is_let_go_when_memory_is_short(self):
        let_go = []
        store = types.SimpleNamespace(clear=lambda: let_go.append(True), release=lambda *kinds: None)
        for failures, error, answer in (
            (1, torch.OutOfMemoryError("CUDA out of memory"), {"filled": True}),
            (2, torch.OutOfMemoryError("CUDA out of memory"), None),
            (1, RuntimeError("other"), {"error": "RuntimeError: other"}),
        ):
            host = reference_host.Host.__new__(reference_host.Host)
            host._outlet = types.SimpleNamespace(store=store)
            host._forger = types.SimpleNamespace(drop=lambda: None)
            host._device = types.SimpleNamespace(modelled=True)
            errors = [error] * failures

            def fill(order):
                if errors:
                    raise errors.pop()
                return {"filled": True}

            host._fill = fill
            let_go.clear()
            message, fds = host._answer({"fill": {}})
            self.assertEqual((len(let_go), fds), (int("memory" in str(error)), ()))
            if answer is None:
                self.assertTrue(message["out_of_memory"])
                self.assertIn("CUDA out of memory", message["error"])
            else:
                self.assertEqual(message, answer)


class TurnsTest(unittest.TestCase):
    def setUp(self):
        self.most, kept.MOST_TOGETHER = kept.MOST_TOGETHER, 5000

    def tearDown(self):
        kept.MOST_TOGETHER = self.most

    def test_large_trials_take_turns(self):
        with Session(task_source("x * 2", "[torch.randn(1000)]")) as s:
            self.assertTrue(s.result["visible"]["in_turn"])
            self.assertEqual(s.result["in_bytes"], 4096)
            seen = [s.inputs(0)[0]]
            for trial in (1, 2, 0):
                s.order("fill", trial=trial)
                seen.append(s.inputs(trial)[0])
            self.assertTrue(seen[3].equal(seen[0]))
            for call, trial in enumerate([0, *range(TRIALS)]):
                self.assertTrue(s.right(call, seen[trial] * 2))


class TimesTest(unittest.TestCase):
    def test_rounds(self):
        order = {"calls": 5, "trial": 1, "checked": 2, "spin_seconds": 1e-4, "plain": False}
        with Session(task_source("self.norm(self.line(x))", "[torch.randn(8, 16)]", body=BATCH_NORM)) as s:
            time = lambda **what: s.host.order({"time": what})
            for _ in range(2):
                ready = time(begin=True)
                self.assertEqual(
                    set(ready), {"seconds", "enqueue_seconds", "bytes_per_second", "operations_per_second"}
                )
                self.assertGreater(ready["seconds"], 0)
                self.assertTrue(time(load=1))
                self.assertTrue(time(move=2))
                for plain in (False, True):
                    answer = time(round={**order, "plain": plain})
                    self.assertEqual((len(answer["seconds"]), answer["gpu"]), (5, []))
                    self.assertTrue(all(seconds > 0 for seconds in answer["seconds"]))
                self.assertTrue(time(end=True))
            with self.assertRaisesRegex(host_client.HostError, "did not begin"):
                time(round=order)
            # What is expected of the candidate did not change by it: the timed model is another one.
            self.assertEqual(s.compare(0, torch.zeros(8, 16))[0], s.compare(0, torch.zeros(8, 16))[0])

    def test_products_may_be_as_fast_as_the_task_says_while_they_are_timed(self):
        flag = "torch.backends.cuda.matmul.allow_tf32"
        # The module is loaded once more for the times.
        head = f"import os, torch\n{flag} = True\nTIMED = 'LOADED' in os.environ\nos.environ['LOADED'] = '1'\n"
        source = head + task_source(f"(x, None)[{flag} != TIMED] * 1", "[torch.ones(8)]")
        with Session(source, "robust", keep_bytes=0) as s:
            self.assertEqual(s.result["calls"][0]["precise"]["notes"], [])
            for _ in range(2):
                s.host.order({"time": {"begin": True}})
                s.host.order({"time": {"load": 1}})
                self.assertTrue(s.right(2, torch.ones(8)))
                s.host.order({"time": {"end": True}})

if __name__ == "__main__":
    unittest.main()
