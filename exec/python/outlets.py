"""Where an oracle puts what it makes. An outlet has
  constant(value, what)        description of the constructor's arguments, or of the state
  show(inputs, what, make)     takes the next trial's inputs; make() makes the same ones again
  read(trial)                  a trial's inputs as a candidate will get them, on the device
  untouched(trial, placed)     those inputs once more, to see later whether forward changed them
  expect(output, make)         description of the next call's expected output
  precise(judged, make)        {"exact", "slack"}: descriptions, of the call before
  probes(made)                 descriptions of made() by name; None if they are not made yet
  mark(), rewind(mark)         forgets what came since
SharedOutlet writes shared memory; kept.KeptOutlet keeps everything to itself.
"""

import layout
from reference import fits


class SharedOutlet:
    """Two memories that the supervisor gave: "visible" for what a candidate may see, "hidden" for what it may not."""

    def __init__(self, device, fds):
        self._device = device
        self._visible, self._hidden = layout.Writer(fds["visible"]), layout.Writer(fds["hidden"])
        self._reader = layout.Reader(fds["visible"])
        self.inputs = []  # descriptions by trial

    def constant(self, value, what):
        return fits(self._visible.put(value), what)

    def show(self, inputs, what, make):
        self.inputs.append(fits(self._visible.put(inputs), what))

    def read(self, trial):
        return self._device.read(self._reader, self.inputs[trial])

    def untouched(self, trial, placed):
        return layout.map_tensors(placed, lambda tensor: tensor.clone())

    def expect(self, output, make):
        return fits(self._hidden.put(output), "forward's result")

    def precise(self, judged, make):
        return {
            "exact": fits(self._hidden.put(judged.exact), "forward's result in float64"),
            "slack": fits(self._hidden.put(judged.slack), "the tolerance of forward's result"),
        }

    def probes(self, made):
        return {
            name: None if value is None else fits(self._hidden.put(value), f"the probe {name}")
            for name, value in made().items()
        }

    def value(self, described):
        """What was shown or constant, on the device."""
        return self._device.read(self._reader, described)

    def close(self):
        """Maps the memories no longer. Nothing can be put or read any more."""
        self._visible = self._hidden = self._reader = None

    def mark(self):
        return self._visible.mark(), self._hidden.mark(), len(self.inputs)

    def rewind(self, mark):
        self._visible.rewind(mark[0])
        self._hidden.rewind(mark[1])
        del self.inputs[mark[2] :]
