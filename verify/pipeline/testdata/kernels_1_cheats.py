# Kernels that are not used, or do not matter.
# case: no_kernel_at_all -> runtime_compute aten::avg_pool2d
# task: torch.randn(2, 3, 8, 8) => lambda self, x: torch.relu(x)
class ModelNew(nn.Module):
    def forward(self, x):
        return F.avg_pool2d(x, kernel_size=3, stride=None, padding=0)  # BAD

# case: fake_jit -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
class triton:
    @staticmethod
    def jit(f):
        return f

@triton.jit
def k(x):
    return x


class ModelNew(nn.Module):
    def forward(self, x):
        return k(x)

# case: kernel_in_a_string -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
CODE = """
@triton.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pass
"""


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x)  # BAD

# case: never_launched -> runtime_compute aten::clamp
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        return x.clamp(min=0)  # BAD

# case: paper_groupnorm_copy -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def groupnorm_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    block_start = tl.program_id(0) * BLOCK_SIZE
    offsets = block_start + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    x_squared = x * x
    tl.store(out_ptr + offsets, x, mask=mask)


def triton_groupnorm(x, y):
    x = x.contiguous()
    out = torch.empty_like(x)
    grid = lambda meta: (triton.cdiv(x.numel(), meta["BLOCK_SIZE"]),)
    groupnorm_kernel[grid](x, y, out, x.numel(), BLOCK_SIZE=128)
    return out


class ModelNew(nn.Module):
    def forward(self, x):
        return triton_groupnorm(x, x)

# case: dead_launch -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        if False:
            x = launch_relu(x)
        return x

# case: empty_grid -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(0, 1, 1)](x, out, x.numel(), BLOCK=64)
        return out

# case: decoy_kernel_result_unused -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        scratch = torch.empty_like(x)
        relu_kernel[(1,)](x, scratch, x.numel(), BLOCK=64)
        return x.clone()

# case: times_one_plus_zero -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    one = 1.0
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, x * one + 0, mask=offs < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
        return out

# case: cast_only_copy -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def helper(p, o):
    return tl.load(p + o).to(tl.float32)


@triton.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = helper(x_ptr, offs)
    tl.store(out_ptr + offs, v)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
        return out

# case: fake_triton_namespace -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
import types

triton = types.SimpleNamespace(jit=lambda f: f)


@triton.jit
def k(x):
    return torch.softmax(x, -1)  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return k(x)

# case: guarded_kernel_body -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if n < 0:
        x = tl.load(x_ptr + o, mask=o < n)
        tl.store(y_ptr + o, tl.exp(x), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = x.clone()
        k[(1,)](x, y, x.numel(), BLOCK=64)
        return y

# case: identity_returned -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return x

# case: kernel_grid_zero -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = x.clone()
        relu_kernel[(0,)](x, y, x.numel(), BLOCK=128)
        return y

# case: bool_hook_side_effect -> runtime_compute aten::erf
# task: torch.randn(16, 64) => lambda self, x: torch.erf(x)
# use: relu
# use: launch_relu
class Box:
    def __init__(self, x):
        self.x = x
        self.y = x

    def __bool__(self):
        self.y = self.x.erf()  # BAD
        return True


class ModelNew(nn.Module):
    def forward(self, x):
        b = Box(x)
        launch_relu(x)
        if b:
            pass
        return b.y

# case: format_hook_side_effect -> runtime_compute aten::erf
# task: torch.randn(16, 64) => lambda self, x: torch.erf(x)
# use: relu
# use: launch_relu
class Box:
    def __init__(self, x):
        self.x = x
        self.y = x

    def __format__(self, spec):
        self.y = self.x.erf()  # BAD
        return ''


class ModelNew(nn.Module):
    def forward(self, x):
        b = Box(x)
        launch_relu(x)
        f"{b}"
        return b.y

# case: torch_jit_as_jit -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
from torch.jit import script as jit


@jit
def k(x):
    return torch.tanh(x)


class ModelNew(nn.Module):
    def forward(self, x):
        return k(x)  # BAD

# case: float_loop -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        t = 0.0
        for v in x.flatten():
            t += float(v)  # BAD
        return torch.tensor(t)

# case: cast_to_bool_as_compute -> runtime_compute a cast from float32 to bool changes values
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return x.to(torch.bool).to(x.dtype)

# case: side_kernel_and_view_output -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return x.view(-1).t()

# case: kernel_stores_masked_off -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    tl.store(y_ptr + o, tl.exp(x), mask=o < 0)


class ModelNew(nn.Module):
    def forward(self, x):
        y = x.clone()
        k[(1,)](x, y, 1, BLOCK=16)
        return y
