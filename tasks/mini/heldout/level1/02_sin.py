import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """sin."""

    def forward(self, x):
        return torch.sin(x)


def get_inputs():
    return [torch.randn(30, 64)]


def get_init_inputs():
    return []
