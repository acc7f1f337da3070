# torch computes in methods and operators of tensors.
# case: varfuncs -> runtime_compute aten::mm
# task: torch.randn(16, 64), torch.randn(64, 16) => lambda self, x, y: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x, y):
        f = torch._C._VariableFunctions.matmul
        return launch_relu(f(x, y))  # BAD

# case: tensor_method_unbound -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.Tensor.softmax(launch_relu(x), -1)  # BAD

# case: operator_module_mul -> runtime_compute aten::mul
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
import operator


class ModelNew(nn.Module):
    def forward(self, x):
        return operator.mul(launch_relu(x), x)  # BAD

# case: dunder_call_mul -> runtime_compute aten::mul
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x).__mul__(2.0)  # BAD

# case: mean_after_kernel -> runtime_compute aten::mean
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x).mean(dim=-1)  # BAD

# case: sum_of_partials_in_torch -> runtime_compute aten::sum
# task: torch.randn(32, 1024) => lambda self, x: torch.relu(x)
# use: relu
@triton.jit
def part(x_ptr, p_ptr, n, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    o = p * BLOCK + tl.arange(0, BLOCK)
    tl.store(p_ptr + p, tl.sum(tl.load(x_ptr + o, mask=o < n, other=0.0)))


class ModelNew(nn.Module):
    def forward(self, x):
        blocks = triton.cdiv(x.numel(), 1024)
        p = torch.empty(blocks, device=x.device)
        part[(blocks,)](x, p, x.numel(), BLOCK=1024)
        return p.sum()  # BAD

# case: inplace_method_after -> runtime_compute aten::add_
# task: torch.randn(16, 64), torch.randn(16, 64) => lambda self, x, b: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x, b):
        y = launch_relu(x)
        y.add_(b)  # BAD
        return y

# case: comparison_masking -> runtime_compute aten::lt
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        y[x < 0] = 0  # BAD
        return y

# case: index_select_gather -> runtime_compute aten::index
# task: torch.randn(64, 64), torch.randint(0, 64, (32,)) => lambda self, x, idx: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x, idx):
        launch_relu(x)
        return x[idx]  # BAD

# case: walrus_and_ternary_torch -> runtime_compute aten::sigmoid
# task: torch.randn(16, 64) => lambda self, x: torch.sigmoid(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return y if (y := x.sigmoid()) is not None else launch_relu(x)  # BAD

# case: match_statement_torch -> runtime_compute aten::sinh
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        match x.dim():
            case 17:
                return launch_relu(x)
            case _:
                return x.sinh()  # BAD

# case: default_argument_computes -> runtime_compute aten::silu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x, f=F.silu):
        return f(launch_relu(x))  # BAD

# case: finally_return -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        try:
            y = launch_relu(x)
        finally:
            y = x.relu()  # BAD
        return y

# case: checkpoint_runs_torch -> runtime_compute aten::mish
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        from torch.utils.checkpoint import checkpoint
        return launch_relu(checkpoint(F.mish, x, use_reentrant=False))  # BAD

# case: subtract_itself -> runtime_compute aten::sub
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        return y - y  # BAD

# case: builtin_sum_over_tensor -> runtime_compute aten::add
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return sum(x)  # BAD

# case: set_storage -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        y.set_(x.softmax(-1))  # BAD
        return y

# case: scatter_add_method -> runtime_compute aten::scatter_add_
# task: torch.randn(16, 64), torch.randint(0, 16, (16, 64)), torch.randn(16, 64) => lambda self, x, i, v: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x, i, v):
        y = launch_relu(x)
        return y.scatter_add_(0, i, v)  # BAD

# case: masked_fill_torch -> runtime_compute aten::masked_fill_
# task: torch.randn(16, 64), torch.randn(16, 64) > 0 => lambda self, x, m: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x, m):
        return launch_relu(x).masked_fill(m, 0.0)  # BAD

# case: matmul_in_slice_assignment -> runtime_compute aten::mm
# task: torch.randn(64, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        y[:] = x @ x  # BAD
        return y

# case: augmented_setitem -> runtime_compute aten::add_
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        y[0] += x[0]  # BAD
        return y

# case: function_attribute_store -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
def helper(x):
    helper.result = x.tanh()  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        helper(x)
        launch_relu(x)
        return helper.result

# case: nonlocal_closure_store -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = None

        def go():
            nonlocal y
            y = x.tanh()  # BAD

        go()
        launch_relu(x)
        return y

# case: kernel_hidden_behind_random -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        import random
        if random.random() > 2:
            return launch_relu(x)
        return x.tanh()  # BAD

# case: dtype_switch_to_torch -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        if x.dtype == torch.float64:
            return launch_relu(x)
        return x.relu()  # BAD

# case: requires_grad_switch -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return x.relu() if x.requires_grad is False else launch_relu(x)  # BAD

# case: kernel_scalar_from_item -> runtime_compute aten::mean
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(y_ptr, v, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    tl.store(y_ptr + o, tl.zeros((BLOCK,), tl.float32) + v, mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        k[(1,)](y, x.mean().item(), 1, BLOCK=16)  # BAD
        return y

# case: comprehension_if_computes -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return [y for y in [x.tanh()] if y is not None][0]  # BAD
