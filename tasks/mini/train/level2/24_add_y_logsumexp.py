import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """add_y, logsumexp."""

    def forward(self, x, y):
        x = x + y
        return torch.logsumexp(x, dim=1)


def get_inputs():
    return [torch.randn(12, 49), torch.randn(12, 49)]


def get_init_inputs():
    return []
