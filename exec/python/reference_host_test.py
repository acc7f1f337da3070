"""The reference host in a process of its own, without a GPU: what it hands over, windows, comparisons, times, ways to end."""

import fcntl
import os
import types
import unittest

import torch
import testing
from testing import task_source
from testing_host import BATCH_NORM, COUNTER, TRIALS, WHOLE, Session, job, map_window

import testing_client
import layout
import reference_host

_SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL


class Whole:
    """A host that hands all over, with its memories sealed as the supervisor does."""

    def __init__(self, source, mode="paper", **fields):
        self.host = testing_client.HostProcess(job(source, mode, **{**WHOLE, **fields}))
        self.result = self.host.result
        _, (self.visible, self.hidden) = self.host.order({"export": True})
        for fd in (self.visible, self.hidden):
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS)  # fails while it is mapped for writing
        self.inputs = [testing.Reader(self.visible).get(node) for node in self.result["visible"]["inputs"]]
        self.outputs = [testing.Reader(self.hidden).get(call["output"]) for call in self.result["calls"]]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.host.finish()
        os.close(self.visible)
        os.close(self.hidden)


class WholeTest(unittest.TestCase):
    def test_inputs_and_outputs_are_in_memory_of_the_supervisor(self):
        for keep_bytes in (1 << 20, 0):  # kept, and made again
            with Whole(task_source("x * 2", "[torch.randn(4, 8).t()]"), keep_bytes=keep_bytes) as s:
                self.assertEqual(s.result["outcome"], "ok", s.result["message"])
                self.assertEqual((len(s.inputs), s.result["in_bytes"], s.result["out_bytes"]), (TRIALS, 0, 0))
                self.assertEqual(s.inputs[0][0].stride(), (1, 8))
                self.assertEqual(len(s.outputs), TRIALS + 1)
                for inputs, output in zip(s.inputs, s.outputs[1:]):
                    self.assertTrue(torch.equal(output, inputs[0] * 2))
                with self.assertRaisesRegex(testing_client.HostError, "no windows"):
                    s.host.open()

    def test_robust_rules_hand_over_exact_results(self):
        with Whole(task_source("x * 2", "[torch.randn(4, 8)]"), "robust") as s:
            call = s.result["calls"][0]
            exact = testing.Reader(s.hidden).get(call["precise"]["exact"])[0]
            self.assertTrue(torch.equal(exact.double(), s.inputs[0][0].double() * 2))

    def test_tasks_with_probes_are_handed_over_whole(self):
        with Whole(task_source("x * 2", "[torch.randn(4, 8)]"), "robust", probes=True, whole_bytes=0) as s:
            probes = s.result["calls"][0]["probes"]
            half = testing.Reader(s.hidden).get(probes["half_input"])
            self.assertTrue(torch.equal(half[:2], s.outputs[0][:2]))
            self.assertFalse(torch.equal(half, s.outputs[0]))

    def test_it_takes_another_task(self):
        with Whole(task_source("x * 2", "[torch.randn(4, 8)]")) as s:
            self.assertTrue(s.host.order({"drop": True}))

    def test_what_does_not_fit_is_said(self):
        host = testing_client.HostProcess(job(task_source("x * 2", "[torch.randn(4096)]"), own_memory=4096))
        self.assertEqual(host.result["outcome"], "reference_error")
        self.assertIn("does not fit into the memory", host.result["message"])


class TimesTest(unittest.TestCase):
    def test_calls_are_timed(self):
        source = task_source("self.line(self.norm(x))", "[torch.randn(4, 16)]", body=BATCH_NORM)
        for keep_bytes in (1 << 20, 0):
            with Session(source, keep_bytes=keep_bytes) as s:
                time = lambda **what: s.host.order({"replays": what})
                with self.assertRaisesRegex(testing_client.HostError, "did not begin"):
                    time(count=1)
                for graph in (True, False):  # without a GPU there are no graphs, which is said
                    begun = time(begin={"graph": graph})
                    self.assertNotEqual(begun["not_a_graph"], "")
                    self.assertGreater(begun["operator_seconds"], 0)
                    for what in ({"count": 4}, {"plain": 4}):
                        seconds = time(**what)["seconds"]
                        self.assertEqual(len(seconds), 4)
                        self.assertTrue(all(0 < x < 10 for x in seconds))
                self.assertTrue(time(end=True))
                # What is expected of the candidate did not change by it: the timed model is another one.
                self.assertEqual(s.compare(0, torch.zeros(4, 16))[0], s.compare(0, torch.zeros(4, 16))[0])

    def test_products_may_be_as_fast_as_the_task_says_while_they_are_timed(self):
        flag = "torch.backends.cuda.matmul.allow_tf32"
        # The module is loaded once more for the times.
        head = f"import os, torch\n{flag} = True\nTIMED = 'LOADED' in os.environ\nos.environ['LOADED'] = '1'\n"
        source = head + task_source(f"(x, None)[{flag} != TIMED] * 1", "[torch.ones(8)]")
        with Session(source, "robust", keep_bytes=0) as s:
            self.assertEqual(s.result["calls"][0]["precise"]["notes"], [])
            for _ in range(2):
                s.host.order({"replays": {"begin": {"graph": False}}})
                s.host.order({"replays": {"count": 2}})
                self.assertTrue(s.right(2, torch.ones(8)))
                s.host.order({"replays": {"end": True}})


class OrdersTest(unittest.TestCase):
    def test_inputs_are_in_the_window_and_only_outputs_are_taken_from_it(self):
        with Session(task_source("x * 2", "[torch.randn(4, 8), 3]")) as s:
            self.assertEqual(s.result["trials"], ["random"] * TRIALS)
            inputs = [s.inputs(trial) for trial in range(TRIALS)]
            self.assertEqual([rest for _, rest in inputs], [3] * TRIALS)
            s.inside.fill_(1)  # nothing is read from there
            for call, trial in enumerate([0, *range(TRIALS)]):
                self.assertTrue(s.right(call, inputs[trial][0] * 2))
                self.assertFalse(s.right(call, inputs[trial][0] * 2.1))
            self.assertFalse(s.right(3, inputs[0][0] * 2))
            self.assertTrue(s.inputs(1)[0].equal(inputs[1][0]))

    def test_what_is_expected_is_in_no_window(self):
        with Session(task_source("torch.full_like(x, 77.25)", "[torch.randn(4, 8)]")) as s:
            self.assertTrue(s.right(0, torch.full((4, 8), 77.25)))
            s.outside.zero_()
            s.order("fill", trial=0)
            pattern = torch.full((8,), 77.25).view(torch.uint8).numpy().tobytes()
            for window in (s.inside, s.outside):
                self.assertNotIn(pattern, window.numpy().tobytes())

    def test_state_and_arguments_are_in_memory_of_the_supervisor(self):
        body = "        self.line = nn.Linear(512, 8)\n"
        with Session(task_source("self.line(x)", init="[512, torch.ones(3)]", body=body)) as s:
            args, kwargs = s.constants("arguments")
            self.assertEqual((args[0], args[1].tolist(), kwargs), (512, [1, 1, 1], {}))
            state = s.constants("state")
            self.assertTrue(s.right(2, s.inputs(1)[0] @ state["line.weight"].t() + state["line.bias"]))

    def test_inputs_lie_with_their_strides(self):
        shapes = "torch.randn(6, 5).t(), torch.randn(4, 6)[:, ::2], torch.randn(3, 1).expand(3, 4), torch.empty(0, 2)"
        source = task_source("(x * 2, y)", f"[{shapes}]").replace("def forward(self, x, y", "def forward(self, x, y, *z")
        source = source.replace("def forward(self, x)", "def forward(self, x, y, *z)")
        with Session(source) as s:
            strides = [(1, 5), (6, 2), (4, 1)]
            first, second = s.inputs(0), s.inputs(1)
            self.assertEqual([x.stride() for x in first[:3]], strides)
            self.assertTrue(first[2][:, 0].equal(first[2][:, 3]))
            for call, inputs in ((0, first), (2, second)):
                self.assertTrue(s.right(call, (inputs[0] * 2, inputs[1])))

    def test_every_session_has_windows_of_its_own(self):
        with Session(task_source("x + 1", "[torch.randn(16)]")) as s:
            s.outside.fill_(9)
            s.inside.fill_(9)
            other, *fds = s.host.open()
            windows = [map_window(fd, s.result[name]) for fd, name in zip(fds, ("in_bytes", "out_bytes"))]
            self.assertNotEqual(other, s.number)
            self.assertEqual(int(windows[1].max()), 0)
            self.assertEqual(s.order("close"), True)
            with self.assertRaisesRegex(testing_client.HostError, "no session"):
                s.order("fill", trial=0)
            s.number, (s.inside, s.outside) = other, windows
            self.assertTrue(s.right(0, s.inputs(0)[0] + 1))
            self.assertEqual(s.order("close"), True)

    def test_no_more_sessions_than_it_says(self):
        with Session(task_source("x + 1", "[torch.randn(16)]")) as s:
            with self.assertRaisesRegex(testing_client.HostError, "128 sessions are open"):
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
                ({"replays": {"count": 1}}, "did not begin"),
                ({"nothing": 1}, "no order"),
                ({"fill": {"session": s.number, "trial": 99}}, "IndexError"),
            ):
                with self.assertRaisesRegex(testing_client.HostError, message):
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
            described = s.put((torch.ones(16), torch.arange(16, dtype=torch.int32)))
            s.order("keep", bytes=192)
            places = [leaf["offset"] for _, leaf in layout.leaves_of(described)]
            leaves = [
                {"dtype": dtype, "elements": 16, "offset": at, "kept_offset": at}
                for dtype, at in zip(("float32", "int32"), places)
            ]
            self.assertTrue(s.order("same", leaves=leaves, share=1e-6))
            s.outside[0] = 1  # less than one in a million
            self.assertTrue(s.order("same", leaves=leaves, share=1e-6))
            s.put((torch.full((16,), 1.01), torch.arange(16, dtype=torch.int32)))
            self.assertFalse(s.order("same", leaves=leaves, share=1e-6))
            self.assertTrue(s.order("same", leaves=leaves, share=1e-1))
            self.assertTrue(s.order("same", leaves=leaves[1:], share=0.0))
            with self.assertRaises(testing_client.HostError):
                s.order("same", leaves=[{**leaves[0], "kept_offset": 190}], share=0.1)

    def test_room_for_outputs_is_as_much_as_they_need(self):
        with Session(task_source("(x, x[:1], x.sum())", "[torch.randn(3000)]")) as s:
            self.assertEqual(s.result["out_bytes"], 4096 * 3)  # 12,000 bytes, and two of 4 behind them
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
            host._replays = None
            host._device = types.SimpleNamespace(modelled=True)
            errors = [error] * failures

            def fill(order):
                if errors:
                    raise errors.pop()
                return {"filled": True}

            host._fill = fill
            let_go.clear()
            message, *fds = host._answer({"fill": {}})
            self.assertEqual((len(let_go), fds), (int("memory" in str(error)), [(), ()]))
            if answer is None:
                self.assertTrue(message["out_of_memory"])
                self.assertIn("CUDA out of memory", message["error"])
            else:
                self.assertEqual(message, answer)


class AgainTest(unittest.TestCase):
    """With nothing kept all is made again, and is the same."""

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
        with Session(source, mode, keep_bytes=keep_bytes) as s:
            calls = list(range(len(s.result["calls"])))
            seen = [s.result["calls"], s.result["visible"], s.result["trials"]]
            for call in calls + calls[::-1]:
                leaves = layout.leaves_of(s.result["calls"][call]["output"])
                values = tuple(torch.full(leaf["shape"], 0.125) for kind, leaf in leaves if kind == "tensor")
                seen.append(s.compare(call, values if len(values) > 1 else values[0]))
                inputs = s.inputs(s.result["calls"][call]["trial"])
                seen.append(layout.map_tensors(inputs, torch.Tensor.tolist))
            return seen

    def test_the_same_again(self):
        for name, (source, mode) in self.SOURCES.items():
            with self.subTest(name):
                self.assertEqual(self.seen(source, mode, 1 << 30), self.seen(source, mode, 0))


if __name__ == "__main__":
    unittest.main()
