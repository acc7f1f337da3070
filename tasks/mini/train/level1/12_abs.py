import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """abs."""

    def forward(self, x):
        return torch.abs(x)


def get_inputs():
    return [torch.randn(26, 256)]


def get_init_inputs():
    return []
