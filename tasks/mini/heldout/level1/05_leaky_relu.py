import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """leaky_relu."""

    def forward(self, x):
        return F.leaky_relu(x, 0.1)


def get_inputs():
    return [torch.randn(25, 502)]


def get_init_inputs():
    return []
