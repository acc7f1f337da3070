import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """mul, neg, gelu."""

    def forward(self, x):
        x = x * 2
        x = -x
        return F.gelu(x)


def get_inputs():
    return [torch.randn(16, 196)]


def get_init_inputs():
    return []
