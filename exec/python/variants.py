"""Other inputs for a task, made from its own: shifted, small, heavy-tailed, with ties, and of a size that varies along an
axis (a stretch, a ramp).

Only floating tensors that look continuous are touched, and they stay in their domain: what is positive stays positive,
what lies in [0, 1] stays there; masks, one-hot rows, probabilities that sum to 1 and indices are left alone. Structure that
a program may rely on stays: zeros of triangular, banded and sparse tensors, symmetric matrices, sorted rows.
"""

import math

import torch

import layout

NAMES = ("shifted", "small", "heavy_tailed", "ties", "stretch", "ramp")
# Those whose size varies along an axis: a reference may well lose its digits on them.
UNEVEN = ("stretch", "ramp")
_SAMPLED = 4096
_SMALL = 1e-3
_MANY_ZEROS = 0.02  # from this share on, zeros stand where they do on purpose
# How far a variant goes: standard deviations of a shift, the factor of one element in ten, of a stretch, of a ramp's end
# over its beginning. The next one is tried where one goes too far for the reference; a factor below 1 makes the rest
# smaller instead, so that no element becomes larger than the task's own.
STRENGTHS = {
    "shifted": (3.0, 0.5),
    "heavy_tailed": (30.0, 6.0),
    "stretch": (60.0, 8.0, 1 / 30),
    "ramp": (60.0, 8.0, 1 / 30),
}
# The least length of an axis along which the size varies.
_LONG = 4
# Formulas by exp, which people may write, are given no larger numbers than this (nor than the task's own).
STEEPEST = 40.0


def looks_continuous(tensor):
    """Floating, finite, mostly distinct values, and no probabilities."""
    if not tensor.is_floating_point() or tensor.element_size() < 2 or tensor.numel() < 2:
        return False
    step = max(1, tensor.numel() // _SAMPLED) | 1
    sample = tensor.reshape(-1)[::step].float()
    if not bool(torch.isfinite(sample).all()) or sample.unique().numel() * 2 <= sample.numel():
        return False
    if bool((sample >= 0).all()) and tensor.dim() and tensor.shape[-1] > 1:
        sums = tensor.float().sum(-1)
        return not bool(torch.allclose(sums, torch.ones_like(sums), atol=1e-2))
    return True


def make(name, inputs, seed, strength=None):
    """The inputs changed in the way of `name`, or None where it changes nothing. The strength is the first one of
    STRENGTHS unless another is given."""
    strength = strength or STRENGTHS.get(name, (1.0,))[0]
    place = next((tensor.device for tensor in layout.tensors(inputs)), "cpu")
    generator = torch.Generator(place).manual_seed(seed & 0xFFFFFFFF)
    changed = False

    def change(tensor):
        nonlocal changed
        if not looks_continuous(tensor) or (name in UNEVEN and max(tensor.shape, default=0) < _LONG):
            return tensor
        changed = True
        wide = tensor.double()
        low, high = float(wide.min()), float(wide.max())
        unit = low >= 0 and high <= 1
        result = _keep_structure(wide, _CHANGES[name](wide, low >= 0, unit, generator, strength))
        return result.clamp(low, high).to(tensor.dtype) if unit else result.to(tensor.dtype)

    result = layout.map_tensors(inputs, change)
    return result if changed else None


def _keep_structure(x, result):
    if x.dim() and x.shape[-1] > 2 and bool((x.diff(dim=-1) >= 0).all()):
        result = result.sort(dim=-1).values
    if x.dim() >= 2 and x.shape[-1] == x.shape[-2] and torch.equal(x, x.mT):
        result = result.tril() + result.tril(-1).mT
    zero = x == 0
    return result.masked_fill(zero, 0) if float(zero.double().mean()) > _MANY_ZEROS else result


def _shifted(x, positive, unit, generator, strength):
    """The mean far from zero, compared with the spread."""
    return 1 - (1 - x) / 8 if unit else x + strength * x.std()


def _small(x, positive, unit, generator, strength):
    return x * _SMALL


def _heavy_tailed(x, positive, unit, generator, strength):
    if unit:
        return x**4
    far = torch.rand(x.shape, generator=generator, dtype=torch.float64, device=generator.device).to(x.device) < 0.1
    return torch.where(far, x * strength, x)


def _ties(x, positive, unit, generator, strength):
    """Few distinct values, and a first row that is constant."""
    step = 0.125 if unit else 0.5
    x = (x / step).round() * step + 0.0
    if positive and not unit:
        x = x.clamp(min=step)
    if x.dim() > 1 and x.shape[0] > 1:
        x[0] = x[0].reshape(-1)[0]
    return x


def _uneven_axes(shape, generator):
    """The last axis that is long enough, and any other one such."""
    axes = [axis for axis, length in enumerate(shape) if length >= _LONG]
    if len(axes) < 2:
        return axes
    other = int(torch.randint(len(axes) - 1, (), generator=generator, device=generator.device))
    return [axes[-1], axes[other]]


def _along(values, axis, dimensions):
    return values.view([-1 if i == axis else 1 for i in range(dimensions)])


def _stretch(x, positive, unit, generator, strength):
    """A random range of the columns and one of the rows are large: a sixth to a third of each, and none of the first
    quarter, from which a program might judge the rest."""
    inside = torch.zeros(x.shape, dtype=torch.bool, device=x.device)
    for axis in _uneven_axes(x.shape, generator):
        length = x.shape[axis]
        place, size = torch.rand(2, generator=generator, dtype=torch.float64, device=generator.device).tolist()
        count = max(1, round(length * (1 + size) / 6))
        start = length // 4 + int(place * (length - length // 4 - count + 1))
        index = torch.arange(length, device=x.device)
        inside |= _along((index >= start) & (index < start + count), axis, x.dim())
    low, high = _factors(unit, strength)
    return torch.where(inside, x * high, x * low)


def _ramp(x, positive, unit, generator, strength):
    """The size grows along the columns, and along the rows."""
    axes = _uneven_axes(x.shape, generator)
    low, high = (math.log(factor) / len(axes) for factor in _factors(unit, strength))
    for axis in axes:
        x = x * _along(torch.linspace(low, high, x.shape[axis], dtype=x.dtype, device=x.device).exp(), axis, x.dim())
    return x


def _factors(unit, strength):
    """Of the small and of the large elements."""
    return (min(strength, 1 / strength), 1.0) if unit or strength < 1 else (1.0, strength)


_CHANGES = {
    "shifted": _shifted,
    "small": _small,
    "heavy_tailed": _heavy_tailed,
    "ties": _ties,
    "stretch": _stretch,
    "ramp": _ramp,
}
