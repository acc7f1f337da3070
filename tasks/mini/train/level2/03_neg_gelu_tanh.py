import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """neg, gelu, tanh."""

    def forward(self, x):
        x = -x
        x = F.gelu(x)
        return torch.tanh(x)


def get_inputs():
    return [torch.randn(21, 256)]


def get_init_inputs():
    return []
