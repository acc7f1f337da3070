# torch computes in functions.
# case: inherits_reference -> runtime_compute aten::sigmoid
# task: torch.randn(16, 64) => lambda self, x: torch.sigmoid(x)
# use: relu
# use: launch_relu
class Model(nn.Module):
    def forward(self, x):
        return torch.sigmoid(x)  # BAD


class ModelNew(Model):
    def forward(self, x):
        return launch_relu(super().forward(x))

# case: fallback_by_size -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        if x.shape[0] < 4096:
            return torch.softmax(x, dim=-1)  # BAD
        return launch_relu(x)

# case: decoy_kernel -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        scratch = torch.empty_like(x)
        relu_kernel[(1,)](x, scratch, x.numel(), BLOCK=64)
        return torch.softmax(x, dim=-1)  # BAD

# case: aten_ops -> runtime_compute aten::mm
# task: torch.randn(16, 64), torch.randn(64, 16) => lambda self, a, b: torch.relu(a)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, a, b):
        return launch_relu(torch.ops.aten.mm.default(a, b))  # BAD

# case: torch_c_namespace -> runtime_compute aten::gelu
# task: torch.randn(16, 64) => lambda self, x: F.gelu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(torch._C._nn.gelu(x))  # BAD

# case: forward_replaced -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)


def other(self, x):
    return launch_relu(torch.exp(x))  # BAD


ModelNew.forward = other

# case: python_loop_over_elements -> runtime_compute aten::gt
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        rows = [max(row) for row in x]  # BAD
        return launch_relu(torch.stack(rows))

# case: walrus -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(y := torch.exp(x))  # BAD

# case: out_argument -> runtime_compute aten::add
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        out = launch_relu(x)
        torch.add(out, x, out=out)  # BAD
        return out

# case: star_arguments -> runtime_compute aten::mm
# task: torch.randn(64, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        args = [x, x]
        return launch_relu(torch.matmul(*args))  # BAD

# case: recursion_hides_compute -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
def walk(x, n):
    if n == 0:
        return torch.exp(x)  # BAD
    return walk(x, n - 1)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(walk(x, 3))

# case: partial_data_then_torch_for_the_rest -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        half = x.shape[0] // 2
        top = launch_relu(x[:half])
        bottom = torch.relu(x[half:])  # BAD
        return torch.cat([top, bottom])

# case: result_times_zero -> runtime_compute aten::native_layer_norm
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = F.layer_norm(x, x.shape[-1:])  # BAD
        return y + 0 * launch_relu(x)

# case: kernel_result_overwritten -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        out = launch_relu(x)
        out.copy_(torch.relu(x))  # BAD
        return out

# case: time_flag_chooses_torch -> runtime_compute aten::threshold
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
import time


class ModelNew(nn.Module):
    def forward(self, x):
        if time.time() < 0:
            return launch_relu(x)
        return torch.threshold(x, 0.0, 0.0)  # BAD

# case: einsum_matmul -> runtime_compute aten::bmm
# task: torch.randn(16, 64), torch.randn(64, 16) => lambda self, a, b: torch.relu(a)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, a, b):
        return launch_relu(torch.einsum("ij,jk->ik", a, b))  # BAD

# case: out_argument_again -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        torch.exp(x, out=y)  # BAD
        return y

# case: torch_ops_aten -> runtime_compute aten::gelu
# task: torch.randn(16, 64) => lambda self, x: F.gelu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(torch.ops.aten.gelu.default(x))  # BAD

# case: torch_c_nn -> runtime_compute aten::addmm
# task: torch.randn(16, 64), torch.randn(32, 64), torch.randn(32) => lambda self, x, w, b: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x, w, b):
        return launch_relu(torch._C._nn.linear(x, w, b))  # BAD

# case: decorator_replaces_forward -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
def wrap(fn):
    def inner(self, x):
        fn(self, x)
        return torch.tanh(x)  # BAD
    return inner


class ModelNew(nn.Module):
    @wrap
    def forward(self, x):
        return launch_relu(x)

# case: forward_rebound_in_init -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.forward = self._f

    def _f(self, x):
        return torch.tanh(x)  # BAD

    def forward(self, x):
        return launch_relu(x)

# case: custom_op_torch -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
# use: relu
# use: launch_relu
@torch.library.custom_op("my::op", mutates_args=())
def my_op(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return my_op(launch_relu(x))

# case: kernel_times_zero_plus_copy -> runtime_compute aten::gelu
# task: torch.randn(16, 64) => lambda self, x: F.gelu(x)
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    tl.store(y_ptr + o, x + 0.0, mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        z = F.gelu(x)  # BAD
        y = torch.empty_like(z)
        k[(triton.cdiv(z.numel(), 64),)](z, y, z.numel(), BLOCK=64)
        return y

# case: sdpa_in_helper_class -> runtime_compute aten::scaled_dot_product_attention
# task: torch.randn(2, 4, 16, 64), torch.randn(2, 4, 16, 64), torch.randn(2, 4, 16, 64) => lambda self, q, k, v: torch.relu(q)
# use: relu
# use: launch_relu
class Attention(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v)  # BAD


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.att = Attention()

    def forward(self, q, k, v):
        return launch_relu(self.att(q, k, v))

# case: linalg_and_fft -> runtime_compute aten::_fft_r2c
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(torch.fft.irfft(torch.fft.rfft(x)))  # BAD

# case: kernel_on_dummy_tensor -> runtime_compute aten::_log_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        dummy = torch.zeros(1, device=x.device)
        launch_relu(dummy)
        return torch.log_softmax(x, dim=1)  # BAD
