import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """gelu, mul_y, mul."""

    def forward(self, x, y):
        x = F.gelu(x)
        x = x * y
        return x * 0.5


def get_inputs():
    return [torch.randn(12, 215), torch.randn(12, 215)]


def get_init_inputs():
    return []
