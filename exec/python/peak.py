"""How much GPU memory calls needed at most, by torch's own count."""

import torch


class Peak:
    """Without a GPU all of it is 0."""

    def __init__(self, has_gpu):
        self._has_gpu = has_gpu
        self.call_bytes = 0  # the most that a call in around() took beyond what was there before

    def around(self, function):
        if not self._has_gpu:
            return function()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        result = function()
        self.call_bytes = max(self.call_bytes, torch.cuda.max_memory_allocated() - before)
        return result
