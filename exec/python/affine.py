"""Parameters and buffers that a constructor leaves at 0 or 1 (scales and biases of norms, running statistics) get other
values, so that a program has to use them."""

import torch

import layout

SPREAD = 0.1
LEAST_SCALE = 0.5  # what was 1 may be a variance


def vary(model, seed):
    """For the parameters of a model that are 0 everywhere, or 1, and such buffers: {name: other values}. 0 becomes 0.1
    times a normal number, 1 becomes 1 plus that, but at least 0.5. Buffers without a dimension (counters) stay."""
    if not isinstance(model, torch.nn.Module):
        return {}
    generator = torch.Generator("cpu").manual_seed(seed & 0xFFFFFFFF)
    varied = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        constant = constant_of(tensor)
        if constant is None or not (tensor.dim() or isinstance(tensor, torch.nn.Parameter)):
            continue
        noise = SPREAD * torch.randn(tensor.shape, generator=generator, dtype=torch.float32)
        values = (1 + noise).clamp(min=LEAST_SCALE) if constant else noise
        varied[name] = values.to(tensor.device, tensor.dtype)
    return varied


def without_written(values, model):
    """Those of the values whose place in the model, after a call of it, still holds 0 or 1: a forward keeps what it
    likes in a buffer. Running statistics are written too, but are statistics whatever they were."""
    state = model.state_dict()
    return {
        name: value
        for name, value in values.items()
        if constant_of(state[name]) is not None or name.split(".")[-1] in ("running_mean", "running_var")
    }


def constant_of(tensor):
    """0 or 1 if that is what a floating tensor holds everywhere, else None."""
    if not isinstance(tensor, torch.Tensor) or not tensor.is_floating_point() or tensor.element_size() < 2:
        return None
    if tensor.layout != torch.strided or tensor.numel() == 0:
        return None
    tensor = tensor.detach()
    first = float(tensor.reshape(-1)[0])
    return int(first) if first in (0.0, 1.0) and bool((tensor == first).all()) else None


@torch.no_grad()
def put(values, model):
    """Gives a model's parameters and buffers of these names their values."""
    state = model.state_dict(keep_vars=True) if values else {}
    for name, value in values.items():
        state[name].data.copy_(value)


def is_finite(output):
    return all(bool(torch.isfinite(t).all()) for t in layout.tensors(output) if t.is_floating_point())
