import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """sub_y."""

    def forward(self, x, y):
        return x - y


def get_inputs():
    return [torch.randn(31, 189), torch.randn(31, 189)]


def get_init_inputs():
    return []
