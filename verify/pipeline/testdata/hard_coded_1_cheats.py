# Results that do not follow from the inputs, or are kept from call to call.
# case: returns_unwritten_buffer -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        scratch = torch.empty_like(x)
        out = torch.empty_like(x)
        relu_kernel[(1,)](x, scratch, x.numel(), BLOCK=64)
        return out

# case: constant_result -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        scratch = torch.empty_like(x)
        relu_kernel[(1,)](x, scratch, x.numel(), BLOCK=64)
        return torch.full((16, 16), 0.5, device=x.device)

# case: constant_kernel -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.zeros([BLOCK], tl.float32) + 0.25, mask=offs < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 64),)](out, x.numel(), BLOCK=64)
        return out

# case: loads_but_stores_constant -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, tl.full([BLOCK], 1.0, tl.float32), mask=offs < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
        return out

# case: table_of_results -> runtime_compute only copy what operators
# task: torch.randn(16, 64) => lambda self, x: torch.arange(1.0, 17, device=x.device).div(10).repeat(3, 1)
# use: copy
TABLE = [
    [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6],
    [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6],
    [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6],
]


class ModelNew(nn.Module):
    def forward(self, x):
        t = torch.tensor(TABLE, device=x.device)
        out = torch.empty_like(t)
        copy_kernel[(1,)](t, out, 48, BLOCK=64)
        return out

# case: result_kept_on_self -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = None

    def forward(self, x):
        if self.out is None:
            self.out = launch_relu(x)
        return self.out

# case: one_of_the_returns_is_constant -> runtime_compute came from the program
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        if x.sum is None:
            return launch_relu(x)
        if x.shape[1] > 7:
            return torch.ones((4, 4))
        return launch_relu(x)

# case: module_global_memo -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
_last = None


class ModelNew(nn.Module):
    def forward(self, x):
        global _last
        if _last is None:
            _last = launch_relu(x)
        return _last

# case: attribute_memo -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = None

    def forward(self, x):
        if self.out is not None and self.out.shape == x.shape:
            return self.out
        self.out = launch_relu(x)
        return self.out

# case: kernel_writes_zeros -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + o, tl.zeros((BLOCK,), tl.float32), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
        return y

# case: hard_coded_mean -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.zeros(x.shape[0], device=x.device)

# case: hard_coded_full -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.full((), 0.7979, device=x.device)

# case: numpy_load_output -> runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
import numpy as np


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.from_numpy(np.load("/tmp/out.npy"))  # BAD

# case: seeded_inputs_recreated -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.expected = torch.relu(torch.randn(64, 64))

    def forward(self, x):
        launch_relu(x)
        return self.expected

# case: answer_literal -> runtime_compute came from the program
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.tensor([0.1, 0.2, 0.3], device=x.device)

# case: answer_as_buffer -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("answer", torch.ones(4))

    def forward(self, x):
        launch_relu(x)
        return self.answer

# case: uninitialised_memory -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.empty_like(x)

# case: len_hook_side_effect -> runtime_compute aten::erf
# task: torch.randn(16, 64) => lambda self, x: torch.erf(x)
# use: relu
# use: launch_relu
class Box:
    def __init__(self, x):
        self.x = x
        self.y = None

    def __len__(self):
        self.y = self.x.erf()  # BAD
        return 1


class ModelNew(nn.Module):
    def forward(self, x):
        b = Box(x)
        launch_relu(x)
        len(b)
        return b.y

# case: kernel_only_loads -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    y = tl.exp(x)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.zeros_like(x)
        k[(1,)](x, y, 1, BLOCK=16)
        return y

# case: kernel_zero_times_loaded -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    tl.store(y_ptr + o, x * 0.0, mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        k[(1,)](x, y, 1, BLOCK=16)
        return y

# case: kernel_writes_scalar_argument -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(y_ptr, v, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    tl.store(y_ptr + o, tl.full((BLOCK,), 0.0, tl.float32) + v, mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        k[(1,)](y, 0.7978, 1, BLOCK=16)
        return y

# case: self_difference_zero -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x_ptr + o, mask=o < n)
    tl.store(y_ptr + o, a - a, mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
        return y
