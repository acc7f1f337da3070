import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """tanh, hardswish, huber_sum."""

    def forward(self, x, y):
        x = torch.tanh(x)
        x = F.hardswish(x)
        return F.huber_loss(x, y, reduction="sum", delta=1)


def get_inputs():
    return [torch.randn(10, 256), torch.randn(10, 256)]


def get_init_inputs():
    return []
