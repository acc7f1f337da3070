# case: in_place_on_a_copy_of_positive_inputs
# task: torch.rand(8, 40) => lambda self, x: torch.relu(x)
@triton.jit
def k(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(x_ptr + offs, tl.maximum(x, 0.0), mask=offs < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = x.clone()
        k[(triton.cdiv(x.numel(), 128),)](out, x.numel(), BLOCK=128)
        return out

# case: bias_of_zeros_in_place
# task: torch.randn(16, 32) => lambda self, x: torch.exp(x) + self.b
# layers: self.b = nn.Parameter(torch.zeros(32))
@triton.jit
def exp_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, tl.exp(x), mask=offs < n)


@triton.jit
def bias_kernel(out_ptr, b_ptr, n, cols, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(out_ptr + offs, mask=offs < n)
    b = tl.load(b_ptr + offs % cols, mask=offs < n)
    tl.store(out_ptr + offs, v + b, mask=offs < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.b = nn.Parameter(torch.zeros(32))

    def forward(self, x):
        out = torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), 256),)
        exp_kernel[grid](x, out, x.numel(), BLOCK=256)
        bias_kernel[grid](out, self.b, x.numel(), x.shape[1], BLOCK=256)
        return out

# case: tail_kernel_with_nothing_left
# task: torch.randn(8, 128) => lambda self, x: torch.abs(x)
@triton.jit
def body(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.abs(tl.load(x_ptr + offs)))


@triton.jit
def tail(x_ptr, out_ptr, start, n, BLOCK: tl.constexpr):
    offs = start + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.abs(tl.load(x_ptr + offs, mask=offs < n)), mask=offs < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        n = x.numel()
        full = n // 256
        body[(full,)](x, out, BLOCK=256)
        tail[(1,)](x, out, full * 256, n, BLOCK=256)
        return out

# case: relu_after_sigmoid_in_place
# task: torch.randn(8, 128) => lambda self, x: torch.relu(torch.sigmoid(x))
# use: relu
@triton.jit
def sigmoid_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, tl.sigmoid(x), mask=offs < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), 256),)
        sigmoid_kernel[grid](x, out, x.numel(), BLOCK=256)
        relu_kernel[grid](out, out, x.numel(), BLOCK=256)
        return out

# case: softmax_into_zeros_within_the_tolerance
# task: torch.randn(4, 1000) => lambda self, x: torch.softmax(x, dim=1)
# use: softmax
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros_like(x)
        softmax_kernel[(x.shape[0],)](x, out, x.stride(0), x.shape[1], BLOCK=1024)
        return out

# case: two_passes_and_a_kept_buffer
# task: torch.randn(4096) => lambda self, x: torch.sum(x * x).reshape(1)
@triton.jit
def partial(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.store(out_ptr + tl.program_id(0), tl.sum(x * x, axis=0))


@triton.jit
def total(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + offs, mask=offs < n, other=0.0), axis=0))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.partial = None

    def forward(self, x):
        blocks = triton.cdiv(x.numel(), 512)
        if self.partial is None:
            self.partial = torch.empty(blocks, device=x.device)
        out = torch.empty(1, device=x.device)
        partial[(blocks,)](x, self.partial, x.numel(), BLOCK=512)
        total[(1,)](self.partial, out, blocks, BLOCK=16)
        return out

# case: output_kept_between_calls
# task: torch.randn(8, 64) => lambda self, x: torch.exp(x)
@triton.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, tl.exp(x), mask=offs < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = None

    def forward(self, x):
        if self.out is None:
            self.out = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 256),)](x, self.out, x.numel(), BLOCK=256)
        return self.out

# case: atomics_onto_zeros
# task: torch.randn(3000) => lambda self, x: torch.sum(x).reshape(1)
# use: sum_all
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros(1, device=x.device)
        sum_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out

# case: autotune_with_a_reset
# task: torch.randn(3000) => lambda self, x: torch.sum(x).reshape(1)
@triton.autotune(configs=[triton.Config({"BLOCK": b}) for b in (128, 256)], key=["n"], reset_to_zero=["out_ptr"])
@triton.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.atomic_add(out_ptr, tl.sum(x, axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros(1, device=x.device)
        k[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
        return out

# case: booleans_that_are_all_true
# task: torch.rand(8, 40) => lambda self, x: x >= 0
@triton.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, x >= 0.0, mask=offs < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape, dtype=torch.bool, device=x.device)
        k[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out

# case: through_an_autograd_function
# task: torch.randn(8, 40) => lambda self, x: torch.relu(x)
# use: relu
class ReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out

    @staticmethod
    def backward(ctx, grad):
        return grad


class ModelNew(nn.Module):
    def forward(self, x):
        return ReLU.apply(x)

# case: weights_packed_in_the_first_call
# task: torch.randn(4, 32) => lambda self, x: x * self.w
# layers: self.w = nn.Parameter(torch.full((32,), 1.5))
@triton.jit
def pack(w_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(w_ptr + offs, mask=offs < n) * 2.0, mask=offs < n)


@triton.jit
def scale(x_ptr, w_ptr, out_ptr, n, cols, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    w = tl.load(w_ptr + offs % cols, mask=offs < n)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n) * (w * 0.5), mask=offs < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.full((32,), 1.5))
        self.packed = None

    def forward(self, x):
        if self.packed is None:
            self.packed = torch.empty_like(self.w)
            pack[(1,)](self.w, self.packed, self.w.numel(), BLOCK=32)
        out = torch.empty_like(x)
        scale[(1,)](x, self.packed, out, x.numel(), x.shape[1], BLOCK=128)
        return out
