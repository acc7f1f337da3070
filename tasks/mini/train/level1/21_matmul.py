import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """matmul."""

    def forward(self, x, y):
        return x @ y


def get_inputs():
    return [torch.randn(128, 128), torch.randn(128, 112)]


def get_init_inputs():
    return []
