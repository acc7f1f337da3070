import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """tanh, leaky_relu."""

    def forward(self, x):
        x = torch.tanh(x)
        return F.leaky_relu(x, 0.2)


def get_inputs():
    return [torch.randn(14, 238)]


def get_init_inputs():
    return []
