"""The reference host: an oracle's process that stays alive. It keeps inputs and expected outputs to itself, exchanges
tensors with a candidate's process through two windows of memory, compares and times, as the supervisor orders (formats:
docs/protocol.md).

The candidate can write its windows at any time: nothing is read from one but the candidate's outputs, and those are
copied before they are looked at.
"""

import contextlib
import os

import torch

import compare
import forged
import gpu_memory
import sources
import timing
from channel import SupervisorGone
from failures import describe, is_device_full, memory_outcome
from kept import KeptOutlet
from oracle import Oracle
from plain_torch import plain_torch

MOST_SESSIONS = 128


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


class Host:
    """One task's host."""

    def __init__(self, job, device, result, check_time):
        self._job, self._device, self._result = job, device, result
        self._tf32 = Tf32()
        self._outlet = KeptOutlet(device, job["keep_bytes"])
        self._oracle = Oracle(job, device, result, check_time, self._outlet, again=True)
        self._sessions, self._last_session = {}, 0
        self._forger = None
        self._clock = self._model = self._rounds = None

    def make(self):
        """Runs the oracle's job; fills in the result's fields, those of a host as well."""
        self._oracle.run()
        self._outlet.store.release()
        kind = self._job["device"]
        visible, in_bytes = self._outlet.lay_out()
        self._result.update(
            visible={**visible, "varied": self._oracle.varied},
            in_bytes=gpu_memory.round_up(in_bytes, kind),
            out_bytes=gpu_memory.round_up(self._outlet.out_bytes, kind),
            call_bytes=self._oracle.peak.call_bytes,
            device_bytes=0 if self._device.modelled else torch.cuda.get_device_properties().total_memory,
        )
        self._forger = forged.Forger(self._outlet, self._result["calls"], self._oracle.probe)
        self._empty_cache()

    def serve(self, control):
        """One answer to each order, until there are no more. Whether the process is wanted for another task."""
        try:
            while "end" not in (order := control.receive()):
                if "drop" in order:
                    return True
                answer, fds = self._answer(order)
                self._outlet.store.release("inputs")
                try:
                    control.send(answer, fds)
                finally:
                    for fd in fds:
                        os.close(fd)
        except (SupervisorGone, ConnectionError, BrokenPipeError):
            pass
        finally:
            for session in self._sessions.values():
                session.close()
            self._sessions.clear()
        return False

    def _answer(self, order):
        """(message, descriptors that go with it)."""
        try:
            try:
                return self._obey(order)
            except Exception as error:
                if memory_outcome(error) is None:
                    raise
            self._outlet.store.clear()
            self._forger.drop()
            self._empty_cache()
            return self._obey(order)
        except Exception as error:
            message = {"error": describe(error)}
            return ({**message, "out_of_memory": True} if is_device_full(error) else message), ()

    def _obey(self, order):
        ((name, what),) = order.items()
        if name == "open":
            return self._open()
        if name not in ("fill", "compare", "follow", "keep", "same", "probe", "time", "close", "check"):
            raise ValueError(f"there is no order {name!r}")
        return getattr(self, f"_{name}")(what), ()

    def _open(self):
        if len(self._sessions) >= MOST_SESSIONS:
            raise ValueError(f"{MOST_SESSIONS} sessions are open already")
        kind, fds, windows = self._job["device"], [], []
        try:
            for size in (self._result["in_bytes"], self._result["out_bytes"]):
                window, fd = gpu_memory.Window.create(size, kind)
                windows.append(window)
                fds.append(fd)
            self._outlet.write_constants(windows[0].bytes)
            together = "in_turn" not in self._result["visible"]
            for trial in range(self._outlet.trials() if together else 1):
                self._outlet.write_trial(windows[0].bytes, trial)
            gpu_memory.synchronize(kind)
        except BaseException:
            for window in windows:
                window.close()
            for fd in fds:
                os.close(fd)
            raise
        self._last_session += 1
        self._sessions[self._last_session] = _Session(*windows)
        return {"opened": {"session": self._last_session}}, fds

    def _session(self, order):
        session = self._sessions.get(order["session"])
        if session is None:
            raise ValueError(f"there is no session {order['session']}")
        return session

    def _fill(self, order):
        self._outlet.write_trial(self._session(order).inputs.bytes, order["trial"])
        gpu_memory.synchronize(self._job["device"])
        return {"filled": True}

    def _check(self, order):
        return {"checked": computes_right(self._job["device"], order["elements"])}

    def _compare(self, order):
        memory, call, leaf = self._session(order).outputs.bytes, order["call"], order["leaf"]
        want = self._want(call, leaf)
        raw = _room(memory, order["offset"], want.numel() * want.element_size())
        return {"difference": self._difference(order, want, raw).message()}

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

    def _difference(self, order, want, raw):
        if not order.get("exact"):
            return compare.compare(want, raw, order["atol"], order["rtol"])
        exact, slack = self._outlet.precise_leaf(order["call"], order["leaf"])
        return compare.compare_exactly(want, exact, slack, raw, order["absolute"], order["relative"])

    def _keep(self, order):
        session = self._session(order)
        session.kept = None
        session.kept = _copy(_room(session.outputs.bytes, 0, order["bytes"]))
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

    def _probe(self, order):
        if not self._job["probes"]:
            raise ValueError("this job was not asked for probes")
        call, leaf = order["call"], order["leaf"]
        forged_leaves = self._forger.leaves(order["name"], call)
        if forged_leaves is None:
            return {"difference": None}
        want, got = self._want(call, leaf), forged_leaves[leaf]
        if got is None:
            return {"difference": compare.other_kind(want.numel(), 2 if want.is_complex() else 1).message()}
        return {"difference": self._difference(order, want, _bytes(got)).message()}

    def _time(self, order):
        with self._tf32.as_at_first():
            if "prepare" in order:
                self._prepare()
                return {"prepared": True}
            if "begin" in order:
                return {"ready": self._begin()}
            if "end" in order:
                self._rounds = None
                if self._clock is not None:
                    self._clock[0].rest()
                self._outlet.store.release()
                self._empty_cache()
                return {"ended": True}
            if self._rounds is None:
                raise ValueError("timing did not begin")
            if "load" in order:
                self._rounds.load(order["load"])
                return {"loaded": True}
            if "move" in order:
                self._rounds.move(order["move"])
                return {"moved": True}
            return {"round": self._rounds.round(order["round"])[0]}

    def _prepare(self):
        """What rounds need and keep: it takes a while the first time."""
        if self._clock is None:
            self._clock = self._device.clock()
        if self._model is None:
            model = self._oracle.rebuild()
            sources.copy_state(self._outlet.state(), model)
            self._model = model

    def _begin(self):
        """There are the rounds of one candidate at a time, as the GPU is its own from begin to end."""
        self._rounds = None
        self._prepare()
        clock, watch, extra = self._clock
        outlet = self._outlet
        in_turn = "in_turn" in self._result["visible"]
        seeds = self._job["forward_seeds"]
        self._rounds = timing.Rounds(self._model, clock, seeds, outlet.view, outlet.trials(), in_turn, watch)
        return self._rounds.ready(extra)

    def _close(self, order):
        self._session(order).close()
        del self._sessions[order["session"]]
        self._outlet.store.release()
        self._forger.drop()
        self._empty_cache()
        return {"closed": True}

    def _empty_cache(self):
        if not self._device.modelled:
            torch.cuda.empty_cache()


def _room(memory, offset, size):
    """That part of the memory; ValueError if it lacks the room."""
    if offset < 0 or size < 0 or offset + size > memory.numel():
        raise ValueError(f"{size} bytes at {offset} do not lie in a memory of {memory.numel()}")
    return memory[offset : offset + size]


@plain_torch()
def _copy(memory):
    return memory.clone()


@plain_torch()
def _bytes(flat):
    return flat.view(torch.uint8)
