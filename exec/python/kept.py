"""What a reference host keeps on its device of inputs, expected outputs and tolerances: as much as it may, and what had
to go is made again when it is asked for."""

import torch

import layout
import leaves as leaves_module
from leaves import Collector, Leaves, by_leaf, byte_count, handed_over, window_layout
from reference import fits


class Store:
    """Lists of tensors by key, (kind, number), of at most so many bytes: what came first stays, as all are asked for in
    turn, again and again. What was used last of a kind can be held beyond that, until another of the kind is."""

    def __init__(self, most_bytes):
        self._most = most_bytes
        self._items = {}
        self._held = {}  # by kind: (key, leaves)
        self.bytes = 0

    def put(self, key, leaves, hold=False):
        self.drop(key)
        if hold:
            self._held[key[0]] = (key, leaves)
        if self.bytes + byte_count(leaves) <= self._most:
            self._items[key] = leaves
            self.bytes += byte_count(leaves)

    def find(self, key):
        """The item if it is there, else None."""
        held, leaves = self._held.get(key[0], (None, None))
        return leaves if held == key else self._items.get(key)

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

    def shrink(self, most_bytes):
        """From now on at most so much, if that is less."""
        self._most = min(self._most, most_bytes)
        while self.bytes > self._most:
            self._drop(list(self._items)[-1])

    def clear(self):
        """Gives everything up that can be made again."""
        self._items.clear()
        self._held.clear()
        self.bytes = 0


class KeptOutlet:
    """Where an oracle puts what it makes, on its device. From there it goes to memories or windows of the supervisor's.
    make() makes the same once more."""

    def __init__(self, device, most_bytes):
        self._device = device
        self._place = "cpu" if device.modelled else "cuda"
        self.store = Store(most_bytes)
        self._constants = []  # (description, leaves): arguments, state
        self._inputs = []  # by trial: (description, what makes its leaves)
        self._outputs = []  # by call: (description, what makes its leaves)
        self._precise = {}  # by call: (exact, slack, what makes their leaves)
        self._probes = {}  # by call: {name: (description, leaves) or None}
        self.bytes = 0  # of all inputs and outputs with their tolerances
        self.in_bytes = self.out_bytes = 0  # the most of one trial, and of one call
        self._windows = []  # by trial: description of its inputs in their window

    def _collect(self, value, what, place=None):
        collector = Collector(place or self._place)
        return fits(collector.put(value), what), collector.leaves

    def _again(self, make, what):
        """What makes the same leaves once more."""
        return lambda: self._collect(make(), what)[1]

    def constant(self, value, what):
        self._constants.append(self._collect(value, what))

    def state(self):
        """The state that candidates get; the arguments come before it."""
        described, leaves = self._constants[1]
        return Leaves(leaves, copy=False).get(described)

    def show(self, inputs, what, make):
        described, leaves = self._collect(inputs, what)
        self.store.put(("inputs", len(self._inputs)), leaves, hold=True)
        self._inputs.append((described, self._again(make, what)))
        window, size = window_layout(described)
        self._windows.append(window)
        self.in_bytes = max(self.in_bytes, size)
        self.bytes += byte_count(leaves)

    def _leaves_of(self, trial):
        return self.store.get(("inputs", trial), self._inputs[trial][1], hold=True)

    def read(self, trial):
        return Leaves(self._leaves_of(trial)).get(self._inputs[trial][0])

    def view(self, trial):
        """A trial's inputs, only to be read."""
        return Leaves(self._leaves_of(trial), copy=False).get(self._inputs[trial][0])

    def expect(self, output, make):
        described, leaves = self._collect(output, "forward's result")
        self.out_bytes = max(self.out_bytes, window_layout(described, spans=False)[1])
        self.bytes += byte_count(leaves)
        call = len(self._outputs)
        if call == 1 and leaves_module.same(self.store.find(("output", 0)), leaves):
            self._outputs.append(self._outputs[0])  # the first call once more, with the same result
        else:
            self.store.put(("output", call), leaves)
            self._outputs.append((described, self._again(make, "forward's result")))
        return described

    def precise(self, judged, make):
        """Descriptions of exact results and slack of the call that was expected last."""
        call = len(self._outputs) - 1
        exact, kept = self._collect(judged.exact, "forward's result in float64")
        slack, kept_slack = self._collect(judged.slack, "the tolerance of forward's result")
        tensors = len(kept)
        kept = kept + kept_slack
        self.store.put(("precise", call), kept)
        self.bytes += byte_count(kept)

        def again():
            once_more = make()
            if len(layout.tensors(once_more.exact)) != tensors:  # it was there before
                raise torch.OutOfMemoryError(f"out of memory for float64 results: {'; '.join(once_more.notes)}")
            return [leaf for value in (once_more.exact, once_more.slack) for leaf in self._collect(value, "")[1]]

        self._precise[call] = (exact, slack, again)
        return {"exact": exact, "slack": slack}

    def probes(self, made):
        """They go to memory of the host alone: only tasks that are handed over whole have them."""
        kept = {
            name: None if value is None else self._collect(value, f"the probe {name}", "cpu")
            for name, value in made().items()
        }
        self._probes[len(self._outputs) - 1] = kept
        return {name: None if made is None else made[0] for name, made in kept.items()}

    def mark(self):
        return len(self._inputs), len(self._outputs), self.in_bytes, self.out_bytes, self.bytes

    def rewind(self, mark):
        trials, calls, self.in_bytes, self.out_bytes, self.bytes = mark
        for kind, first, last in (("inputs", trials, len(self._inputs)), ("output", calls, len(self._outputs))):
            for number in range(first, last):
                self.store.drop((kind, number))
        for call in range(calls, len(self._outputs)):
            self.store.drop(("precise", call))
            self._precise.pop(call, None)
            self._probes.pop(call, None)
        del self._inputs[trials:], self._windows[trials:], self._outputs[calls:]

    def hand_over(self, result, visible, hidden):
        """Puts all into memories of the host, by two layout.Writer. With None for `hidden` that is the constants alone;
        of inputs the result says then where they will lie in a window."""
        arguments, state = [handed_over(node, leaves, visible) for node, leaves in self._constants]
        shown = {"arguments": arguments, "state": state, "inputs": self._windows}
        if hidden is not None:
            shown["inputs"] = [
                handed_over(node, self._leaves_of(trial), visible) for trial, (node, _) in enumerate(self._inputs)
            ]
            for call, described in enumerate(result["calls"]):
                self._hand_over_call(call, described, hidden)
        return shown

    def _hand_over_call(self, call, described, hidden):
        node, leaves = self._output(call)
        described["output"] = handed_over(node, leaves, hidden)
        if call in self._precise:
            exact, slack, make = self._precise[call]
            leaves = self.store.get(("precise", call), make, hold=True)
            half = len(leaves) // 2
            described["precise"].update(
                exact=handed_over(exact, leaves[:half], hidden), slack=handed_over(slack, leaves[half:], hidden)
            )
        if call in self._probes:
            described["probes"] = {
                name: None if made is None else handed_over(*made, hidden) for name, made in self._probes[call].items()
            }

    def write_trial(self, memory, trial):
        leaves_module.write(self._windows[trial], self._leaves_of(trial), memory)

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
