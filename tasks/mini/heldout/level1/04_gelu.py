import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """gelu."""

    def forward(self, x):
        return F.gelu(x)


def get_inputs():
    return [torch.randn(15, 484)]


def get_init_inputs():
    return []
