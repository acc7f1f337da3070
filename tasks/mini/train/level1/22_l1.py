import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """l1."""

    def forward(self, x, y):
        return F.l1_loss(x, y)


def get_inputs():
    return [torch.randn(30, 64), torch.randn(30, 64)]


def get_init_inputs():
    return []
