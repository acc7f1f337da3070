import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """gelu, softplus, amax."""

    def forward(self, x):
        x = F.gelu(x)
        x = F.softplus(x)
        return torch.amax(x, dim=1)


def get_inputs():
    return [torch.randn(9, 307)]


def get_init_inputs():
    return []
