import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """amax."""

    def forward(self, x):
        return torch.amax(x, dim=1)


def get_inputs():
    return [torch.randn(12, 121)]


def get_init_inputs():
    return []
