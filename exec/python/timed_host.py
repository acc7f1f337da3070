"""A reference host for candidates without data: inputs and expected outputs lie in two memories of the host that the
supervisor gets (it compares there), and this process stays to time the reference (formats: docs/protocol.md)."""

import fcntl
import os

import torch

import sources
from channel import SupervisorGone
from failures import describe, is_device_full
from oracle import Oracle
from outlets import SharedOutlet
from reference_host import Tf32, computes_right
from replays import Replays


def _memory(name, size):
    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return fd


class TimedHost:
    """One task's host."""

    def __init__(self, job, device, result, check_time):
        self._job, self._device, self._result = job, device, result
        self._tf32 = Tf32()
        self._fds = {name: _memory(name, job["own_memory"]) for name in ("visible", "hidden")}
        self._outlet = SharedOutlet(device, self._fds)
        self._oracle = Oracle(job, device, result, check_time, self._outlet)
        self._clock = self._model = self._replays = None
        self._inputs = self._state = None

    def make(self):
        """Runs the oracle's job; fills in the result's fields, those of a host as well."""
        self._oracle.run()
        visible = self._oracle.visible(self._outlet.inputs)
        memory = 0 if self._device.modelled else torch.cuda.get_device_properties().total_memory
        self._result.update(visible=visible, device_bytes=memory)
        if self._job["measure_time"]:
            self._inputs = self._outlet.read(0)
            self._state = self._outlet.value(visible["state"])
        # Nothing may be mapped for writing when the supervisor seals the memories.
        self._outlet.close()
        self._device.release()

    def serve(self, control):
        """One answer to each order, until there are no more. Whether the process is wanted for another task."""
        try:
            while "end" not in (order := control.receive()):
                if "drop" in order:
                    return True
                answer, fds = self._answer(order)
                control.send(answer, fds)
        except (SupervisorGone, ConnectionError, BrokenPipeError):
            pass
        finally:
            self._close()
        return False

    def _close(self):
        self._replays = self._model = self._inputs = self._state = None
        for fd in self._fds.values():
            os.close(fd)
        self._fds = {}

    def _answer(self, order):
        """(message, descriptors that go with it)."""
        try:
            ((name, what),) = order.items()
            if name == "export":
                return {"exported": True}, [self._fds["visible"], self._fds["hidden"]]
            if name == "replays":
                with self._tf32.as_at_first():
                    return self._time(what), ()
            if name == "check":
                return {"checked": computes_right(self._job["device"], what["elements"])}, ()
            raise ValueError(f"there is no order {name!r}")
        except Exception as error:
            self._replays = None
            message = {"error": describe(error)}
            return ({**message, "out_of_memory": True} if is_device_full(error) else message), ()

    def _time(self, order):
        if "begin" in order:
            return {"begun": self._begin(order["begin"])}
        if "end" in order:
            self._replays = None
            if self._clock is not None:
                self._clock[0].rest()
            self._device.release()
            return {"ended": True}
        if self._replays is None:
            raise ValueError("timing did not begin")
        if "plain" in order:
            return {"timed": {"seconds": self._replays.plain_seconds(order["plain"])}}
        watch = self._clock[1]
        before = watch()
        seconds = self._replays.seconds(order["count"])
        states = [state for state in (before, watch()) if state is not None]
        return {"timed": {"seconds": seconds, "gpu": states}}

    def _begin(self, how):
        self._replays = None
        if self._clock is None:
            self._clock = self._device.clock()
        if self._model is None:
            self._model = self._oracle.rebuild()
            sources.copy_state(self._state, self._model)
        clock, _, extra = self._clock
        seed, mutates = self._job["forward_seeds"][0], self._result["mutates_inputs"]
        self._replays = Replays(self._model, clock, self._inputs, seed, mutates, how["graph"])
        operator = self._replays.operator_seconds()
        return {"not_a_graph": self._replays.not_a_graph, "operator_seconds": operator, **extra}
