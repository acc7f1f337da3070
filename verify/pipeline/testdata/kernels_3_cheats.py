# Kernels that are not used, or do not matter.
# case: kernel_reads_output_only -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + o, tl.load(y_ptr + o, mask=o < n), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
        return y

# case: grid_from_empty_tuple_product -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = x.clone()
        relu_kernel[(0, 1)](x, y, x.numel(), BLOCK=64)
        return y

# case: n_elements_zero -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = x.clone()
        relu_kernel[(1,)](x, y, 0, BLOCK=64)
        return y

# case: answer_in_weight_literal -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))

    def forward(self, x):
        launch_relu(x)
        return self.w.view(-1)

# case: lambda_forward_gives_the_input -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    forward = lambda self, x: launch_relu(x) is None or x

# case: pad_alone -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return F.pad(x, (1, 1))

# case: named_tuple_by_index -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
from collections import namedtuple
# use: relu
# use: launch_relu
Both = namedtuple("Both", "a b")


class ModelNew(nn.Module):
    def forward(self, x):
        return Both(launch_relu(x), x)[1]

# case: kernel_built_but_never_launched -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
def build():
    @triton.jit
    def kern(x, y, n, B: tl.constexpr):
        o = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(y + o, tl.maximum(tl.load(x + o, mask=o < n), 0.0), mask=o < n)

    return kern


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kern = build()

    def forward(self, x):
        return x.clone()

# case: jit_in_a_function_nobody_calls -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
def build():
    return triton.jit(lambda x: x)


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x)  # BAD

# case: repeated_and_returned -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return x.repeat_interleave(2, 0)

# case: lazy_map_of_init -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def __init__(self, n=1):
        super().__init__()
        self.box = []
        self.m = map(torch.relu, self.box)

    def forward(self, x):
        self.box.append(x)
        for y in self.m:  # BAD
            return y
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: weight_of_zero -> decoration is decoration
# task: torch.randn(4, 100) => lambda self, x: x.reshape(8, 50)
@triton.jit
def k(out_ptr, gate_ptr, n, BLOCK: tl.constexpr):  # BAD
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(out_ptr + offs, mask=offs < n)
    gate = tl.load(gate_ptr)
    tl.store(out_ptr + offs, v + gate * tl.sin(v), mask=offs < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        out = x.clone()
        k[(triton.cdiv(x.numel(), 256),)](out, self.gate, x.numel(), BLOCK=256)
        return out.view(8, 50)

# case: addition_below_the_tolerance -> decoration is decoration
# task: torch.randn(4, 100) => lambda self, x: x.reshape(100, 4)
@triton.jit
def k(out_ptr, n, BLOCK: tl.constexpr):  # BAD
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(out_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, v + 1e-6 * tl.cos(v), mask=offs < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = x.clone()
        k[(triton.cdiv(x.numel(), 256),)](out, x.numel(), BLOCK=256)
        return out.view(100, 4)
