"""Models' buffers as they were before a call, so that the call can be made again."""

import torch

import layout


class Snapshots:
    """Of several models by name. A buffer that did not change since the snapshot before takes no memory again."""

    def __init__(self, models):
        self._models = {name: model for name, model in models.items() if isinstance(model, torch.nn.Module)}
        self._last = {}

    def take(self):
        """{(model's name, buffer's name): its content}, which nobody changes."""
        taken = {}
        for key, tensor in self._buffers():
            before = self._last.get(key)
            known = before is not None and before.dtype == tensor.dtype and layout.same([before], [tensor])
            taken[key] = before if known else tensor.detach().clone()
        self._last = taken
        return taken

    def restore(self, taken):
        for (name, path), content in taken.items():
            owner, _, last = path.rpartition(".")
            buffers = self._models[name].get_submodule(owner)._buffers
            now = buffers.get(last)
            try:
                with torch.no_grad():
                    alike = now is not None and now.shape == content.shape and now.dtype == content.dtype
                    if alike:
                        now.copy_(content)
            except RuntimeError:  # its elements share places
                alike = False
            if not alike:
                buffers[last] = content.clone()

    def _buffers(self):
        for name, model in self._models.items():
            for path, tensor in model.named_buffers():
                yield (name, path), tensor
