"""Rounds of timed calls on a GPU, ordered by the supervisor, which takes the time from outside as well.

The same code times the reference (in an oracle's process) and the candidate (in its own). What a candidate could do
to look faster, and why it does not help, stands in docs/verifier.md (Times).
"""

import statistics

import torch

import layout
from plain_torch import plain_torch

WARM_UPS = 3
STEP = 1.0 / 1024  # by so much at least the inputs of one timed call differ from those of another
KEPT_SHARE = 0.1  # of the free GPU memory: for the inputs of all trials, so that they need not be read again


class Rounds:
    """The rounds of one model.

    `clock` takes times, see cuda_clock.py: queued(prepare, call, keep, spin), plain(prepare, call, keep), both giving
    (seconds, kept); enqueue_seconds(prepare, call); free_bytes(). `seeds` are those of forward by trial, read(trial) a
    trial's inputs on the device, only to be read. `in_turn`: a trial's inputs are there only when load() asks for them.
    `watch()` gives the GPU's state or None.
    """

    def __init__(self, model, clock, seeds, read, trials, in_turn=False, watch=lambda: None):
        self._model = model
        self._clock = clock
        self._seeds = seeds
        self._read = read
        self._trials = trials
        self._watch = watch
        self._bases = {}  # inputs by trial
        self._most_bases = 1
        self._inputs = self._base = []
        self.load(0)
        if not in_turn:
            size = sum(tensor.numel() * tensor.element_size() for tensor in layout.tensors(self._base))
            self._most_bases = int(max(1, KEPT_SHARE * clock.free_bytes() / max(1, size)))
        self._varies = any(_scalable(tensor) for tensor in layout.tensors(self._base))

    def ready(self, extra):
        """What one call takes, measured before the rounds, and `extra`."""
        plain = [self._clock.plain(lambda: self._fill(0, 0), self._call, False)[0] for _ in range(WARM_UPS)]
        enqueue = [self._clock.enqueue_seconds(lambda: self._fill(0, 0), self._call) for _ in range(WARM_UPS)]
        return {"seconds": statistics.median(plain), "enqueue_seconds": statistics.median(enqueue), **extra}

    def _inputs_of(self, trial):
        if trial not in self._bases:
            while len(self._bases) >= self._most_bases:
                del self._bases[next(iter(self._bases))]
            self._bases[trial] = self._read(trial)
        return self._bases[trial]

    def load(self, trial):
        """Gets a trial's inputs ready; calls find them in the same places as those of the trial before."""
        self._base = []  # gigabytes, of which the next ones may need the memory
        self._base = self._inputs_of(trial)  # under torch's modes, as a reference host may have to make them again
        self._place_base()

    def move(self, pads):
        """Inputs, and what calls allocate, lie elsewhere in the GPU's memory from now on: where that is can make a
        kernel 30 % slower (docs/performance.md), and differs from process to process."""
        self._inputs = []
        self._clock.scatter(pads)
        self._place_base()
        self._clock.plain(lambda: self._fill(0, 0), self._call, False)  # allocates what it needs

    @plain_torch()
    def _place_base(self):
        old = iter(layout.tensors(self._inputs))

        def place(tensor):
            before = next(old, None)
            return before if before is not None and _alike(before, tensor) else tensor.clone()

        self._inputs = layout.map_tensors(self._base, place)

    def _call(self):
        with torch.no_grad():
            return self._model(*self._inputs)

    def _fill(self, trial, away):
        """The trial's inputs as they are (away 0), or others like them; no two of a round are the same."""
        base = self._base
        if away and not self._varies and self._most_bases >= self._trials:
            base = self._inputs_of((trial + away) % self._trials)  # whole numbers only: another trial's, with rows moved
        self._fill_from(base, away)

    @plain_torch()
    def _fill_from(self, base, away):
        for source, target in zip(layout.tensors(base), layout.tensors(self._inputs)):
            if not _alike(source, target):
                continue  # a trial of another shape: these keep what they held
            if not away:
                target.copy_(source)
            elif _scalable(source):
                torch.mul(source, 1.0 - away * _step(source.dtype), out=target)
            elif not self._varies and source.dim() > 1:
                target.copy_(source.roll(away, 0))
            else:
                target.copy_(source)

    def round(self, order):
        """(answer, output of the checked call). Each call gets inputs of its own, so that nothing kept from an earlier
        one is of use; that of number order["checked"] is on the trial's inputs as they are."""
        calls, trial, checked = order["calls"], order["trial"], order["checked"]
        before = self._watch()
        seconds, kept = [], None
        for number in range(calls):
            keep = number == checked

            def prepare(away=(number - checked) % calls):
                self._clock.seed(self._seeds[trial])
                self._fill(trial, away)

            if order["plain"]:
                taken, output = self._clock.plain(prepare, self._call, keep)
            else:
                taken, output = self._clock.queued(prepare, self._call, keep, order["spin_seconds"])
            seconds.append(taken)
            kept = output if keep else kept
        after = self._watch()
        return {"seconds": seconds, "gpu": [state for state in (before, after) if state is not None]}, kept


def serve(rounds, writer, control, check_time, extra):
    """Says that the rounds are ready; then a reply to each order until the supervisor has enough."""
    order = control.ask({"ready": rounds.ready(extra)})
    kept = None
    while "done" not in order:
        check_time("timing")
        if "show" in order:
            writer.reset()
            order = control.ask({"output": writer.put(kept)})
        elif "load" in order:
            rounds.load(order["load"])
            order = control.ask({"loaded": True})
        elif "move" in order:
            kept = None
            rounds.move(order["move"])
            order = control.ask({"moved": True})
        else:
            kept = None  # its memory may be needed
            answer, kept = rounds.round(order["round"])
            order = control.ask({"round": answer})


def _alike(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and a.stride() == b.stride()


def _scalable(tensor):
    return (tensor.is_floating_point() or tensor.is_complex()) and tensor.element_size() > 1


def _step(dtype):
    """Large enough that rounding does not undo it."""
    return max(STEP, 2 * torch.finfo(dtype).eps)
