"""Further calls of forward that the supervisor orders one by one once everything else is done: profiled, or with
kernels left out.

Nothing is judged here: an output goes to the supervisor as in an ordinary call, and an error is an answer like any
other.
"""

import contextlib
import math
import signal
import time

import torch

import layout
import phases
import sources
from channel import SupervisorGone
from failures import JobFailure, describe, one_line
from plain_torch import plain_torch

MAX_KERNELS = 64  # that are named to the supervisor
_MAX_NAME = 80
_MAX_TEXT = 200


class Ablation:
    """Serves orders until the supervisor has enough (formats: docs/protocol.md)."""

    def __init__(self, job, device, model, reader, writer, control, folder):
        self._job = job
        self._device = device
        self._model = model
        self._reader = reader
        self._writer = writer
        self._control = control
        self._folder = folder
        self._kernels = list(device.recorder.kernels)[:MAX_KERNELS]

    def serve(self):
        try:
            order = self._control.ask({"kernels": [[name[:_MAX_NAME], line] for name, line in self._kernels]})
            if "profile" in order:
                order = self._control.ask({"profiled": self._profile(order["profile"])})
            index = 0
            while "ablate" in order:
                order = self._control.ask({"ablated": index, **self._call(order["ablate"], index)})
                index += 1
        except SupervisorGone:
            pass

    def _profile(self, order):
        """{"output", "kernels", "note"} of one call, in which nothing of ours watches; without output after an error."""
        device, job, trial = self._device, self._job, order["trial"]
        try:
            with self._within(order["seconds"]):
                inputs = device.place(self._reader.get(job["visible"]["inputs"][trial]))
                sources.seed_everything(job["forward_seeds"][trial])
                with torch.no_grad():
                    output, kernels, note = device.profiled_call(lambda: self._model(*inputs))
                self._writer.reset()
                described = phases.hand_over(self._writer, device, output, self._folder)
            return {"output": described, "kernels": kernels, "note": one_line(note, _MAX_TEXT)}
        except Exception as error:
            return {"output": None, "kernels": [], "note": one_line(f"the call failed: {describe(error)}", _MAX_TEXT)}

    def _left_out(self, skip):
        """Whether a kernel, (name, line), is left out by an order's "skip"."""
        if skip == "all":
            return lambda kernel: True
        chosen = None if skip == "none" else self._kernels[skip]
        return lambda kernel: kernel == chosen

    def _call(self, order, index):
        """{"output", "raised", "late", "left_out"} of one call; exactly one of output and a text in raised is there."""
        device, job, trial = self._device, self._job, order["trial"]
        device.pattern, device.recorder.not_run = order["pattern"], 0
        try:
            with self._within(order["seconds"]):
                inputs = device.place(self._reader.get(job["visible"]["inputs"][trial]))
                _scale(inputs, order["scale"])
                device.recorder.left_out = self._left_out(order["skip"])
                seed = job["forward_seeds"][trial]
                output = phases.forward(job, device, self._model, inputs, seed, len(job["calls"]) + index, self._folder)
                self._writer.reset()
                described = phases.hand_over(self._writer, device, output, self._folder)
            answer = {"output": described, "raised": "", "late": False}
        except JobFailure as failure:
            text = one_line(failure.message, _MAX_TEXT) or failure.outcome
            answer = {"output": None, "raised": text, "late": failure.outcome == "timeout"}
        finally:
            device.recorder.left_out = lambda kernel: False
            device.recorder.kernel_errors.clear()
        return {**answer, "left_out": device.recorder.not_run}

    @contextlib.contextmanager
    def _within(self, seconds):
        """Ends what runs inside after so many seconds: kernels on the CPU by their own check, Python by an alarm."""
        recorder, before = self._device.recorder, self._device.recorder.deadline

        def late(*unused):
            raise JobFailure("timeout", "candidate", "forward", f"not done after {seconds:.1f} s")

        handler = signal.signal(signal.SIGALRM, late)
        try:
            recorder.deadline = time.monotonic() + seconds
            # A little later than the kernels' own check, which says where it was.
            signal.setitimer(signal.ITIMER_REAL, seconds + 0.2)
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, handler)
            recorder.deadline = before


@plain_torch()
def _scale(inputs, factor):
    """Multiplies all floating point inputs in place."""
    if factor == 1.0 or not math.isfinite(factor):
        return
    for tensor in layout.tensors(inputs):
        if tensor.is_floating_point() and tensor.element_size() == 1:
            tensor.copy_(tensor.float().mul_(factor))  # no arithmetic on 8 bits
        elif tensor.is_floating_point():
            tensor.mul_(factor)
