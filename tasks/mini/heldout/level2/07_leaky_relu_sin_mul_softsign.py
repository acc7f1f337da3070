import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """leaky_relu, sin, mul, softsign."""

    def forward(self, x):
        x = F.leaky_relu(x, 0.2)
        x = torch.sin(x)
        x = x * 1.5
        return F.softsign(x)


def get_inputs():
    return [torch.randn(20, 128)]


def get_init_inputs():
    return []
