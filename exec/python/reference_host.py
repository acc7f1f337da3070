"""The reference host: an oracle's process that stays alive. It hands inputs and expected outputs over, compares and
times, as the supervisor orders (formats: docs/protocol.md).

Small tasks go whole into two memories of the host, and the supervisor compares. Of larger ones the inputs of one call
at a time lie in a window of this process's memory; the outputs come in another one and are compared here. An executor
maps both windows: nothing secret may lie there, and what decides about an element is read there once.
"""

import contextlib
import fcntl
import os

import torch

import compare
import gpu_memory
import layout
import sources
from channel import SupervisorGone
from failures import describe, is_device_full, memory_outcome
from kept import KeptOutlet
from oracle import Oracle
from plain_torch import plain_torch
from replays import Replays

MOST_SESSIONS = 128
MOST_UNUSED = 1 << 30  # bytes of torch's that may lie idle while others need the GPU's memory
# A call's inputs and outputs so often: in windows, with tags in an executor, and here.
COPIES = 6


class _Session:
    """Windows of one candidate, and what was kept aside of its output."""

    def __init__(self, inputs, outputs):
        self.inputs, self.outputs, self.kept = inputs, outputs, None
        self.first = {}  # by leaf: sampled elements of the first call, as wanted and as they were

    def close(self):
        self.kept = None
        self.first.clear()
        self.inputs.close()
        self.outputs.close()


class Tf32:
    """Whether products may be tf32: as the task leaves it for timing, never for expected results of robust rules."""

    def __init__(self):
        self._flags = self._now()

    @staticmethod
    def _now():
        return torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32

    @staticmethod
    def _set(flags):
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = flags

    @contextlib.contextmanager
    def as_at_first(self):
        """The flags of this object's making; what changes them inside stays for the next time."""
        before = self._now()
        self._set(self._flags)
        try:
            yield
        finally:
            self._flags = self._now()
            self._set(before)


def computes_right(device, elements):
    """Whether the device computes what the CPU does: whole numbers below 2^24 are exact, whatever the order."""
    numbers = torch.arange(elements, dtype=torch.float32, device="cpu")
    place = "cuda" if device == "cuda" else "cpu"
    computed = torch.flip(numbers.to(place), [0]) * 2 + 1
    return torch.equal(computed.cpu(), torch.flip(numbers, [0]) * 2 + 1)


def _memory(name, size):
    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return fd


class Host:
    """One task's host."""

    def __init__(self, job, device, result, check_time):
        self._job, self._device, self._result = job, device, result
        self._tf32 = Tf32()
        # Where the memory was not enough before, nothing is kept.
        self._outlet = KeptOutlet(device, 0 if job["has_all_memory"] else job["keep_bytes"])
        self._oracle = Oracle(job, device, result, check_time, self._outlet)
        self._fds, self._call_bytes = {}, 0
        self._sessions, self._last_session = {}, 0
        self._clock = self._model = self._replays = None

    def make(self):
        """Runs the oracle's job; fills in the result's fields, those of a host as well."""
        self._oracle.run()
        job, outlet = self._job, self._outlet
        self._fds = {name: _memory(name, job["own_memory"]) for name in ("visible", "hidden")}
        whole = outlet.bytes <= job["whole_bytes"] or job["probes"]
        visible = layout.Writer(self._fds["visible"])
        shown = outlet.hand_over(self._result, visible, layout.Writer(self._fds["hidden"]) if whole else None)
        self._result.update(
            visible={**shown, "varied": self._oracle.varied},
            in_bytes=0 if whole else gpu_memory.round_up(outlet.in_bytes, job["device"]),
            out_bytes=0 if whole else gpu_memory.round_up(outlet.out_bytes, job["device"]),
            call_bytes=self._oracle.peak.call_bytes,
            device_bytes=0 if self._device.modelled else torch.cuda.get_device_properties().total_memory,
        )
        # Nothing may be mapped for writing when the supervisor seals the memories.
        del visible
        outlet.store.release()
        if not self._device.modelled:
            self._call_bytes = outlet.in_bytes + outlet.out_bytes
            room = self._result["device_bytes"] * 7 // 8 - COPIES * self._call_bytes
            outlet.store.shrink(max(0, room))
        self._trim(0)

    def serve(self, control):
        """One answer to each order, until there are no more. Whether the process is wanted for another task."""
        try:
            while "end" not in (order := control.receive()):
                if "drop" in order:
                    return True
                answer, fds, own = self._answer(order)
                try:
                    control.send(answer, fds)
                finally:
                    for fd in own:
                        os.close(fd)
        except (SupervisorGone, ConnectionError, BrokenPipeError):
            pass
        finally:
            self._end()
        return False

    def _end(self):
        self._replays = self._model = None
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()
        for fd in self._fds.values():
            os.close(fd)
        self._fds = {}

    def _answer(self, order):
        """(message, descriptors that go with it, those of them to be closed then)."""
        try:
            try:
                return self._obey(order)
            except Exception as error:
                if memory_outcome(error) is None:
                    raise
            self._outlet.store.clear()
            self._trim(0)
            return self._obey(order)
        except Exception as error:
            self._replays = None
            message = {"error": describe(error)}
            return ({**message, "out_of_memory": True} if is_device_full(error) else message), (), ()

    def _obey(self, order):
        ((name, what),) = order.items()
        if name == "export":
            return {"exported": True}, [self._fds["visible"], self._fds["hidden"]], ()
        if name == "open":
            return self._open()
        if name not in ("fill", "compare", "follow", "keep", "same", "close", "check", "replays"):
            raise ValueError(f"there is no order {name!r}")
        answer = self._time(what) if name == "replays" else getattr(self, f"_{name}")(what)
        if self._is_short():
            if self._replays is None:  # else its inputs are in use
                self._outlet.store.release("inputs")
            self._trim(MOST_UNUSED)
        return answer, (), ()

    def _is_short(self):
        """Whether an executor may not find the memory for a call."""
        return not self._device.modelled and torch.cuda.mem_get_info()[0] < (COPIES - 2) * self._call_bytes

    def _trim(self, most):
        """Others use the GPU's memory as well."""
        if self._device.modelled:
            return
        if torch.cuda.memory_reserved() - torch.cuda.memory_allocated() > most:
            torch.cuda.empty_cache()

    def _open(self):
        if not self._result["in_bytes"]:
            raise ValueError("this task has no windows: it was handed over whole")
        if len(self._sessions) >= MOST_SESSIONS:
            raise ValueError(f"{MOST_SESSIONS} sessions are open already")
        windows, fds = [], []
        try:
            for size in (self._result["in_bytes"], self._result["out_bytes"]):
                window, fd = gpu_memory.create(size, self._job["device"])
                windows.append(window)
                fds.append(fd)
        except BaseException:
            for window in windows:
                window.close()
            for fd in fds:
                os.close(fd)
            raise
        self._last_session += 1
        self._sessions[self._last_session] = _Session(*windows)
        return {"opened": {"session": self._last_session}}, fds, fds

    def _session(self, order):
        session = self._sessions.get(order["session"])
        if session is None:
            raise ValueError(f"there is no session {order['session']}")
        return session

    def _fill(self, order):
        if self._is_short():
            self._outlet.store.release("output", "precise")
        self._outlet.write_trial(self._session(order).inputs.bytes, order["trial"])
        gpu_memory.synchronize(self._job["device"])
        return {"filled": True}

    def _check(self, order):
        return {"checked": computes_right(self._job["device"], order["elements"])}

    def _compare(self, order):
        memory, call, leaf = self._session(order).outputs.bytes, order["call"], order["leaf"]
        want = self._want(call, leaf)
        raw = _room(memory, order["offset"], want.numel() * want.element_size())
        if not order.get("exact"):
            found = compare.compare(want, raw, order["atol"], order["rtol"])
        else:
            exact, slack = self._outlet.precise_leaf(call, leaf)
            found = compare.compare_exactly(want, exact, slack, raw, order["absolute"], order["relative"])
        return {"difference": found.message()}

    def _follow(self, order):
        """Sums over elements in equal steps, see exec/compare/input_sensitivity.h. The first call only begins them."""
        session, call, leaf, step = self._session(order), order["call"], order["leaf"], order["step"]
        want, sums = self._want(call, leaf), (0, 0.0, 0.0, 0.0, 0.0)
        raw = _room(session.outputs.bytes, order["offset"], want.numel() * want.element_size())
        if call == 0:
            session.first[leaf] = compare.in_steps(want, step), compare.raw_in_steps(want, raw, step)
        elif leaf in session.first:
            sums = compare.follow(session.first[leaf], want, raw, step, order["rounding"])
        names = ("variation", "covariance", "own_variation", "rounding")
        return {"followed": {"elements": sums[0], **{name: repr(x) for name, x in zip(names, sums[1:])}}}

    def _want(self, call, leaf):
        leaves = self._outlet.output_leaves(call)
        if not 0 <= leaf < len(leaves) or leaves[leaf] is None:
            raise ValueError(f"leaf {leaf} of call {call} is no tensor")
        return leaves[leaf]

    def _keep(self, order):
        session = self._session(order)
        session.kept = None
        with plain_torch():
            session.kept = _room(session.outputs.bytes, 0, order["bytes"]).clone()
        return {"kept": True}

    def _same(self, order):
        session = self._session(order)
        if session.kept is None:
            raise ValueError("nothing was kept in this session")
        leaves = []
        for leaf in order["leaves"]:
            dtype, elements = getattr(torch, leaf["dtype"]), leaf["elements"]
            for memory, place in ((session.outputs.bytes, "offset"), (session.kept, "kept_offset")):
                _room(memory, leaf[place], elements * dtype.itemsize)
            leaves.append((dtype, elements, leaf["offset"], leaf["kept_offset"]))
        return {"same": compare.same(leaves, session.outputs.bytes, session.kept, order["share"])}

    def _close(self, order):
        self._session(order).close()
        del self._sessions[order["session"]]
        self._outlet.store.release()
        return {"closed": True}

    def _time(self, order):
        with self._tf32.as_at_first():
            if "begin" in order:
                return {"begun": self._begin(order["begin"])}
            if "end" in order:
                self._replays = None
                if self._clock is not None:
                    self._clock[0].rest()
                self._outlet.store.release()
                self._trim(0)
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
        """One candidate is timed at a time, as the GPU is its own from begin to end."""
        self._replays = None
        if self._clock is None:
            self._clock = self._device.clock()
        if self._model is None:
            model = self._oracle.rebuild()
            sources.copy_state(self._outlet.state(), model)
            self._model = model
        clock, _, extra = self._clock
        seed, mutates = self._job["forward_seeds"][0], self._result["mutates_inputs"]
        self._replays = Replays(self._model, clock, self._outlet.view(0), seed, mutates, how["graph"])
        operator = self._replays.operator_seconds()
        return {"not_a_graph": self._replays.not_a_graph, "operator_seconds": operator, **extra}


def _room(memory, offset, size):
    """That part of the memory; ValueError if it lacks the room."""
    if offset < 0 or size < 0 or offset + size > memory.numel():
        raise ValueError(f"{size} bytes at {offset} do not lie in a memory of {memory.numel()}")
    return memory[offset : offset + size]
