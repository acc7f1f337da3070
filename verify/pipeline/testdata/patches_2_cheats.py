# Patches of torch, Triton and the classes around them.
# case: singledispatch -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
import functools


@functools.singledispatch
def op(x):
    return x.tanh()  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return op(x)

# case: patch_class_in_library -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
nn.Module.__call__ = lambda self, x: x


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: mangled_setattr -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
def nop():
    return 0


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.__f = nop
        setattr(self, "_ModelNew" + "__f", by_hand)
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        self.__f()
        return o
