"""What a reference host keeps on its device of inputs, expected outputs and tolerances: as much as it may, and what had
to go is made again when it is asked for."""

import collections

import torch

import layout
import leaves as leaves_module
from leaves import Collector, Leaves, by_leaf, byte_count
from reference import fits

MOST_TOGETHER = 1 << 30  # bytes of all trials' inputs that may lie in a window at the same time


class Store:
    """Lists of tensors by key, (kind, number), of at most so many bytes; the least recently used go first. What was
    used last of a kind can be held beyond that, until another of the kind is."""

    def __init__(self, most_bytes):
        self._most = most_bytes
        self._items = collections.OrderedDict()
        self._held = {}  # by kind: (key, leaves)
        self.bytes = 0

    def put(self, key, leaves, hold=False):
        self.drop(key)
        if hold:
            self._held[key[0]] = (key, leaves)
        self._items[key] = leaves
        self.bytes += byte_count(leaves)
        while self.bytes > self._most and self._items:
            self._drop(next(iter(self._items)))

    def find(self, key):
        """The item if it is there, else None."""
        held, leaves = self._held.get(key[0], (None, None))
        if key in self._items:
            self._items.move_to_end(key)
            return self._items[key]
        return leaves if held == key else None

    def get(self, key, make, hold=False):
        """The item, made by `make` if it is not there."""
        leaves = self.find(key)
        if leaves is None:
            self.release(key[0])
            leaves = make()
            self.put(key, leaves)
        if hold:
            self._held[key[0]] = (key, leaves)
        return leaves

    def release(self, *kinds):
        """Nothing of these kinds (of any, if none is named) is held beyond the limit any more."""
        for kind in kinds or list(self._held):
            self._held.pop(kind, None)

    def drop(self, key):
        if key in self._items:
            self._drop(key)
        if self._held.get(key[0], (None,))[0] == key:
            del self._held[key[0]]

    def _drop(self, key):
        self.bytes -= byte_count(self._items.pop(key))

    def clear(self):
        """Gives everything up that can be made again."""
        self._items.clear()
        self._held.clear()
        self.bytes = 0


class KeptOutlet:
    """Where an oracle's job of a reference host puts what it makes (see outlets.py). Only descriptions leave it, and
    inputs by write_trial()."""

    def __init__(self, device, most_bytes):
        self._device = device
        self._place = "cpu" if device.modelled else "cuda"
        self.store = Store(most_bytes)
        self._constants = []  # (description, leaves, bytes)
        self._inputs = []  # by trial: (description, bytes, what makes its leaves)
        self._outputs = []  # by call: (description, what makes its leaves)
        self._precise = {}  # by call: what makes its leaves
        self._places = []  # in the window: of constants, then of trials
        self.out_bytes = 0

    def _collect(self, value, what):
        collector = Collector(self._place)
        return fits(collector.put(value), what), collector

    def _again(self, make, what):
        """What makes the same leaves once more."""
        return lambda: self._collect(make(), what)[1].leaves

    def constant(self, value, what):
        described, collector = self._collect(value, what)
        self._constants.append((described, collector.leaves, collector.size))
        return described

    def state(self):
        """The state that candidates get; the arguments come before it."""
        described, leaves, _ = self._constants[1]
        return Leaves(leaves, copy=False).get(described)

    def show(self, inputs, what, make):
        described, collector = self._collect(inputs, what)
        self.store.put(("inputs", len(self._inputs)), collector.leaves, hold=True)
        self._inputs.append((described, collector.size, self._again(make, what)))

    def _leaves_of(self, trial):
        return self.store.get(("inputs", trial), self._inputs[trial][2], hold=True)

    def read(self, trial):
        return Leaves(self._leaves_of(trial)).get(self._inputs[trial][0])

    def view(self, trial):
        """A trial's inputs, only to be read."""
        return Leaves(self._leaves_of(trial), copy=False).get(self._inputs[trial][0])

    def untouched(self, trial, placed):
        return self.view(trial)

    def expect(self, output, make):
        described, collector = self._collect(output, "forward's result")
        tensors = [leaf for leaf in collector.leaves if leaf is not None]
        needed = sum(layout.aligned(byte_count([leaf])) + layout.ALIGNMENT for leaf in tensors)
        self.out_bytes = max(self.out_bytes, needed)
        call = len(self._outputs)
        if call == 1 and leaves_module.same(self.store.find(("output", 0)), collector.leaves):
            self._outputs.append(self._outputs[0])  # the first call once more, with the same result
        else:
            self.store.put(("output", call), collector.leaves)
            self._outputs.append((described, self._again(make, "forward's result")))
        return described

    def precise(self, judged, make):
        """Descriptions of exact results and slack of the call that was expected last."""
        call = len(self._outputs) - 1
        exact, kept_exact = self._collect(judged.exact, "forward's result in float64")
        slack, kept_slack = self._collect(judged.slack, "the tolerance of forward's result")
        self.store.put(("precise", call), kept_exact.leaves + kept_slack.leaves)

        tensors = len(kept_exact.leaves)

        def again():
            once_more = make()
            if len(layout.tensors(once_more.exact)) != tensors:  # it was there before
                raise torch.OutOfMemoryError(f"out of memory for float64 results: {'; '.join(once_more.notes)}")
            return [leaf for value in (once_more.exact, once_more.slack) for leaf in self._collect(value, "")[1].leaves]

        self._precise[call] = (exact, slack, again)
        return {"exact": exact, "slack": slack}

    def probes(self, made):
        return None  # made when they are asked for

    def mark(self):
        return len(self._inputs), len(self._outputs), self.out_bytes

    def rewind(self, mark):
        trials, calls, self.out_bytes = mark
        for kind, first, last in (("inputs", trials, len(self._inputs)), ("output", calls, len(self._outputs))):
            for number in range(first, last):
                self.store.drop((kind, number))
        for call in range(calls, len(self._outputs)):
            self.store.drop(("precise", call))
            self._precise.pop(call, None)
        del self._inputs[trials:], self._outputs[calls:]

    def lay_out(self):
        """(job field "visible" of those who read the window, bytes that it takes)."""
        end = 0

        def place(described, size):
            start = layout.aligned(end)
            return leaves_module.moved(described, start), start + size

        self._places = []
        for described, _, size in self._constants:
            node, end = place(described, size)
            self._places.append(node)
        sizes = [size for _, size, _ in self._inputs]
        in_turn = sum(layout.aligned(size) for size in sizes) > MOST_TOGETHER
        behind = end
        for described, size, _ in self._inputs:
            node, last = place(described, size)
            self._places.append(node)
            behind = max(behind, last)
            end = end if in_turn else last
        arguments, state, *inputs = self._places
        visible = {"arguments": arguments, "state": state, "inputs": inputs}
        return ({**visible, "in_turn": True} if in_turn else visible), behind

    def write_constants(self, memory):
        for node, (_, leaves, _) in zip(self._places, self._constants):
            leaves_module.write(node, leaves, memory)

    def write_trial(self, memory, trial):
        leaves_module.write(self._places[len(self._constants) + trial], self._leaves_of(trial), memory)

    def _output(self, call):
        """(description, leaves) of what a call is expected to give."""
        if call == 1 and self._outputs[1] is self._outputs[0]:
            call = 0
        described, make = self._outputs[call]
        return described, self.store.get(("output", call), make, hold=True)

    def output_leaves(self, call):
        """By leaf of the call's flattened output a flat tensor, or None for what is none."""
        return by_leaf(*self._output(call))

    def output(self, call):
        """A call's output with tensors of its own."""
        described, leaves = self._output(call)
        return Leaves(leaves).get(described)

    def precise_leaf(self, call, leaf):
        """(exact, slack) of one leaf, flat; ValueError if it has none."""
        if call == 1 and 1 not in self._precise:
            call = 0  # the first call once more
        if call not in self._precise:
            raise ValueError(f"call {call} has no float64 result")
        exact, slack, make = self._precise[call]
        leaves = self.store.get(("precise", call), make, hold=True)
        half = len(leaves) // 2
        pair = by_leaf(exact, leaves[:half])[leaf], by_leaf(slack, leaves[half:])[leaf]
        if pair[0] is None or pair[1] is None:
            raise ValueError(f"leaf {leaf} of call {call} has no float64 result")
        return pair

    def calls(self):
        return len(self._outputs)

    def trials(self):
        return len(self._inputs)
