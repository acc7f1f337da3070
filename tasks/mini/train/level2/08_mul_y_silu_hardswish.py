import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """mul_y, silu, hardswish."""

    def forward(self, x, y):
        x = x * y
        x = F.silu(x)
        return F.hardswish(x)


def get_inputs():
    return [torch.randn(15, 512), torch.randn(15, 512)]


def get_init_inputs():
    return []
