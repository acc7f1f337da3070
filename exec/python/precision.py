"""How exact an honest kernel's result can be: the reference once more in float64, and what rounding does to it.

For each output the oracle hands over `exact` (the float64 result, kept as float32) and a tolerance
    |got - exact| <= absolute + relative * |exact| + slack        (slack by element)
made of the reference's own errors, so that it is small where the reference is exact and never looser than the work needs:

  fine_i   largest error of element i among: the reference as it is, and two float64 runs whose inputs were moved by
           u * (2 + sqrt(L) / 4), u = 2^-24, L the longest reduction inside: what rounding and another order of
           summation do (one after the other, errors of a sum grow like 0.4 sqrt(L) of what moving by u does)
  tensor_i the same among two float32 runs whose operands of matrix products and convolutions were cut and rounded to
           tf32 (10 bits), as tensor cores do; 0 where there is no such operator
           Results of functions that people write by exp (tanh, sigmoid, gelu, ...) are moved by 2 u (1 + |result|) there
           too: such formulas are exact to some ulp of 1, not of a small result
  fine, tensor   of each the 90 % quantile over the output: one element's error may be small by luck
           For variants of the inputs `tensor` is at least the share of M that it was on random ones: inputs on a coarse
           grid (ties) are exact in tf32, but what another order of the same operations makes of them need not be
  M        90 % quantile of |exact|, at least its mean; for variants of the inputs not below that of the random trials,
           as small results come from the same formulas

  slack    = A * fine_i + T * tensor_i
  absolute = A * fine + T * tensor + (F + sqrt(L)) * u * M + the type's smallest number
  relative = (F + sqrt(L)) * u + 2 * (rounding of the output's own type, if that is half or bfloat16)

A = 16 (4 where the reference itself computes in half precision), T = 2, F = 32. docs/performance.md has the figures behind
them. Where there is no float64 result to be had the output is compared as in the paper's mode, with a note why.
"""

import copy
import math
import random

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import layout
import sources

ULP = 2.0**-24  # unit roundoff of float32
OWN = 16.0
OWN_HALF = 4.0
TENSOR = 2.0
FLOOR = 32.0
_SAMPLED = 1 << 16  # elements that a quantile looks at
_HALF = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
_JUDGED = {torch.float32, *_HALF}

_PRODUCTS = set(
    "mm addmm bmm baddbmm addbmm mv addmv dot vdot addr linear _addmm_activation _trilinear _cdist_forward".split()
)
_PRODUCT_PARTS = ("convolution", "attention", "mkldnn_rnn", "_cudnn_rnn")
_REDUCTION_PARTS = ("sum", "mean", "var", "std", "norm", "prod", "loss", "pool", "dist")
_ALONG_DIM = ("softmax", "cumsum", "cumprod", "logcumsumexp")


# Exact to some ulp of 1, as they are written by hand; and by exp, which overflows from 88 on (tanh's from 44 on).
_BY_EXP = set("tanh sigmoid softplus gelu silu mish elu celu selu expm1 log_sigmoid_forward".split())
_BY_EXP.add("binary_cross_entropy_with_logits")
_BY_FORMULA = _BY_EXP | set("erf erfc log log1p log2 log10 sin cos".split())
_STEEP = _BY_EXP | {"exp", "exp2", "sinh", "cosh"}


def _is_product(name):
    return name in _PRODUCTS or any(part in name for part in _PRODUCT_PARTS)


def cut_to_tf32(tensor):
    """The lower 13 bits of the mantissa dropped, as tensor cores do with operands that nobody rounded before."""
    return (tensor.contiguous().view(torch.int32) & -0x2000).view(torch.float32)


def round_to_tf32(tensor):
    """Rounded to 10 bits of mantissa, halves away from zero (cvt.rna.tf32)."""
    return ((tensor.contiguous().view(torch.int32) + 0x1000) & -0x2000).view(torch.float32)


class _Watch(TorchDispatchMode):
    """Notes products, the longest reduction and the largest number that goes into exp or the like. With `rounding`
    float32 operands of products go through it, with `noise` (a generator) results by formula are moved."""

    def __init__(self, rounding=None, noise=None):
        super().__init__()
        self._rounding = rounding
        self._noise = noise
        self.products = False
        self.longest = 1
        self.steepest = 0.0

    @classmethod
    def _should_skip_dynamo(cls):
        return False  # else the first use imports torch._dynamo: 800 modules, a second

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        product = _is_product(name)
        if product and self._rounding is not None:
            args = layout.map_tensors(args, self._rounded)
        result = func(*args, **(kwargs or {}))
        if self._noise is not None and name.rstrip("_") in _BY_FORMULA:
            return layout.map_tensors(result, self._moved)
        if name.rstrip("_") in _STEEP and args and isinstance(args[0], torch.Tensor) and args[0].numel():
            self.steepest = max(self.steepest, float(_clean(args[0].double().abs()).max()))
        self.products = self.products or product
        if not product:
            self._note_reduction(name, args, result)
        return result

    def _moved(self, tensor):
        if not tensor.is_floating_point():
            return tensor
        return tensor.add_(2 * ULP * (1 + tensor.abs()) * _signs(tensor, self._noise))

    def _rounded(self, tensor):
        plain = tensor.dtype == torch.float32 and tensor.layout == torch.strided
        return self._rounding(tensor) if plain else tensor

    def _note_reduction(self, name, args, result):
        if not args or not isinstance(args[0], torch.Tensor) or args[0].numel() == 0:
            return
        length = 1
        if any(part in name for part in _ALONG_DIM):
            length = args[0].shape[args[1]] if len(args) > 1 and isinstance(args[1], int) and args[0].dim() else 1
        elif any(part in name for part in _REDUCTION_PARTS):
            smallest = min((tensor.numel() for tensor in layout.tensors(result) if tensor.numel()), default=1)
            length = args[0].numel() // smallest
        self.longest = max(self.longest, length)


def random_state(device):
    """Comparable states of all generators that a forward on the device may draw from."""
    numpy_state = np.random.get_state()
    states = [random.getstate(), numpy_state[1].tobytes(), numpy_state[2], torch.get_rng_state().numpy().tobytes()]
    if not device.modelled:
        states.append(torch.cuda.get_rng_state().numpy().tobytes())
    return states


def duplicate(model, make):
    """A model with the same state of its own; `make` builds it anew where it cannot be copied."""
    try:
        return copy.deepcopy(model)
    except Exception:
        return make()


def to_type(model, dtype):
    """Its floating parameters, buffers and plain tensor attributes in `dtype`."""
    if isinstance(model, torch.nn.Module):
        model = model.to(dtype)
        for module in model.modules():
            for name, value in list(vars(module).items()):
                if isinstance(value, torch.Tensor) and value.is_floating_point():
                    setattr(module, name, value.to(dtype))
    return model


def cast(value, dtype):
    return layout.map_tensors(value, lambda t: t.to(dtype) if t.is_floating_point() else t)


def _moved(value, amount, generator):
    """Each floating element times 1 + amount or 1 - amount."""

    def move(tensor):
        if not tensor.is_floating_point() or bool((tensor == tensor.round()).all()):  # indices, masks, one-hot rows
            return tensor
        return tensor * (1 + amount * _signs(tensor, generator))

    return layout.map_tensors(value, move)


def _signs(like, generator):
    """1 and -1 at random."""
    bits = torch.randint(0, 2, like.shape, generator=generator, dtype=torch.int8, device=generator.device)
    return 2 * bits.to(like.device, like.dtype) - 1


def _quantile(tensor):
    """90 % quantile, from a sample where there are many."""
    step = max(1, tensor.numel() // _SAMPLED) | 1
    sample = tensor.reshape(-1)[::step]
    return float(sample.kthvalue(max(1, math.ceil(0.9 * sample.numel()))).values)


def _clean(tensor):
    return torch.nan_to_num(tensor, nan=0.0, posinf=0.0, neginf=0.0)


class Judged:
    """What is known about the results of one call: by leaf a tensor or None, and (absolute, relative) or None."""

    def __init__(self, leaves):
        self.exact = [None] * leaves
        self.slack = [None] * leaves
        self.limits = [None] * leaves
        self.steepest = 0.0  # the largest number that went into exp or the like
        # The largest error of an element that rounding made, as a share of the element and the usual size of elements;
        # infinite where it changed what has no float64 result (an index), or nobody knows.
        self.unsteady = math.inf
        self.notes = []

    @property
    def any(self):
        return any(tensor is not None for tensor in self.exact)


class Precision:
    """Runs of one reference beside its own. `run(model, inputs, seed)` is one forward on the device."""

    def __init__(self, model, make, run, wants_memory=lambda error: False):
        self._run = run
        self._wants_memory = wants_memory  # whether an error is no answer, as it was made with too little memory
        self._stateful = isinstance(model, torch.nn.Module) and any(True for _ in model.buffers())
        self._scales = {}  # by leaf: the largest M of the random trials
        self._tf32 = {}  # by leaf: the largest T * tensor / M of the random trials
        self._models = {}
        self.failure = ""
        try:
            self._models = {"exact": to_type(duplicate(model, make), torch.float64)}
            for name in ("moved0", "moved1"):
                same = self._models["exact"]
                self._models[name] = to_type(duplicate(model, make), torch.float64) if self._stateful else same
            for name in ("cut", "rounded"):
                self._models[name] = duplicate(model, make) if self._stateful else model
        except Exception as error:
            self._unless_memory(error)
            self.failure = f"the reference has no float64 form: {type(error).__name__}"

    def models(self):
        """By name the models whose buffers have to stay in step with the reference's own."""
        return dict(self._models) if self._stateful else {}

    def _unless_memory(self, error):
        if self._wants_memory(error):
            raise error

    def state(self):
        """What restore() needs to take back the calls that follow; models without buffers have none."""
        return {name: copy.deepcopy(model.state_dict()) for name, model in self.models().items()}

    def restore(self, state):
        for name, values in state.items():
            self._models[name].load_state_dict(values)

    def judge(self, inputs, output, seed, drew, is_variant):
        """Judged for `output`, which the reference made of `inputs` (they are not changed). `drew`: it drew random
        numbers, so that nothing else can draw alike."""
        own = [leaf for _, leaf in layout.flatten(output)]
        judged = Judged(len(own))
        if drew:
            judged.notes.append("the reference draws random numbers in forward")
        elif self.failure:
            judged.notes.append(self.failure)
        else:
            try:
                self._judge(judged, inputs, own, seed, is_variant)
            except Exception as error:
                self._unless_memory(error)
                judged.notes.append(f"the reference does not run in float64: {type(error).__name__}")
        return judged

    def _exact_run(self, name, inputs, seed):
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            return self._leaves(self._models[name], cast(inputs, torch.float64), seed)
        finally:
            torch.set_default_dtype(before)

    def _leaves(self, model, inputs, seed):
        return [leaf for _, leaf in layout.flatten(self._run(model, inputs, seed))]

    def _judge(self, judged, inputs, own, seed, is_variant):
        fresh = lambda: layout.map_tensors(inputs, lambda tensor: tensor.clone())
        with _Watch() as watch:
            exact = self._exact_run("exact", fresh(), seed)
        root = math.sqrt(watch.longest)
        place = next((leaf.device for leaf in own if isinstance(leaf, torch.Tensor)), "cpu")
        generator = torch.Generator(place).manual_seed(seed & 0xFFFFFFFF)
        fine, tensor = [own], []
        judged.steepest = watch.steepest
        for name in ("moved0", "moved1"):
            moved = _moved(cast(fresh(), torch.float64), ULP * (2 + root / 4), generator)
            with _Watch(noise=generator):
                fine.append(self._exact_run(name, moved, seed))
        if watch.products:
            for name, rounding in (("cut", cut_to_tf32), ("rounded", round_to_tf32)):
                with _Watch(rounding):
                    tensor.append(self._leaves(self._models[name], fresh(), seed))
        judged.unsteady = 0.0
        for i, leaf in enumerate(own):
            if not isinstance(leaf, torch.Tensor):
                continue
            why = _unjudged(leaf, exact[i] if len(exact) == len(own) else None)
            if why:
                judged.notes.append(f"output {i} {why}")
                if any(_differs(leaf, run[i]) for run in (exact, *fine, *tensor) if len(run) == len(own)):
                    judged.unsteady = math.inf
                continue
            parts = [[run[i] for run in runs] for runs in (fine, tensor)]
            self._tolerance(judged, i, leaf, exact[i], parts, FLOOR + root, is_variant)

    def _tolerance(self, judged, i, own, exact, parts, floor, is_variant):
        exact = exact.double()
        judged.exact[i] = exact.to(torch.float32)
        if own.numel() == 0:
            judged.slack[i], judged.limits[i] = torch.zeros_like(judged.exact[i]), [0.0, 0.0]
            return
        usual = OWN_HALF if own.dtype in _HALF else OWN
        absolute, slack = [0.0, 0.0], torch.zeros_like(exact)
        worst = torch.zeros_like(exact)
        for part, (factor, results) in enumerate(zip((usual, TENSOR), parts)):
            if not results:
                continue
            error = torch.stack([_clean((result.double() - exact).abs()) for result in results]).amax(0)
            absolute[part] = factor * _quantile(error)
            slack += factor * error
            worst = torch.maximum(worst, error)
        size = _clean(exact.abs())
        scale = max(_quantile(size), float(size.mean()))
        if not is_variant:
            self._scales[i] = max(scale, self._scales.get(i, 0.0))
        scale = max(scale, self._scales.get(i, 0.0))
        if not is_variant:
            self._tf32[i] = max(absolute[1] / scale if scale > 0 else 0.0, self._tf32.get(i, 0.0))
        absolute = absolute[0] + max(absolute[1], self._tf32.get(i, 0.0) * scale)
        if scale > 0:
            judged.unsteady = max(judged.unsteady, float((worst / (size + scale)).max()))
        judged.slack[i] = slack.to(torch.float32)
        judged.limits[i] = [
            absolute + floor * ULP * scale + torch.finfo(own.dtype).smallest_normal,
            floor * ULP + 2 * _HALF.get(own.dtype, 0.0),
        ]


def _differs(own, other):
    """Whether rounding changed whole numbers; True for others."""
    if own.is_floating_point() or own.is_complex() or not isinstance(other, torch.Tensor):
        return True
    return own.shape != other.shape or own.dtype != other.dtype or not torch.equal(own, other)


def _unjudged(own, exact):
    """Why an output has no exact result, or ""."""
    if own.dtype not in _JUDGED:
        return f"is of type {str(own.dtype).removeprefix('torch.')}"
    if not isinstance(exact, torch.Tensor) or exact.shape != own.shape or not exact.is_floating_point():
        return "is something else in float64"
    return ""


def make_run(device):
    """`run` for Precision: one forward that nobody counts."""

    def run(model, inputs, seed):
        sources.seed_everything(seed)
        with torch.no_grad():
            return device.reference_call(lambda: model(*inputs), -1)

    return run
