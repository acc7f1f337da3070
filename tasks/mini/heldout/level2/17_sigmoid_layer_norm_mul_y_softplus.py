import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """sigmoid, layer_norm, mul_y, softplus."""

    def forward(self, x, y):
        x = torch.sigmoid(x)
        x = F.layer_norm(x, x.shape[1:])
        x = x * y
        return F.softplus(x)


def get_inputs():
    return [torch.randn(17, 147), torch.randn(17, 147)]


def get_init_inputs():
    return []
