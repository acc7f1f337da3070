import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """layer_norm, softplus, tanh."""

    def forward(self, x):
        x = F.layer_norm(x, x.shape[1:])
        x = F.softplus(x)
        return torch.tanh(x)


def get_inputs():
    return [torch.randn(32, 128)]


def get_init_inputs():
    return []
