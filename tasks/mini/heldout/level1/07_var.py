import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """var."""

    def forward(self, x):
        return torch.var(x, dim=1)


def get_inputs():
    return [torch.randn(16, 499)]


def get_init_inputs():
    return []
