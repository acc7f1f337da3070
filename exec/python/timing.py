"""Rounds of timed calls on a GPU, ordered by the supervisor, which takes the time from outside as well.

The same code times the reference (in an oracle's process) and the candidate (in its own).
"""

import statistics

import torch

import layout
import sources

WARM_UPS = 3
STEP = 1.0 / 1024  # by so much the inputs of one timed call differ from those of the one before


class Rounds:
    """Serves rounds until the supervisor has enough. `timed(f)` gives (seconds, result) of one call of f."""

    def __init__(self, job, device, model, reader, writer, control):
        self._job = job
        self._device = device
        self._model = model
        self._reader = reader
        self._writer = writer
        self._control = control
        self._timed = device.timer()
        self._base = device.place(reader.get(job["visible"]["inputs"][0]))
        self._inputs = layout.map_tensors(self._base, lambda tensor: tensor.clone())

    def serve(self, check_time, extra):
        """Says that it is ready, with what one call takes and `extra`; then a reply to each order."""
        seconds = [self._call()[0] for _ in range(WARM_UPS)]
        order = self._control.ask({"ready": {"seconds": statistics.median(seconds), **extra}})
        while "round" in order:
            check_time("timing")
            order = self._control.ask({"round": self._round(order["round"]["calls"], order["round"]["trial"])})

    def _call(self):
        with torch.no_grad():
            return self._timed(lambda: self._model(*self._inputs))

    def _fill(self, factor):
        for base, target in zip(layout.tensors(self._base), layout.tensors(self._inputs)):
            if factor != 1.0 and base.is_floating_point():
                torch.mul(base, factor, out=target)
            else:
                target.copy_(base)

    def _round(self, calls, trial):
        """`calls` timed calls, each on inputs of its own, so that nothing kept from an earlier one is of use. The last
        one is on the trial's inputs as they are; its output goes to the supervisor."""
        fresh = self._device.place(self._reader.get(self._job["visible"]["inputs"][trial]))
        self._base = fresh
        seconds = []
        for left in range(calls - 1, -1, -1):
            self._fill(1.0 - left * STEP)
            if left == 0:
                sources.seed_everything(self._job["forward_seeds"][trial])
            taken, output = self._call()
            seconds.append(taken)
        self._writer.reset()
        return {"seconds": seconds, "output": self._writer.put(output)}
