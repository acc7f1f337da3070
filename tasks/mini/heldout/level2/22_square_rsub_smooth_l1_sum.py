import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """square, rsub, smooth_l1_sum."""

    def forward(self, x, y):
        x = x * x
        x = 1.5 - x
        return F.smooth_l1_loss(x, y, reduction="sum", beta=1)


def get_inputs():
    return [torch.randn(19, 64), torch.randn(19, 64)]


def get_init_inputs():
    return []
