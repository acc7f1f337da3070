# torch computes in methods and operators of tensors.
# case: starred_unpack_call -> runtime_compute aten::mm
# task: torch.randn(64, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        f, *rest = torch.matmul, x, x
        return f(*rest)  # BAD

# case: tensor_constructor_trick -> runtime_compute aten::mul
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.Tensor.mul(x, 2)  # BAD

# case: interpolate_pad_mode -> runtime_compute aten::upsample_nearest1d
# task: torch.randn(2, 3, 16) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return F.interpolate(launch_relu(x), scale_factor=2)  # BAD

# case: reflected_operator_with_number -> runtime_compute aten::sub
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return 1.0 - launch_relu(x)  # BAD

# case: power_operator -> runtime_compute aten::pow
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x) ** 2  # BAD

# case: invert_and_shift_operators -> runtime_compute aten::bitwise_not
# task: torch.randint(-9, 9, (16, 64)) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return ~launch_relu(x) << 1  # BAD

# case: addcmul_inplace -> runtime_compute aten::addcmul_
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        return y.addcmul_(x, x)  # BAD

# case: copy_with_dtype_saturation -> runtime_compute aten::clamp_
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        return y.clip_(0, 1)  # BAD

# case: matmul_then_kernel_epilogue_only -> runtime_compute aten::mm
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 4))

    def forward(self, x):
        h = x.matmul(self.w)  # BAD
        return launch_relu(h)

# case: softmax_method_before_kernel -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x.float().softmax(dim=-1))  # BAD

# case: sort_method -> runtime_compute aten::sort
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x).sort(dim=-1).values  # BAD

# case: argmax_after -> runtime_compute aten::argmax
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x).argmax(-1)  # BAD

# case: norm_division -> runtime_compute aten::linalg_vector_norm
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        return y / y.norm()  # BAD

# case: weight_precombined_per_call -> runtime_compute aten::mm
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.randn(8, 8))
        self.b = nn.Parameter(torch.randn(8, 8))

    def forward(self, x):
        w = self.a @ self.b  # BAD
        return launch_relu(w)

# case: scale_by_tensor_parameter -> runtime_compute aten::mul
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = nn.Parameter(torch.ones(4))

    def forward(self, x):
        return launch_relu(x) * self.s  # BAD

# case: dict_of_methods -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        t = {"a": torch.Tensor.exp}
        return t["a"](launch_relu(x))  # BAD

# case: compose_helper -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
def compose(*fs):
    def run(x):
        for f in reversed(fs):
            x = f(x)  # BAD
        return x
    return run


class ModelNew(nn.Module):
    def forward(self, x):
        return compose(torch.exp, launch_relu)(x)

# case: recursive_helper_torch -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
def rec(x, n):
    if n == 0:
        return x
    return rec(x.exp(), n - 1)  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(rec(x, 3))

# case: while_loop_torch -> runtime_compute aten::sqrt
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        n = 0
        while n < 3:
            y = y.sqrt()  # BAD
            n += 1
        return y

# case: try_else_clause_torch -> runtime_compute aten::cos
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        try:
            y = launch_relu(x)
        except RuntimeError:
            raise
        else:
            y = y.cos()  # BAD
        return y

# case: every_other_call -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.flip = False

    def forward(self, x):
        self.flip = not self.flip
        if self.flip:
            return launch_relu(x)
        return x.relu()  # BAD

# case: contextvars_run -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
import contextvars


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return contextvars.copy_context().run(torch.tanh, x)  # BAD

# case: numpy_vectorize -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
import numpy as np


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.tensor(np.vectorize(abs)(x.cpu()))  # BAD

# case: list_comprehension_relu -> runtime_compute aten::gt
# task: torch.randn(64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.tensor([v if v > 0 else 0 for v in x])  # BAD

# case: conditional_expression_always_torch -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x) if x.numel() < 1 else x.relu()  # BAD

# case: type_of_self_forward -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class Base(nn.Module):
    def forward(self, x):
        return x.tanh()  # BAD


class ModelNew(Base):
    def forward(self, x):
        launch_relu(x)
        return Base.forward(self, x)

# case: jit_kernel_fn_called_directly -> runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        relu_kernel.fn(x, y, 4, 64)
        return y.copy_(x.relu())
