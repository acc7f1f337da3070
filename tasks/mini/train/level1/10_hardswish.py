import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """hardswish."""

    def forward(self, x):
        return F.hardswish(x)


def get_inputs():
    return [torch.randn(10, 364)]


def get_init_inputs():
    return []
