"""The reference host in a process of its own, without a GPU: windows, comparisons, probes, times, and what it makes
again."""

import os
import unittest

import testing
import torch
from testing import elementwise_candidate, task_source

import forged
import gpu_memory
import host_client
import kept
import layout
import one_process
import runner

TRIALS = 3
MORE = 12
BATCH_NORM = "        self.norm = nn.BatchNorm1d(16)\n        self.line = nn.Linear(16, 16)\n"
COUNTER = "        self.register_buffer('n', torch.zeros(()))\n"


def job(source, mode="paper", **fields):
    return {
        "role": "oracle",
        "reference_source": source,
        "weights_seed": 1,
        "input_seeds": list(range(10, 10 + TRIALS)),
        "forward_seeds": list(range(20, 20 + TRIALS + MORE)),
        "variant_seeds": list(range(50, 50 + MORE)) if mode == "robust" else [],
        "calls": [0, *range(TRIALS)],
        "mode": mode,
        **fields,
    }


class Session:
    """A host with one open session, seen from both sides of its windows."""

    def __init__(self, source, mode="paper", **fields):
        self.host = host_client.HostProcess(job(source, mode, **fields))
        self.result = self.host.result
        if self.result["outcome"] != "ok":
            return
        self.number, *fds = self.host.open()
        sizes = self.result["in_bytes"], self.result["out_bytes"]
        self.windows = [gpu_memory.Window.open(fd, size, "interpreter") for fd, size in zip(fds, sizes)]
        self.inside, self.outside = (window.bytes for window in self.windows)
        self.reader, self.writer = layout.Reader(self.inside), layout.Writer(self.outside)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.host.finish()

    def order(self, name, **what):
        return self.host.order({name: {"session": self.number, **what}})

    def inputs(self, trial):
        return self.reader.get(self.result["visible"]["inputs"][trial])

    def compare(self, call, value):
        """Differences by leaf of a value handed over as the call's output."""
        self.writer.reset()
        return host_client.compare_output(self.host, self.number, call, self.writer.put(value))

    def right(self, call, value):
        found = self.compare(call, value)
        return found is not None and not any(difference["bad"] for difference in found)

    def probe(self, name, call=0, leaf=0):
        limits = host_client.tolerance(self.result["calls"][call], leaf)
        return self.host.order({"probe": {"name": name, "call": call, "leaf": leaf, **limits}})


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
            with self.assertRaisesRegex(host_client.HostError, "16 sessions are open"):
                for _ in range(17):
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
        self.assertEqual((end["peak_bytes"], end["call_bytes"], end["device_bytes"]), (0, 0, 0))

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

    def test_a_candidate_runs_on_them_one_by_one(self):
        source = elementwise_candidate("v * 2.0")
        both = one_process.run_both(task_source("x * 2", "[torch.randn(1000)]"), source, windows=True)
        self.assertTrue(both.results[0]["visible"]["in_turn"])
        self.assertEqual(both.results[1]["outcome"], "ran", both.results[1])
        self.assertEqual([found[0]["bad"] for found, _, _ in both.calls], [0] * 6)


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
        with Session(source, mode, keep_bytes=keep_bytes, probes=True) as s:
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

    def test_a_counter_counts_on(self):
        with Session(*self.SOURCES["a counter"], keep_bytes=0) as s:
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
            self.assertEqual({name: s.probe(name)["bad"] > 0 for name in forged.NAMES}, dict.fromkeys(forged.NAMES, True))
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
        source = head + task_source(f"x / int({flag} == TIMED)", "[torch.ones(8)]")
        with Session(source, "robust", keep_bytes=0) as s:
            self.assertEqual(s.result["calls"][0]["precise"]["notes"], [])
            for _ in range(2):
                s.host.order({"time": {"begin": True}})
                s.host.order({"time": {"load": 1}})
                self.assertTrue(s.right(2, torch.ones(8)))
                s.host.order({"time": {"end": True}})

class WindowsTest(unittest.TestCase):
    """Candidates whose inputs and outputs go through windows."""

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


if __name__ == "__main__":
    unittest.main()
