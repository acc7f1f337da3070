"""The oracle runs the trusted reference: inputs and expected outputs for the trials of a task, by way of an outlet."""

import copy

import torch

import affine
import layout
import precision
import probes
import sources
import variants
from failures import is_device_full
from peak import Peak
from reference import build, inputs_of, refused, task_fault
from snapshots import Snapshots

MOST_SHAPES = 8  # lists of get_input_variants()
# On inputs of uneven size no element may be off by more, as a share of itself and the usual size of elements.
MOST_UNSTEADY = 0.05
_NOT_AFFINE = "parameters other than 0 and 1: the reference is not finite with them"


class Oracle:
    """One oracle job. run() fills in `result`: one entry in "calls" for each of job["calls"], a trial's number each,
    and by the robust rules one more for each variant of the inputs. What the outlet (kept.KeptOutlet) lets go can be
    made once more later, also by models with buffers."""

    def __init__(self, job, device, result, check_time, outlet):
        self._job, self._device, self._result, self._check_time = job, device, result, check_time
        self._outlet = outlet
        self.peak = Peak(not device.modelled)
        self._module, arguments, self._model = build(job, device)
        self.stateful = isinstance(self._model, torch.nn.Module) and any(True for _ in self._model.buffers())
        build_model = lambda: sources.build_model(self._module.Model, arguments, job["weights_seed"])
        self._rebuild = lambda: self._varied(device.make(build_model))
        self._run_beside = precision.make_run(device)
        self._affine = {}  # other values of parameters and buffers, by name
        self.varied = {}  # what these were, 0 or 1
        if job["mode"] == "robust":
            self._vary_affine(lambda: device.make(build_model))
        outlet.constant(arguments, "get_init_inputs()")
        outlet.constant(sources.state_of(self._model), "the reference's state")
        self._precision = None
        if job["mode"] == "robust":
            # A GPU's own tf32 is no part of what the reference means.
            torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
            try:
                self._precision = precision.Precision(
                    self._model, self._rebuild, self._run_beside, self._wants_memory
                )
            except Exception as error:
                raise refused(error, "does not fit into the memory in float64") from error
        self._low = self._low_model() if job["probes"] else None
        self._snapshots, self._before = None, []  # of models with buffers, by call
        if self.stateful:
            models = self._precision.models() if self._precision is not None else {}
            self._snapshots = Snapshots({"own": self._model, **models})
        self._judged = None  # of the last call
        self._steepest = 0.0  # of the random trials
        self._not_finite = False  # a random trial's result holds NaN or infinities

    def run(self):
        job, result = self._job, self._result
        for index, trial in enumerate(job["calls"]):
            self._check_time("reference")
            try:
                if trial == len(result["trials"]):
                    make = self._maker(job["input_seeds"][trial])
                    self._show(make(), "get_inputs()", "random", make)
                self._call(index, trial)
            except BaseException as error:
                raise refused(error, "does not run") from error
        if not any(kind == "tensor" for kind, _ in layout.leaves_of(result["calls"][0]["output"])):
            raise task_fault("the reference's forward returns no tensor")
        if self._precision is not None:
            self._run_variants()
            self._run_shapes()
        result["has_buffers"] = self.stateful

    def _vary_affine(self, make):
        """Parameters and buffers that are 0 or 1 get other values, unless the reference is not made for these; `make`
        makes another model with the task's own."""
        values = affine.vary(self._model, self._job["weights_seed"])
        if not values:
            return
        try:
            inputs, seed = self._maker(self._job["input_seeds"][0]), self._job["forward_seeds"][0]
            model = make()
            was_finite = affine.is_finite(self._run_beside(model, inputs(), seed))
            values = affine.without_written(values, model)
            affine.put(values, model)
            is_fair = affine.is_finite(self._run_beside(model, inputs(), seed)) or not was_finite
        except Exception as error:
            if self._wants_memory(error):
                raise refused(error, "does not run with other parameters") from error
            is_fair = False
        if not is_fair:
            self._result["left_out"].append(_NOT_AFFINE)
            return
        state = self._model.state_dict()
        self._affine, self.varied = values, {name: affine.constant_of(state[name]) for name in values}
        self._varied(self._model)

    def _varied(self, model):
        affine.put(self._affine, model)
        return model

    def _maker(self, seed):
        def make():
            sources.seed_everything(seed)
            return inputs_of(self._module)

        return lambda: self._device.make(make)

    def _show(self, inputs, what, name, make):
        self._outlet.show(inputs, what, make)
        self._result["trials"].append(name)

    def _call(self, index, trial, is_variant=False):
        """One call of the reference on inputs that were shown; its judgement."""
        result, outlet = self._result, self._outlet
        if self._snapshots is not None:
            self._before.append(self._snapshots.take())
        placed = outlet.read(trial)
        untouched = outlet.view(trial) if index == 0 else None
        sources.seed_everything(self._job["forward_seeds"][trial])
        before = precision.random_state(self._device) if self._precision else None
        output = self.peak.around(lambda: self._forward(placed, index))
        drew = self._precision is not None and precision.random_state(self._device) != before
        if index == 0:
            result["mutates_inputs"] = not layout.same(untouched, placed)
        if self._precision is not None:
            result["shares_memory"] = result["shares_memory"] or _shares(output, placed)
        del untouched, placed  # gigabytes at full size
        call = {"trial": trial, "output": outlet.expect(output, lambda: self._output_again(index, trial))}
        if self._precision is not None:
            call["precise"] = self._judge(index, trial, output, drew, is_variant)
        if self._low is not None and index != 1:
            call["probes"] = outlet.probes(lambda: self._probes(trial, output))
        result["calls"].append(call)
        return output

    def _forward(self, placed, index):
        with torch.no_grad():
            return self._device.reference_call(lambda: self._model(*placed), index)

    def _judge(self, index, trial, output, drew, is_variant):
        if index == 1 and not self.stateful:  # the first call once more
            return self._result["calls"][0]["precise"]
        outlet, seed = self._outlet, self._job["forward_seeds"][trial]
        judged = self._precision.judge(outlet.read(trial), output, seed, drew, is_variant)
        self._judged = judged
        exact = [tensor for tensor in judged.exact if tensor is not None]
        if not is_variant:
            self._steepest = max(self._steepest, judged.steepest)
            self._not_finite = self._not_finite or any(not bool(torch.isfinite(t).all()) for t in exact)
        described = outlet.precise(judged, lambda: self._judged_again(index, trial, drew, is_variant))
        return {**described, "limits": judged.limits, "notes": judged.notes}

    def _output_again(self, index, trial):
        """What call `index` gave, by calling the reference as it was then."""
        self._go_back(index)
        placed = self._outlet.read(trial) if self._result["mutates_inputs"] else self._outlet.view(trial)
        sources.seed_everything(self._job["forward_seeds"][trial])
        return self._forward(placed, -1)

    def _judged_again(self, index, trial, drew, is_variant):
        output = self._outlet.output(index)
        self._go_back(index)
        return self._precision.judge(
            self._outlet.read(trial), output, self._job["forward_seeds"][trial], drew, is_variant
        )

    def _go_back(self, index):
        if self._snapshots is not None:
            self._snapshots.restore(self._before[index])

    def _low_model(self):
        return probes.LowPrecision(self._model, self._rebuild, self._run_beside)

    def _probes(self, trial, output):
        """Results that must not pass, by name; None where one cannot be made."""
        duplicate = precision.duplicate(self._model, lambda: self._model) if self.stateful else self._model
        return {
            "identity_cast": probes.casts(self._outlet.read(trial), output),
            "half_input": _tried(lambda: self._half_input(duplicate, trial)),
            "low_precision": _tried(lambda: self._low_precision(self._low, trial, output)),
        }

    def _half_input(self, model, trial):
        halved = probes.half_input(self._outlet.read(trial))
        return None if halved is None else self._run_beside(model, halved, self._job["forward_seeds"][trial])

    def _low_precision(self, low, trial, output):
        inputs = self._outlet.read(trial)
        return low(self._job["mode"], inputs, output, self._job["forward_seeds"][trial])

    def _run_variants(self):
        """Trials on inputs made from the task's own. One that the reference is not made for is left out."""
        for name, seed in zip(variants.NAMES, self._job["variant_seeds"]):
            became = None
            for strength in variants.STRENGTHS.get(name, (1.0,)):
                self._check_time("reference")
                became = self._try_variant(name, seed, strength)
                if became is not False:
                    break
            if became is False and name in variants.UNEVEN:
                self._result["left_out"].append(f"inputs {name}: the reference is not finite on them, or loses its digits")

    def _try_variant(self, name, seed, strength):
        """Whether the variant became a trial; None if nothing changed."""
        trial, mark = len(self._result["trials"]), self._outlet.mark()
        state = (copy.deepcopy(self._model.state_dict()), self._precision.state()) if self.stateful else None
        try:
            make = lambda: self._variant(name, seed, strength)
            inputs = make()
            if inputs is None:
                return None
            self._show(inputs, "get_inputs()", name, make)
            output = self._call(len(self._result["calls"]), trial, is_variant=True)
            if self._is_fair(output, name):
                return True
        except Exception as error:
            if self._wants_memory(error):
                raise refused(error, "does not run on variants of its inputs") from error
        self._forget(trial, mark, state)
        return False

    def _wants_memory(self, error):
        """With more of the device's memory it may go well: others use it now."""
        return self._job["host"] and not self._job["has_all_memory"] and is_device_full(error)

    def rebuild(self):
        """The model as it was built at first."""
        return self._rebuild()

    def _variant(self, name, seed, strength):
        def make():
            sources.seed_everything(seed)
            return variants.make(name, inputs_of(self._module), seed, strength)

        return self._device.make(make)

    def _is_fair(self, output, name):
        """Whether the result of a variant can be asked for: exact, and as finite as the task's own results."""
        judged = self._judged
        if judged.steepest > max(variants.STEEPEST, self._steepest):
            return False
        if name in variants.UNEVEN:  # whole numbers alone will do, if rounding does not change them
            if judged.unsteady > MOST_UNSTEADY:
                return False
        elif not judged.any or (name == "ties" and any(tensor is None for tensor in judged.exact)):
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

    def _forget(self, trial, mark, state):
        self._outlet.rewind(mark)
        del self._result["trials"][trial:]
        calls = self._result["calls"]
        calls[:] = [call for call in calls if call["trial"] < trial]
        del self._before[len(calls) :]
        if state is not None:
            self._model.load_state_dict(state[0])
            self._precision.restore(state[1])

    def _run_shapes(self):
        """Trials on the lists of get_input_variants(), if the task defines it."""
        make = getattr(self._module, "get_input_variants", None)
        if make is None:
            return
        what = "get_input_variants()"
        seed = self._job["variant_seeds"][-1]

        def make_all():
            sources.seed_everything(seed)
            return make()

        try:
            lists = make_all()
        except BaseException as error:
            raise refused(error, f"fails in {what}") from error
        if not isinstance(lists, (list, tuple)) or not all(isinstance(item, (list, tuple)) for item in lists):
            raise task_fault(f"the reference's {what} has to return a list of lists of inputs")
        if len(lists) > MOST_SHAPES:
            raise task_fault(f"the reference's {what} returns {len(lists)} lists, at most {MOST_SHAPES} are used")
        for number, inputs in enumerate(lists):
            self._check_time("reference")
            try:
                self._show(
                    list(inputs),
                    f"{what}[{number}]",
                    f"shape {number + 1}",
                    lambda number=number: list(make_all()[number]),
                )
                self._call(len(self._result["calls"]), len(self._result["trials"]) - 1, is_variant=True)
            except BaseException as error:
                raise refused(error, f"does not run on {what}[{number}]") from error


def _tried(make):
    """What `make` makes; None where it raises."""
    try:
        return make()
    except Exception:
        return None


def _shares(output, placed):
    """Whether an output lies in the memory of another one or of an input."""
    made = layout.tensors(output)
    others = made + layout.tensors(placed)
    return any(layout.share_memory(a, b) for i, a in enumerate(made) for b in others[i + 1 :])
