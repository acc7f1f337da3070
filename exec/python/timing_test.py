"""Timed rounds on a simulated GPU: streams are times at which they will be done, the host has a clock of its own."""

import types
import unittest
import weakref
from unittest import mock

import torch

import cuda_clock
import layout
import nvml
import timing

HOST = 5e-6  # what one call of the driver takes the host


class Gpu:
    """Stands for torch.cuda. Work is done at once, but a write that is `after` comes when its stream is waited for."""

    def __init__(self):
        self.now = 0.0  # the host's clock
        self.streams = {"current": 0.0}
        self.later = []
        gpu = self

        class Event:
            def __init__(self, enable_timing):
                self.at = None

            def record(self):
                gpu.now += HOST
                gpu.streams["current"] = self.at = max(gpu.streams["current"], gpu.now)

            def elapsed_time(self, other):
                return (other.at - self.at) * 1e3

        self.Event = Event

    def work(self, seconds, stream="current", after=None, joins=False):
        """A kernel. On another stream it starts when the host says so, whatever the current stream does."""
        self.now += HOST
        begin = max(self.streams.get(stream, 0.0), self.now)
        if joins:
            begin = max(begin, self.streams["current"])
        self.streams[stream] = begin + seconds
        if joins:
            self.streams["current"] = self.streams[stream]
        if after is not None:
            self.later.append(after)

    def _sleep(self, cycles):
        self.work(cycles / 1e9)

    def synchronize(self):
        self.now = max(self.now, *self.streams.values()) + HOST
        for action in self.later:
            action()
        self.later = []

    def mem_get_info(self):
        return 1 << 30, 1 << 31

    def empty_cache(self):
        self.emptied = True

    def get_device_properties(self):
        return types.SimpleNamespace(multi_processor_count=132)


class ClockTest(unittest.TestCase):
    def setUp(self):
        self.gpu = Gpu()
        self.clock = cuda_clock.CudaClock(self.gpu, "cpu")

    def queued(self, call, spin=1e-3, keep=True):
        return self.clock.queued(lambda: None, call, keep, spin)

    def test_work_counts_and_launches_behind_a_wait_do_not(self):
        def call():
            for _ in range(10):
                self.gpu.work(20e-6)
            return torch.ones(3)

        seconds, kept = self.queued(call)
        self.assertAlmostEqual(seconds, 200e-6, delta=1e-9)
        self.assertEqual(kept.tolist(), [1, 1, 1])
        plain, _ = self.clock.plain(lambda: None, lambda: self.gpu.work(1e-6) or torch.ones(1), False)
        self.assertGreater(plain, 1e-6 + HOST / 2)

    def test_a_host_slower_than_the_wait_shows(self):
        def call():
            self.gpu.now += 5e-3
            self.gpu.work(20e-6)
            return torch.ones(1)

        self.assertGreater(self.queued(call)[0], 4e-3)
        self.assertLess(self.queued(call, spin=6e-3)[0], 30e-6)

    def test_a_side_stream_that_is_not_waited_for_counts_all_the_same(self):
        def call():
            self.gpu.work(3e-3, stream="side")
            return torch.ones(1)

        self.assertGreater(self.queued(call)[0], 1.9e-3)  # less what passed during the wait

    def test_a_side_stream_that_is_joined_counts_once(self):
        def call():
            self.gpu.work(3e-3, stream="side", joins=True)
            return torch.ones(1)

        self.assertAlmostEqual(self.queued(call)[0], 3e-3, delta=1e-5)

    def test_what_is_written_after_the_end_is_not_in_the_output(self):
        def call():
            output = torch.zeros(2)
            self.gpu.work(1e-6, stream="side", after=lambda: output.fill_(7))
            return output

        self.assertEqual(self.queued(call)[1].tolist(), [0, 0])

    def test_a_lazy_output_is_computed_inside_the_window(self):
        gpu = self.gpu

        class Lazy(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types_, args=(), kwargs=None):
                if function is torch.Tensor.clone:
                    gpu.work(500e-6)
                return super().__torch_function__(function, types_, args, kwargs or {})

        seconds, _ = self.queued(lambda: (torch.ones(2).as_subclass(Lazy),))
        self.assertGreater(seconds, 499e-6)

    def test_small_pieces_are_held_until_others_are_or_it_rests(self):
        for pads in (3, 0, 2):
            self.clock.scatter(pads)
            self.assertEqual([pad.numel() for pad in self.clock._pads], [*cuda_clock.PAD_BYTES] * pads)
        self.assertTrue(self.gpu.emptied)
        self.clock.rest()
        self.assertEqual(self.clock._pads, [])

    def test_a_full_gpu_has_no_room_for_pieces(self):
        with mock.patch.object(torch, "empty", side_effect=torch.OutOfMemoryError):
            self.clock.scatter(3)
        self.assertEqual(self.clock._pads, [])

    def test_nothing_is_kept_unless_asked_for(self):
        self.assertIsNone(self.queued(lambda: torch.ones(1), keep=False)[1])

    def test_enqueue_seconds(self):
        def call():
            end = cuda_clock.time.perf_counter() + 2e-3
            while cuda_clock.time.perf_counter() < end:
                pass
            return torch.ones(1)

        self.assertGreaterEqual(self.clock.enqueue_seconds(lambda: None, call), 2e-3)


class Script:
    """Takes the supervisor's place: gives one order after the other and keeps the answers."""

    def __init__(self, orders):
        self.orders = [*orders, {"done": True}]
        self.answers = []

    def ask(self, message):
        self.answers.append(message)
        return self.orders.pop(0)


def order(calls, checked, plain=False, trial=0):
    return {"round": {"calls": calls, "trial": trial, "checked": checked, "spin_seconds": 1e-4, "plain": plain}}


class RoundsTest(unittest.TestCase):
    def serve(self, inputs, model, orders, watch=lambda: None):
        """The answers to `orders`; `inputs` holds a list for each trial."""
        seeds = [11 + i for i in range(len(inputs))]
        writer = types.SimpleNamespace(reset=lambda: None, put=lambda value: value)
        script = Script(orders)
        clock = cuda_clock.CudaClock(Gpu(), "cpu")
        read = lambda trial: layout.map_tensors(inputs[trial], torch.clone)
        rounds = timing.Rounds(model, clock, seeds, read, len(inputs), watch=watch)
        timing.serve(rounds, writer, script, lambda phase: None, {"bytes_per_second": 5.0})
        return script.answers

    def seen(self, inputs, calls=8, checked=5):
        """Contents of the first input in the timed calls of one round, and what was shown."""
        contents = []

        def model(x, *rest):
            contents.append(x.clone())
            return x * 2

        answers = self.serve(inputs, model, [order(calls, checked), {"show": True}])
        return contents[-calls:], answers[-1]["output"]

    def test_each_call_has_inputs_of_its_own_and_the_checked_one_the_trials(self):
        for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.complex64):
            trial = torch.linspace(1, 2, 64).to(dtype).reshape(8, 8)
            contents, shown = self.seen([[trial], [trial + 1]])
            self.assertTrue(contents[5].equal(trial))
            self.assertTrue(shown.equal(trial * 2))
            for i in range(8):
                for j in range(i):
                    self.assertFalse(contents[i].equal(contents[j]), (dtype, i, j))

    def test_whole_numbers_vary_too(self):
        trials = [[torch.randint(0, 1000, (16, 4), generator=torch.Generator().manual_seed(i))] for i in range(5)]
        contents, shown = self.seen(trials)
        self.assertTrue(shown.equal(trials[0][0] * 2))
        for i in range(8):
            for j in range(i):
                self.assertFalse(contents[i].equal(contents[j]), (i, j))
        domain = torch.cat([t[0] for t in trials]).unique()
        self.assertTrue(all(torch.isin(content, domain).all() for content in contents))

    def test_a_result_kept_by_address_is_wrong(self):
        kept = {}

        def model(x):
            return kept.setdefault(x.data_ptr(), x * 2)

        orders = [{"load": 1}, order(4, 2), {"show": True}]
        answers = self.serve([[torch.ones(4)], [torch.full((4,), 3.0)]], model, orders)
        self.assertFalse(answers[-1]["output"].equal(torch.full((4,), 6.0)))

    def test_a_trial_of_another_shape_and_other_values(self):
        def model(x, factor):
            return x * factor

        show = {"show": True}
        orders = [{"load": 1}, order(3, 0, trial=1), show, {"load": 0}, order(2, 1, plain=True), show]
        answers = self.serve([[torch.ones(4), 2], [torch.ones(2, 3), 5]], model, orders)
        self.assertEqual([list(answer) for answer in answers[1:]], [["loaded"], ["round"], ["output"]] * 2)
        self.assertTrue(answers[3]["output"].equal(torch.full((2, 3), 5.0)))
        self.assertTrue(answers[6]["output"].equal(torch.full((4,), 2.0)))

    def test_moved_inputs_are_the_same_elsewhere(self):
        places = []

        def model(x):
            places.append(x.data_ptr())
            return x * 2

        orders = [{"load": 1}, {"move": 2}, order(2, 1, trial=1), {"show": True}]
        trials = [[torch.ones(1 << 16)], [torch.full((1 << 16,), 3.0)]]
        answers = self.serve(trials, model, [{"load": 0}, order(1, 0), *orders])
        self.assertEqual(answers[4], {"moved": True})
        self.assertTrue(answers[-1]["output"].equal(torch.full((1 << 16,), 6.0)))
        self.assertEqual(len(set(places[-3:])), 1)  # one call that is not timed, and the round

    def test_trials_that_take_turns_are_read_when_they_are_loaded(self):
        read = []

        def inputs_of(trial):
            read.append(trial)
            return [torch.arange(8).reshape(4, 2) + trial]

        clock = cuda_clock.CudaClock(Gpu(), "cpu")
        for in_turn, reads in ((True, [0, 1, 0]), (False, [0, 1, 2])):
            read.clear()
            rounds = timing.Rounds(lambda x: x, clock, [1, 2, 3], inputs_of, 3, in_turn)
            rounds.ready({})
            for trial in (1, 0):
                rounds.load(trial)
                _, kept = rounds.round(order(4, 1, trial=trial)["round"])
                self.assertEqual(kept.tolist(), (torch.arange(8).reshape(4, 2) + trial).tolist())
            self.assertEqual(read, reads)

    def test_of_trials_that_take_turns_one_is_in_memory(self):
        made = []

        def inputs_of(trial):
            self.assertEqual([number for number, old in enumerate(made) if old() is not None], [])
            inputs = torch.full((4, 2), float(trial))
            made.append(weakref.ref(inputs))
            return [inputs]

        rounds = timing.Rounds(lambda x: x, cuda_clock.CudaClock(Gpu(), "cpu"), [1, 2, 3], inputs_of, 3, in_turn=True)
        for trial in (1, 2, 0):
            rounds.load(trial)
        self.assertEqual(len(made), 4)

    def test_says_what_it_saw(self):
        state = {"sm_mhz": 1500, "other_programs": 0, "throttled": False}
        answers = self.serve([[torch.ones(4)]], lambda x: x * 2, [order(3, 0)], lambda: state)
        ready, answer = answers[0]["ready"], answers[1]["round"]
        self.assertEqual(ready["bytes_per_second"], 5.0)
        self.assertGreater(ready["seconds"], 0)
        self.assertGreater(ready["enqueue_seconds"], 0)
        self.assertEqual(answer["gpu"], [state, state])
        self.assertEqual(len(answer["seconds"]), 3)
        self.assertTrue(all(seconds > 0 for seconds in answer["seconds"]))


class NvmlTest(unittest.TestCase):
    def library(self, processes=3, reasons=0x4):
        def clock(handle, kind, value):
            value._obj.value = 1980
            return 0

        def throttle(handle, value):
            value._obj.value = reasons
            return 0

        def running(handle, count, infos):
            count._obj.value = processes
            return 0

        return types.SimpleNamespace(
            nvmlInit_v2=lambda: 0,
            nvmlDeviceGetHandleByUUID=lambda uuid, handle: 0 if uuid == b"GPU-1" else 2,
            nvmlDeviceGetClockInfo=clock,
            nvmlDeviceGetCurrentClocksThrottleReasons=throttle,
            nvmlDeviceGetComputeRunningProcesses_v3=running,
        )

    def test_reads(self):
        watch = nvml.open_watch("GPU-1", load=lambda name: self.library())
        self.assertEqual(watch.read(), {"sm_mhz": 1980, "other_programs": 1, "throttled": True})
        watch = nvml.open_watch("GPU-1", load=lambda name: self.library(2, 0x1))
        self.assertEqual(watch.read(), {"sm_mhz": 1980, "other_programs": 0, "throttled": False})

    def test_where_it_cannot_be_used(self):
        def missing(name):
            raise OSError("no such library")

        self.assertIsNone(nvml.open_watch("GPU-1", load=missing))
        self.assertIsNone(nvml.open_watch("GPU-2", load=lambda name: self.library()))
        self.assertIsNone(nvml.open_watch("GPU-1", load=lambda name: types.SimpleNamespace()))


if __name__ == "__main__":
    unittest.main()
