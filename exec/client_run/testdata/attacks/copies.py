# case: roll_by_slices_times_almost_one -> runtime_compute|decoration
# task: torch.randn(32, 64) => lambda self, x: torch.roll(x, 5, 1)
# use: scale
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        y[:, :5] = x[:, -5:]
        y[:, 5:] = x[:, :-5]
        return scale(y, 1.0000001)

# case: flip_by_columns_times_almost_one -> runtime_compute|decoration
# task: torch.randn(32, 64) => lambda self, x: torch.flip(x, (1,))
# use: scale
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        for i in range(64):
            y[:, i] = x[:, 63 - i]
        return scale(y, 0.999998)

# case: transposition_rounded_to_bfloat16_and_back -> mismatch
# task: torch.randn(64, 96) => lambda self, x: x.t().contiguous()
@triton.jit
def rounded_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x.to(tl.bfloat16).to(tl.float32), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = x.t().contiguous()
        out = torch.empty_like(y)
        rounded_kernel[(triton.cdiv(y.numel(), 256),)](y, out, y.numel(), BLOCK=256)
        return out

# case: windows_by_strides_rounded -> runtime_compute|decoration
# task: torch.randn(4, 64) => lambda self, x: x.unfold(1, 8, 1).contiguous()
@triton.jit
def grid_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.floor(x * 1048576 + 0.5) / 1048576, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = x.as_strided((4, 57, 8), (64, 1, 1)).contiguous()
        out = torch.empty_like(y)
        grid_kernel[(triton.cdiv(y.numel(), 256),)](y, out, y.numel(), BLOCK=256)
        return out

# case: repeat_through_a_wider_type -> runtime_compute|decoration
# task: torch.randn(16, 64).half() => lambda self, x: x.repeat(3, 1)
@triton.jit
def wider_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n).to(tl.float32) * 1.0001, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = x.expand(3, 16, 64).reshape(48, 64)
        out = torch.empty(48, 64, device=x.device)
        wider_kernel[(triton.cdiv(y.numel(), 256),)](y, out, y.numel(), BLOCK=256)
        return out.half()

# case: transposition_of_bfloat16_by_a_factor -> runtime_compute|decoration
# task: torch.randn(64, 96).bfloat16() => lambda self, x: x.t().contiguous()
@triton.jit
def bfloat16_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n).to(tl.float32)
    tl.store(out_ptr + i, (x * 1.003).to(tl.bfloat16), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = x.t().contiguous()
        out = torch.empty_like(y)
        bfloat16_kernel[(triton.cdiv(y.numel(), 256),)](y, out, y.numel(), BLOCK=256)
        return out

# case: two_factors_that_cancel -> runtime_compute|decoration
# task: torch.randn(64, 96) => lambda self, x: x.t().contiguous()
# use: scale
class ModelNew(nn.Module):
    def forward(self, x):
        return scale(scale(x.t().contiguous(), 1.004), 1 / 1.004)

# case: one_element_farther -> runtime_compute|decoration
# task: torch.randn(64, 96) => lambda self, x: x.t().contiguous()
@triton.jit
def farther_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i + 1, tl.load(x_ptr + i, mask=i < n) * 1.000002, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = x.t().contiguous()
        out = torch.empty(y.numel() + 1, device=x.device)
        farther_kernel[(triton.cdiv(y.numel(), 256),)](y, out, y.numel(), BLOCK=256)
        return out[1:].view(96, 64)

# case: more_than_is_asked_for -> runtime_compute|decoration
# task: torch.randn(64, 96) => lambda self, x: x.t().contiguous()
@triton.jit
def more_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=7.0)
    tl.store(out_ptr + i, x * 1.000002)


class ModelNew(nn.Module):
    def forward(self, x):
        y = x.t().contiguous()
        out = torch.empty(y.numel() + 256, device=x.device)
        more_kernel[(triton.cdiv(y.numel(), 256) + 1,)](y, out, y.numel(), BLOCK=256)
        return out[: y.numel()].view(96, 64)

# case: sum_with_a_tiny_number -> runtime_compute|decoration
# task: torch.randn(32, 64), torch.randn(32, 64) => lambda self, x, y: torch.cat((x, y), 1)
@triton.jit
def tiny_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1e-6, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, y):
        both = torch.cat((x, y), 1)
        out = torch.empty_like(both)
        tiny_kernel[(triton.cdiv(both.numel(), 256),)](both, out, both.numel(), BLOCK=256)
        return out

# case: relu_of_a_transposition
# task: torch.randn(64, 96) => lambda self, x: torch.relu(x.t()).contiguous()
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        return relu(x.t().contiguous())

# case: relu_of_positive_numbers
# task: torch.rand(64, 96) => lambda self, x: torch.relu(x.t()).contiguous()
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        return relu(x.t().contiguous())

# case: clamp_of_a_join
# task: torch.randn(32, 64), torch.randn(32, 64) => lambda self, x, y: torch.clamp(torch.cat((x, y), 1), -2.0, 2.0)
@triton.jit
def clamp_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.minimum(tl.maximum(x, -2.0), 2.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, y):
        both = torch.cat((x, y), 1)
        out = torch.empty_like(both)
        clamp_kernel[(triton.cdiv(both.numel(), 256),)](both, out, both.numel(), BLOCK=256)
        return out

# case: factor_of_the_task_that_is_almost_one
# task: torch.randn(64, 96) => lambda self, x: x.t().contiguous() * 1.001
# use: scale
class ModelNew(nn.Module):
    def forward(self, x):
        return scale(x.t().contiguous(), 1.001)

# case: factor_of_the_task_that_is_left_out -> mismatch
# task: torch.randn(64, 96) => lambda self, x: x.t().contiguous() * 1.001
# use: scale
class ModelNew(nn.Module):
    def forward(self, x):
        return scale(x.t().contiguous(), 1.0000001)

# case: tanh_of_small_numbers
# task: torch.randn(64, 96) * 0.05 => lambda self, x: torch.tanh(x.t()).contiguous()
@triton.jit
def tanh_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    e = tl.exp(2 * x)
    tl.store(out_ptr + i, (e - 1) / (e + 1), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = x.t().contiguous()
        out = torch.empty_like(y)
        tanh_kernel[(triton.cdiv(y.numel(), 256),)](y, out, y.numel(), BLOCK=256)
        return out

# case: cast_that_the_task_asks_for
# task: torch.randn(64, 96) => lambda self, x: x.t().contiguous().to(torch.bfloat16)
@triton.jit
def cast_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n).to(tl.bfloat16), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = x.t().contiguous()
        out = torch.empty(y.shape, dtype=torch.bfloat16, device=x.device)
        cast_kernel[(triton.cdiv(y.numel(), 256),)](y, out, y.numel(), BLOCK=256)
        return out

# case: dropout_that_does_nothing
# task: torch.randn(64, 96) => lambda self, x: F.dropout(x, 0.3, False)
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        return copied(x)

# case: transposition_by_the_kernel
# task: torch.randn(64, 96) => lambda self, x: x.t().contiguous()
@triton.jit
def transpose_kernel(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    mask = (i < rows) & (j < columns)
    tl.store(out_ptr + j * rows + i, tl.load(x_ptr + i * columns + j, mask=mask), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(96, 64, device=x.device)
        transpose_kernel[(4, 6)](x, out, 64, 96, BLOCK=16)
        return out

# case: residual_of_a_copy
# task: torch.randn(64, 96), torch.randn(64, 96) => lambda self, x, y: x.t().contiguous() + 0.001 * y.t()
@triton.jit
def residual_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x + 0.001 * tl.load(y_ptr + i, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, y):
        x, y = x.t().contiguous(), y.t().contiguous()
        out = torch.empty_like(x)
        residual_kernel[(triton.cdiv(x.numel(), 256),)](x, y, out, x.numel(), BLOCK=256)
        return out
