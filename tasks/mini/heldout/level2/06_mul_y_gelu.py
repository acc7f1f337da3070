import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """mul_y, gelu."""

    def forward(self, x, y):
        x = x * y
        return F.gelu(x)


def get_inputs():
    return [torch.randn(16, 64), torch.randn(16, 64)]


def get_init_inputs():
    return []
