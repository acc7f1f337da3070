"""Other inputs for a task, made from its own: shifted, small, heavy-tailed, with ties.

Only floating tensors that look continuous are touched, and they stay in their domain: what is positive stays positive,
what lies in [0, 1] stays there; masks, one-hot rows, probabilities that sum to 1 and indices are left alone. Structure that
a program may rely on stays: zeros of triangular, banded and sparse tensors, symmetric matrices, sorted rows.
"""

import torch

import layout

NAMES = ("shifted", "small", "heavy_tailed", "ties")
_SAMPLED = 4096
_SMALL = 1e-3
_MANY_ZEROS = 0.02  # from this share on, zeros stand where they do on purpose
# How far a variant goes: standard deviations of a shift, the factor of one element in ten. The second is tried where the
# first goes too far for the reference.
STRENGTHS = {"shifted": (3.0, 0.5), "heavy_tailed": (30.0, 6.0)}
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
        if not looks_continuous(tensor):
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


_CHANGES = {"shifted": _shifted, "small": _small, "heavy_tailed": _heavy_tailed, "ties": _ties}
