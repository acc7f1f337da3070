import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """gelu, amin."""

    def forward(self, x):
        x = F.gelu(x)
        return torch.amin(x, dim=1)


def get_inputs():
    return [torch.randn(25, 128)]


def get_init_inputs():
    return []
