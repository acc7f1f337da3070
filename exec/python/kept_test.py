"""What a reference host keeps, lets go and makes again."""

import types
import unittest
import unittest.mock
import weakref

import testing  # first: it finds the others
import torch

import layout
import leaves
from kept import KeptOutlet, Store
from snapshots import Snapshots

EMPTY = torch.empty
_DEVICE = types.SimpleNamespace(modelled=True)


class StoreTest(unittest.TestCase):
    def setUp(self):
        self.made = []

    def maker(self, name, elements=10):
        def make():
            self.made.append(name)
            return [torch.zeros(elements), None]

        return make

    def test_what_came_first_stays(self):
        store = Store(100)
        for number in range(3):
            store.put(("output", number), self.maker(number)())
        self.assertEqual(store.bytes, 80)
        self.assertIsNotNone(store.find(("output", 1)))
        self.assertIsNone(store.find(("output", 2)))
        store.get(("output", 2), self.maker("again 2"))
        store.get(("output", 0), self.maker("never"))
        self.assertEqual(self.made, [0, 1, 2, "again 2"])
        store.shrink(50)
        store.shrink(200)
        self.assertEqual((store.bytes, store.find(("output", 1))), (40, None))

    def test_what_is_larger_than_all_is_not_kept(self):
        store = Store(100)
        store.put(("output", 0), self.maker("small")())
        store.put(("output", 1), self.maker("large", 1000)())
        self.assertEqual(store.bytes, 40)
        self.assertIsNone(store.find(("output", 1)))

    def test_the_last_of_a_kind_is_held_while_it_is_used(self):
        store = Store(0)
        for _ in range(3):
            store.get(("output", 0), self.maker("a"), hold=True)
        self.assertEqual((self.made, store.bytes), (["a"], 0))
        store.get(("inputs", 0), self.maker("b"), hold=True)
        store.get(("output", 1), self.maker("c"), hold=True)
        store.get(("inputs", 0), self.maker("never"), hold=True)
        store.get(("output", 0), self.maker("a again"))
        self.assertEqual(self.made, ["a", "b", "c", "a again"])
        store.release("inputs")
        store.get(("inputs", 0), self.maker("b again"))
        self.assertEqual(self.made[-1], "b again")
        store.release()
        self.assertIsNone(store.find(("output", 0)))

    def test_put_again_and_drop(self):
        store = Store(1000)
        for _ in range(3):
            store.put(("output", 0), self.maker("a")(), hold=True)
        self.assertEqual(store.bytes, 40)
        store.drop(("output", 0))
        self.assertEqual(store.bytes, 0)
        self.assertIsNone(store.find(("output", 0)))
        store.drop(("output", 0))
        store.put(("output", 0), self.maker("a")())
        store.clear()
        self.assertEqual((store.bytes, store.find(("output", 0))), (0, None))


class LeavesTest(unittest.TestCase):
    def test_values_come_back_as_they_were(self):
        value = [torch.randn(3, 4).t(), {"a": torch.tensor(3), "b": None}, torch.empty(0, 2), torch.randn(2).conj()]
        collector = leaves.Collector("cpu")
        described = collector.put(value)
        value[0].zero_()
        got = leaves.Leaves(collector.leaves).get(described)
        self.assertEqual(got[0].stride(), (1, 4))
        self.assertNotEqual(float(got[0].abs().sum()), 0)
        self.assertEqual((int(got[1]["a"]), got[1]["b"], tuple(got[2].shape)), (3, None, (0, 2)))
        view = leaves.Leaves(collector.leaves, copy=False).get(described)
        self.assertEqual(view[1]["a"].data_ptr(), collector.leaves[1].data_ptr())
        self.assertNotEqual(got[1]["a"].data_ptr(), collector.leaves[1].data_ptr())
        by_leaf = leaves.by_leaf(described, collector.leaves)
        self.assertEqual([leaf is None for leaf in by_leaf], [False, False, True, False, False])

    def test_written_where_a_window_says(self):
        value = [torch.randn(7), torch.empty(0), torch.randn(4, 6)[:, ::2], (torch.ones(3, 1).expand(3, 4), 5)]
        collector = leaves.Collector("cpu")
        described = collector.put(value)
        for spans, strides in ((True, [(1,), (6, 2), (4, 1)]), (False, [(1,), (3, 1), (4, 1)])):
            node, size = leaves.window_layout(described, spans)
            memory = torch.zeros(size, dtype=torch.uint8)
            leaves.write(node, collector.leaves, memory)
            tensors = [value for kind, value in layout.leaves_of(node) if kind == "tensor" and 0 not in value["shape"]]
            self.assertEqual([tuple(tensor["stride"]) for tensor in tensors], strides)
            for tensor, want in zip(tensors, (value[0], value[2], value[3][0])):
                flat = memory[tensor["offset"] :].clone()
                flat = flat[: flat.numel() // 4 * 4].view(torch.float32)
                self.assertTrue(flat.as_strided(tensor["shape"], tensor["stride"]).equal(want))


class OutletTest(unittest.TestCase):
    def outlet(self, most_bytes, sizes=(100, 300)):
        outlet = KeptOutlet(_DEVICE, most_bytes)
        outlet.constant([3, torch.ones(2)], "arguments")
        outlet.constant({"w": torch.full((5,), 2.0)}, "state")
        for trial, size in enumerate(sizes):
            make = lambda trial=trial, size=size: [torch.full((size,), trial + 1.0), "text"]
            outlet.show(make(), "inputs", make)
        return outlet

    def test_trials_take_turns_in_a_window(self):
        outlet = self.outlet(0)
        self.assertEqual((outlet.in_bytes, outlet.bytes), (1200, 1600))
        memory = torch.zeros(1200, dtype=torch.uint8)
        for trial, size in ((1, 300), (0, 100)):
            outlet.write_trial(memory, trial)
            self.assertEqual(memory.view(torch.float32)[:size].unique().tolist(), [trial + 1.0])

    def test_what_is_forgotten_is_gone(self):
        outlet = self.outlet(1 << 20)
        outlet.expect(torch.ones(4), None)
        mark, before = outlet.mark(), (outlet.store.bytes, outlet.in_bytes, outlet.out_bytes, outlet.bytes)
        outlet.show([torch.ones(5000)], "inputs", None)
        outlet.show([torch.ones(50)], "inputs", None)
        outlet.expect(torch.ones(4000), None)
        outlet.precise(types.SimpleNamespace(exact=[torch.ones(4)], slack=[torch.ones(4)]), None)
        outlet.rewind(mark)
        self.assertEqual((outlet.store.bytes, outlet.in_bytes, outlet.out_bytes, outlet.bytes), before)
        self.assertEqual(outlet.mark()[:2], (2, 1))

    def test_what_is_not_kept_is_nowhere(self):
        outlet, watched = self.outlet(0), []

        def watch(tensor):
            watched.append(weakref.ref(tensor))
            return tensor

        with unittest.mock.patch.object(torch, "empty", lambda *args, **kwargs: watch(EMPTY(*args, **kwargs))):
            outlet.expect(torch.ones(4), None)
            outlet.precise(types.SimpleNamespace(exact=[torch.ones(4)], slack=[torch.ones(4)]), None)
            outlet.show([torch.ones(4)], "inputs", None)
        outlet.store.release()
        self.assertEqual([reference() for reference in watched], [None] * 4)

    def test_tolerances_are_made_again_whole_or_not_at_all(self):
        outlet = self.outlet(0)
        outlet.expect(torch.ones(4), None)
        make = lambda *tensors: types.SimpleNamespace(exact=[*tensors, None], slack=[*tensors, None], notes=["no room"])
        made = [make(torch.ones(4)), make(None)]
        outlet.precise(make(torch.ones(4)), lambda: made.pop(0))
        exact, slack = outlet.precise_leaf(0, 0)
        self.assertEqual((exact.tolist(), slack.tolist()), ([1.0] * 4, [1.0] * 4))
        outlet.store.release()
        with self.assertRaisesRegex(torch.OutOfMemoryError, "no room"):
            outlet.precise_leaf(0, 0)

    def test_one_result_for_the_call_that_comes_twice(self):
        outlet = self.outlet(1 << 20)
        outlet.expect(torch.ones(100), lambda: torch.ones(100))
        before = outlet.store.bytes
        outlet.expect(torch.ones(100), None)
        self.assertEqual(outlet.store.bytes, before)
        outlet.store.clear()
        self.assertEqual(outlet.output(1).tolist(), [1.0] * 100)
        self.assertEqual(outlet.output_leaves(1)[0].tolist(), [1.0] * 100)


class SnapshotsTest(unittest.TestCase):
    def test_back_and_forth(self):
        model = torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.BatchNorm1d(4).eval())
        snapshots, taken, results = Snapshots({"own": model, "none": 3}), [], []
        x = torch.randn(8, 4)
        for _ in range(3):
            taken.append(snapshots.take())
            model(x)
            results.append(model[0].running_mean.clone())
        snapshots.restore(taken[1])
        model(x)
        self.assertTrue(model[0].running_mean.equal(results[1]))
        self.assertEqual(int(model[0].num_batches_tracked), 2)
        # What did not change is there once.
        keys = ("own", "0.running_mean"), ("own", "1.running_mean")
        self.assertIsNot(taken[0][keys[0]], taken[1][keys[0]])
        self.assertIs(taken[0][keys[1]], taken[2][keys[1]])

    def test_a_buffer_that_became_another_tensor(self):
        model = torch.nn.Module()
        model.register_buffer("last", torch.zeros(2))
        snapshots = Snapshots({"own": model})
        taken = snapshots.take()
        for other in (torch.ones(5), torch.ones(1).expand(2)):
            model.last = other
            snapshots.restore(taken)
            self.assertEqual(model.last.tolist(), [0, 0])
        model.last.fill_(3)
        self.assertEqual(taken[("own", "last")].tolist(), [0, 0])


if __name__ == "__main__":
    unittest.main()
