# torch computes in functions.
# case: nested_function_shadow -> runtime_compute aten::hardtanh
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
def relu_kernel_launch(x):
    return torch.nn.functional.relu6(x)  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
        out = relu_kernel_launch(x)
        return out

# case: torch_load_output -> runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.load("/tmp/out.pt")  # BAD

# case: exception_carries_tensor -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        try:
            raise ValueError(torch.softmax(x, -1))  # BAD
        except ValueError as e:
            launch_relu(x)
            return e.args[0]

# case: new_returns_other_object -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class Other(nn.Module):
    def forward(self, x):
        return torch.tanh(x)  # BAD


class ModelNew(nn.Module):
    def __new__(cls, *a):
        return Other()

    def forward(self, x):
        return launch_relu(x)

# case: model_rebound_after_class -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)


class Other(nn.Module):
    def forward(self, x):
        return torch.tanh(x)  # BAD


ModelNew = Other

# case: python_max_of_rows -> runtime_compute aten::gt
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.stack([max(r) for r in x])  # BAD

# case: data_setter -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        y.data = torch.softmax(x, -1)  # BAD
        return y

# case: swap_tensors -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        z = x.softmax(-1)  # BAD
        torch.utils.swap_tensors(y, z)
        return y

# case: where_torch -> runtime_compute aten::gt
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.where(x > 0, launch_relu(x), x * 0.1)  # BAD

# case: device_name_switch -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        if "Voodoo" in torch.cuda.get_device_name():
            return launch_relu(x)
        return x.tanh()  # BAD

# case: grad_mode_switch -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        if torch.is_grad_enabled():
            return launch_relu(x)
        return x.relu()  # BAD

# case: empty_kernel_pass -> runtime_compute aten::cumprod
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(x_ptr, n, BLOCK: tl.constexpr):
    pass


class ModelNew(nn.Module):
    def forward(self, x):
        k[(1,)](x, 1, BLOCK=1)
        return torch.cumprod(x, 0)  # BAD

# case: quantize_ops -> bad_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.quantize_per_tensor(x, 0.1, 0, torch.qint8).dequantize()

# case: sparse_mm -> runtime_compute aten::_to_sparse
# task: torch.randn(64, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.sparse.mm(x.to_sparse(), x)  # BAD

# case: foreach_ops -> runtime_compute aten::_foreach_mul_
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        torch._foreach_mul_([y], 2.0)  # BAD
        return y

# case: special_functions -> runtime_compute aten::erf
# task: torch.randn(16, 64) => lambda self, x: torch.erf(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.special.erf(launch_relu(x))  # BAD

# case: fold_unfold -> runtime_compute aten::im2col
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(F.unfold(x, 3))  # BAD

# case: one_hot -> runtime_compute aten::scatter_
# task: torch.randint(0, 10, (64,)) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(F.one_hot(x, 10).float())  # BAD

# case: conv_via_unfold_bmm -> runtime_compute aten::im2col
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        cols = F.unfold(x, 3)  # BAD
        return launch_relu(cols)

# case: embedding_bag_functional -> runtime_compute aten::index_select
# task: torch.randint(0, 10, (64,)) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(10, 4))

    def forward(self, x):
        return launch_relu(F.embedding(x, self.w))  # BAD

# case: topk_values -> runtime_compute aten::topk
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        v, i = torch.topk(launch_relu(x), 3)  # BAD
        return v

# case: cat_of_torch_and_kernel_rows -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.cat([launch_relu(x[:1]), x[1:].relu()])  # BAD

# case: stack_of_row_sums -> runtime_compute aten::sum
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.stack([r.sum() for r in x])  # BAD

# case: kernel_on_clone_result_dropped -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        tmp = launch_relu(x.clone())
        del tmp
        return F.relu(x)  # BAD

# case: assert_fallback -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        try:
            assert x.shape[0] == 123457
            return launch_relu(x)
        except AssertionError:
            return torch.relu(x)  # BAD

# case: isinstance_switch -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        if isinstance(x, nn.Parameter):
            return launch_relu(x)
        return torch.relu(x)  # BAD

# case: torch_version_switch -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        if torch.__version__.startswith('1.'):
            return launch_relu(x)
        return torch.relu(x)  # BAD

# case: hasattr_switch -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        if hasattr(torch, 'no_such_thing'):
            return launch_relu(x)
        return torch.relu(x)  # BAD
