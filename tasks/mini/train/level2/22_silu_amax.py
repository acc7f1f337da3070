import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """silu, amax."""

    def forward(self, x):
        x = F.silu(x)
        return torch.amax(x, dim=1)


def get_inputs():
    return [torch.randn(22, 256)]


def get_init_inputs():
    return []
