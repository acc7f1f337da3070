import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """neg."""

    def forward(self, x):
        return -x


def get_inputs():
    return [torch.randn(26, 128)]


def get_init_inputs():
    return []
