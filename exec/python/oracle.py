"""The oracle runs the trusted reference: what a candidate may see goes into one memory, what it may not into another."""

import copy

import torch

import layout
import precision
import probes
import sources
import variants
from failures import JobFailure, describe, line_in_file, traceback_text

MOST_SHAPES = 8  # lists of get_input_variants()


def _refused(error, what):
    if isinstance(error, JobFailure):
        return error
    line = line_in_file(error, sources.REFERENCE_FILE)
    where = f" at line {line}" if line else ""
    return JobFailure(
        "reference_error",
        "task",
        "reference",
        f"the reference {what}{where}: {describe(error)}",
        traceback_text(error),
        line,
    )


def _task_fault(message):
    return JobFailure("reference_error", "task", "reference", message)


def _fits(description, what):
    """The description, if all in it can be handed over; else the task is refused."""
    for kind, leaf in _leaves(description):
        if kind == "other":
            raise _task_fault(f"{what} holds a value of type {leaf}, which cannot be handed over")
        if kind == "tensor" and leaf["offset"] is None:
            known = leaf["layout"] == "strided" and getattr(torch, leaf["dtype"]) in layout.COMPARABLE
            reason = "does not fit into the memory for it" if known else "is of a kind that cannot be compared"
            tensor = f"a tensor of type {leaf['dtype']}, layout {leaf['layout']} and shape {tuple(leaf['shape'])}"
            raise _task_fault(f"{what}: {tensor} {reason}")
    return description


def _leaves(node):
    ((kind, value),) = node.items()
    if kind in ("list", "tuple"):
        return [leaf for item in value for leaf in _leaves(item)]
    if kind == "dict":
        return [leaf for _, item in value for leaf in _leaves(item)]
    return [(kind, value)]


def build(job, device):
    """(module, constructor arguments, model on the device) of the reference."""
    try:
        module = sources.load_reference(job["reference_source"])
    except BaseException as error:
        raise _refused(error, "does not load") from error
    try:
        arguments = sources.init_inputs(module)
        model = device.make(lambda: sources.build_model(module.Model, arguments, job["weights_seed"]))
    except BaseException as error:
        raise _refused(error, "cannot be constructed") from error
    return module, arguments, model


def run(job, device, result, check_time):
    """Fills in `result` of an oracle job: one entry in "calls" for each of job["calls"], a trial's number each, and in
    the robust mode one more for each variant of the inputs."""
    Oracle(job, device, result, check_time).run()


class Oracle:
    """One oracle job."""

    def __init__(self, job, device, result, check_time):
        self._job, self._device, self._result, self._check_time = job, device, result, check_time
        self._visible, self._hidden = layout.Writer(job["fds"]["visible"]), layout.Writer(job["fds"]["hidden"])
        self._reader = layout.Reader(job["fds"]["visible"])
        self._module, arguments, self._model = build(job, device)
        self._stateful = isinstance(self._model, torch.nn.Module) and any(True for _ in self._model.buffers())
        self._shown = {
            "arguments": _fits(self._visible.put(arguments), "get_init_inputs()"),
            "state": _fits(self._visible.put(sources.state_of(self._model)), "the reference's state"),
            "inputs": [],
        }
        rebuild = lambda: device.make(lambda: sources.build_model(self._module.Model, arguments, job["weights_seed"]))
        run_beside = precision.make_run(device)
        self._run_beside = run_beside
        self._precision = None
        if job["mode"] == "robust":
            # A GPU's own tf32 is no part of what the reference means.
            torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
            self._precision = precision.Precision(self._model, rebuild, run_beside)
        self._low = probes.LowPrecision(self._model, rebuild, run_beside) if job["probes"] else None
        self._judged = None  # of the last call
        self._steepest = 0.0  # of the random trials
        self._not_finite = False  # a random trial's result holds NaN or infinities

    def run(self):
        job, result = self._job, self._result
        for index, trial in enumerate(job["calls"]):
            self._check_time("reference")
            try:
                if trial == len(self._shown["inputs"]):
                    made = self._device.make(lambda seed=job["input_seeds"][trial]: self._make_inputs(seed))
                    self._show(made, "get_inputs()", "random")
                    del made
                self._call(index, trial)
            except BaseException as error:
                raise _refused(error, "does not run") from error
        if not any(kind == "tensor" for kind, _ in _leaves(result["calls"][0]["output"])):
            raise _task_fault("the reference's forward returns no tensor")
        if self._precision is not None:
            self._run_variants()
            self._run_shapes()
        result["has_buffers"] = self._stateful
        result["visible"] = self._shown

    def _make_inputs(self, seed):
        sources.seed_everything(seed)
        return list(self._module.get_inputs())

    def _read(self, trial):
        """A trial's inputs, read back, so that the reference gets exactly what a candidate will get."""
        return self._device.read(self._reader, self._shown["inputs"][trial])

    def _show(self, inputs, what, name):
        self._shown["inputs"].append(_fits(self._visible.put(inputs), what))
        self._result["trials"].append(name)

    def _call(self, index, trial, is_variant=False):
        """One call of the reference on inputs that were shown; its judgement."""
        result = self._result
        placed = self._read(trial)
        untouched = layout.map_tensors(placed, lambda tensor: tensor.clone()) if index == 0 else None
        sources.seed_everything(self._job["forward_seeds"][trial])
        before = precision.random_state(self._device) if self._precision else None
        with torch.no_grad():
            output = self._device.reference_call(lambda: self._model(*placed), index)
        drew = self._precision is not None and precision.random_state(self._device) != before
        call = {"trial": trial, "output": _fits(self._hidden.put(output), "forward's result")}
        if index == 0:
            result["mutates_inputs"] = not layout.same(untouched, placed)
            del untouched
        if self._precision is not None:
            result["shares_memory"] = result["shares_memory"] or _shares(output, placed)
            call["precise"] = self._judge(index, trial, output, drew, is_variant)
        if self._low is not None and index != 1:
            call["probes"] = self._probe(trial, output)
        result["calls"].append(call)
        return output

    def _judge(self, index, trial, output, drew, is_variant):
        if index == 1 and not self._stateful:  # the first call once more
            return self._result["calls"][0]["precise"]
        judged = self._precision.judge(self._read(trial), output, self._job["forward_seeds"][trial], drew, is_variant)
        self._judged = judged
        exact = [tensor for tensor in judged.exact if tensor is not None]
        if not is_variant:
            self._steepest = max(self._steepest, judged.steepest)
            self._not_finite = self._not_finite or any(not bool(torch.isfinite(t).all()) for t in exact)
        return {
            "exact": _fits(self._hidden.put(judged.exact), "forward's result in float64"),
            "slack": _fits(self._hidden.put(judged.slack), "the tolerance of forward's result"),
            "limits": judged.limits,
            "notes": judged.notes,
        }

    def _probe(self, trial, output):
        """Layouts of results that must not pass, by name; None where one cannot be made."""
        job = self._job
        seed = job["forward_seeds"][trial]
        made = {"identity_cast": probes.casts(self._read(trial), output)}
        try:
            halved = probes.half_input(self._read(trial))
            model = precision.duplicate(self._model, lambda: self._model) if self._stateful else self._model
            made["half_input"] = None if halved is None else self._run_beside(model, halved, seed)
        except Exception:
            made["half_input"] = None
        try:
            made["low_precision"] = self._low(job["mode"], self._read(trial), output, seed)
        except Exception:
            made["low_precision"] = None
        return {
            name: None if value is None else _fits(self._hidden.put(value), f"the probe {name}")
            for name, value in made.items()
        }

    def _run_variants(self):
        """Trials on inputs made from the task's own. One that the reference is not made for is left out."""
        for name, seed in zip(variants.NAMES, self._job["variant_seeds"]):
            for strength in variants.STRENGTHS.get(name, (1.0,)):
                self._check_time("reference")
                if self._try_variant(name, seed, strength):
                    break

    def _try_variant(self, name, seed, strength):
        """Whether the variant became a trial."""
        trial = len(self._shown["inputs"])
        marks = self._visible.mark(), self._hidden.mark()
        state = (copy.deepcopy(self._model.state_dict()), self._precision.state()) if self._stateful else None
        try:
            sources.seed_everything(seed)
            inputs = variants.make(name, list(self._module.get_inputs()), seed, strength)
            if inputs is None:
                return False
            self._show(inputs, "get_inputs()", name)
            output = self._call(len(self._result["calls"]), trial, is_variant=True)
            if self._is_fair(output, name):
                return True
        except Exception:
            pass
        self._forget(trial, marks, state)
        return False

    def _is_fair(self, output, name):
        """Whether the result of a variant can be asked for: exact, and as finite as the task's own results."""
        judged = self._judged
        if judged.steepest > max(variants.STEEPEST, self._steepest):
            return False
        if not judged.any or (name == "ties" and any(tensor is None for tensor in judged.exact)):
            return False
        for (_, own), exact in zip(layout.flatten(output), judged.exact):
            if exact is None:
                continue
            finite = torch.isfinite(exact)
            if not self._not_finite and not bool(finite.all()):
                return False
            if not bool((torch.isfinite(own) == finite).all()):
                return False
        return True

    def _forget(self, trial, marks, state):
        self._visible.rewind(marks[0])
        self._hidden.rewind(marks[1])
        del self._shown["inputs"][trial:], self._result["trials"][trial:]
        self._result["calls"][:] = [call for call in self._result["calls"] if call["trial"] < trial]
        if state is not None:
            self._model.load_state_dict(state[0])
            self._precision.restore(state[1])

    def _run_shapes(self):
        """Trials on the lists of get_input_variants(), if the task defines it."""
        make = getattr(self._module, "get_input_variants", None)
        if make is None:
            return
        what = "get_input_variants()"
        try:
            sources.seed_everything(self._job["variant_seeds"][-1])
            lists = make()
        except BaseException as error:
            raise _refused(error, f"fails in {what}") from error
        if not isinstance(lists, (list, tuple)) or not all(isinstance(item, (list, tuple)) for item in lists):
            raise _task_fault(f"the reference's {what} has to return a list of lists of inputs")
        if len(lists) > MOST_SHAPES:
            raise _task_fault(f"the reference's {what} returns {len(lists)} lists, at most {MOST_SHAPES} are used")
        for number, inputs in enumerate(lists):
            self._check_time("reference")
            try:
                self._show(list(inputs), f"{what}[{number}]", f"shape {number + 1}")
                self._call(len(self._result["calls"]), len(self._shown["inputs"]) - 1, is_variant=True)
            except BaseException as error:
                raise _refused(error, f"does not run on {what}[{number}]") from error


def _shares(output, placed):
    """Whether an output lies in the memory of another one or of an input."""
    made = layout.tensors(output)
    others = made + layout.tensors(placed)
    return any(layout.share_memory(a, b) for i, a in enumerate(made) for b in others[i + 1 :])
