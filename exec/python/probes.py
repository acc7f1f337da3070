"""What a task must not accept: results that only the oracle can make. The others the supervisor makes from bytes."""

import torch

import layout
import precision


def half_input(inputs):
    """The inputs with the second half of the first tensor zero, or None without a tensor of two elements."""
    first = next((tensor for tensor in layout.tensors(inputs)), None)
    if first is None or first.numel() < 2:
        return None

    def halve(tensor):
        if tensor is not first:
            return tensor
        flat = tensor.clone(memory_format=torch.contiguous_format).reshape(-1)
        flat[flat.numel() // 2 :] = 0
        return flat.reshape(tensor.shape)

    return layout.map_tensors(inputs, halve)


def rounded_to(dtype):
    """A function that rounds a floating tensor to `dtype` and keeps its type."""
    top = torch.finfo(dtype).max

    def through(tensor):
        if not tensor.is_floating_point() or tensor.element_size() <= dtype.itemsize:
            return tensor
        return tensor.clamp(-top, top).to(dtype).to(tensor.dtype)

    return through


def low_type(mode, inputs, output):
    """bfloat16, which the robust rules must detect, where the task itself is in float32; else 3 bits of mantissa."""
    tensors = layout.tensors(inputs) + layout.tensors(output)
    half = any(tensor.is_floating_point() and tensor.element_size() <= 2 for tensor in tensors)
    return torch.bfloat16 if mode == "robust" and not half else torch.float8_e4m3fn


class LowPrecision:
    """The reference with inputs and weights rounded to a narrow type; with bfloat16 its outputs as well."""

    def __init__(self, model, make, run):
        self._model, self._make, self._run = model, make, run
        self._low = {}

    def __call__(self, mode, inputs, output, seed):
        dtype = low_type(mode, inputs, output)
        through = rounded_to(dtype)
        if dtype not in self._low:
            model = precision.duplicate(self._model, self._make)
            if isinstance(model, torch.nn.Module):
                with torch.no_grad():
                    for tensor in [*model.parameters(), *model.buffers()]:
                        tensor.data.copy_(through(tensor.data))
            self._low[dtype] = model
        result = self._run(self._low[dtype], layout.map_tensors(inputs, through), seed)
        return layout.map_tensors(result, through) if dtype == torch.bfloat16 else result


def casts(inputs, output):
    """For each tensor of the output an input of its shape and another type, cast; None where one has none."""
    found = True

    def take(tensor):
        nonlocal found
        same = [t for t in layout.tensors(inputs) if t.shape == tensor.shape]
        if not same or any(t.dtype == tensor.dtype for t in same):
            found = False
            return tensor
        return same[0].to(tensor.dtype)

    result = layout.map_tensors(output, take)
    return result if found and layout.tensors(output) else None
