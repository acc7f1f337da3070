import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """mul_y."""

    def forward(self, x, y):
        return x * y


def get_inputs():
    return [torch.randn(18, 198), torch.randn(18, 198)]


def get_init_inputs():
    return []
