# case: relu_plain
# use: relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        out = torch.empty_like(x)
        n = x.numel()
        grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)
        relu_kernel[grid](x, out, n, BLOCK=1024)
        return out

# case: relu_helper_with_checks
# use: relu
def triton_relu(x: torch.Tensor):
    assert x.is_cuda, "Tensors must be on CUDA."
    assert x.dtype in (torch.float32, torch.float16) and x.ndim >= 1
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if n == 0:
        return out
    BLOCK = min(1024, triton.next_power_of_2(n))
    relu_kernel[((n + BLOCK - 1) // BLOCK,)](x, out, n, BLOCK=BLOCK)
    return out


class ModelNew(nn.Module):
    def forward(self, x):
        if x.numel() == 0:
            return torch.zeros_like(x)
        return triton_relu(x)

# case: jit_alias
from triton import jit as J
from triton import language as lang

@J
def k(x_ptr, out_ptr, n, BLOCK: lang.constexpr):
    offs = lang.program_id(0) * BLOCK + lang.arange(0, BLOCK)
    x = lang.load(x_ptr + offs, mask=offs < n)
    lang.store(out_ptr + offs, x * lang.sigmoid(x), mask=offs < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        k[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y.view_as(x)

# case: jit_with_arguments
@triton.jit(do_not_specialize=["n"])
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, tl.exp(x), mask=offs < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        k[triton.cdiv(x.numel(), 256),](x, y, x.numel(), 256)
        return y

# case: autotune
@triton.autotune(
    configs=[triton.Config({"BLOCK": b}, num_warps=w) for b in (256, 512, 1024) for w in (4, 8)],
    key=["n"],
)
@triton.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, x * 2.0, mask=offs < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        k[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
        return out

# case: heuristics
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        x = tl.load(x_ptr + offs)
        tl.store(out_ptr + offs, tl.abs(x))
    else:
        x = tl.load(x_ptr + offs, mask=offs < n)
        tl.store(out_ptr + offs, tl.abs(x), mask=offs < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 512),)](x, out, x.numel(), BLOCK=512)
        return out

# case: autograd_function
# use: relu
class ReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        ctx.save_for_backward(x)
        ctx.n = x.numel()
        return out

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x > 0)


class ModelNew(nn.Module):
    def forward(self, x):
        return ReLU.apply(x)

# case: autograd_function_alias
# use: relu
class _ReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out


relu = _ReLU.apply


class ModelNew(nn.Module):
    def forward(self, x):
        return relu(x)

# case: linear_weights_in_container
# use: matmul
# use: launch_matmul
class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features, bias=False)

    def forward(self, x):
        return launch_matmul(x, self.linear.weight.t())

# case: linear_bias_relu_fused
@triton.jit
def k(x_ptr, w_ptr, b_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros([BM, BN], dtype=tl.float32)
    for k0 in range(0, K, BK):
        rk = k0 + tl.arange(0, BK)
        x = tl.load(x_ptr + rm[:, None] * K + rk[None, :], mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0)
        w = tl.load(w_ptr + rn[None, :] * K + rk[:, None], mask=(rn[None, :] < N) & (rk[:, None] < K), other=0.0)
        acc = tl.dot(x, w, acc, input_precision="ieee")
    acc += tl.load(b_ptr + rn, mask=rn < N)[None, :]
    acc = tl.where(acc > 0, acc, 0.0)
    tl.store(y_ptr + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super(ModelNew, self).__init__()
        self.fc = nn.Linear(in_features, out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        lead = x.shape[:-1]
        x2 = x.reshape(-1, x.shape[-1]).contiguous()
        M, K = x2.shape
        N = self.fc.out_features
        y = torch.empty((M, N), device=x.device, dtype=x.dtype)
        k[(triton.cdiv(M, 16), triton.cdiv(N, 16))](x2, self.fc.weight, self.fc.bias, y, M, N, K, 16, 16, 16)
        return y.reshape(*lead, N)

# case: mean_scalar_division
# use: sum_all
class ModelNew(nn.Module):
    def forward(self, x):
        n = x.numel()
        out = torch.zeros(1, device=x.device, dtype=torch.float32)
        sum_kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
        return out[0] / n

# case: paper_mse
@triton.jit
def mse_kernel(pred_ptr, target_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    pred = tl.load(pred_ptr + offsets, mask=mask, other=0.0)
    target = tl.load(target_ptr + offsets, mask=mask, other=0.0)
    diff = pred - target
    tl.atomic_add(output_ptr, tl.sum(diff * diff, axis=0))


def triton_mse(pred, target):
    if not pred.is_contiguous():
        pred = pred.contiguous()
    if not target.is_contiguous():
        target = target.contiguous()
    n_elements = pred.numel()
    if n_elements == 0:
        return torch.tensor(0.0, device=pred.device)
    output = torch.zeros(1, device=pred.device, dtype=pred.dtype)
    grid = lambda meta: (triton.cdiv(n_elements, meta["BLOCK_SIZE"]),)
    mse_kernel[grid](pred, target, output, n_elements, BLOCK_SIZE=1024)
    return output[0] / n_elements


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        return triton_mse(predictions, targets)

# case: paper_triplet
@triton.jit
def triplet_kernel(a_ptr, p_ptr, n_ptr, out_ptr, margin, FEATURES: tl.constexpr, BLOCK: tl.constexpr):
    start = tl.program_id(axis=0) * FEATURES
    ap_sum = 0.0
    an_sum = 0.0
    for j in range(0, FEATURES, BLOCK):
        offs = j + tl.arange(0, BLOCK)
        mask = offs < FEATURES
        a = tl.load(a_ptr + start + offs, mask=mask, other=0.0)
        p = tl.load(p_ptr + start + offs, mask=mask, other=0.0)
        n = tl.load(n_ptr + start + offs, mask=mask, other=0.0)
        ap_sum += tl.sum((a - p) * (a - p), axis=0)
        an_sum += tl.sum((a - n) * (a - n), axis=0)
    loss = tl.sqrt(ap_sum) - tl.sqrt(an_sum) + margin
    tl.atomic_add(out_ptr, tl.where(loss > 0, loss, 0.0))


class ModelNew(nn.Module):
    def __init__(self, margin=1.0):
        super().__init__()
        self.margin = margin

    def forward(self, anchor, positive, negative):
        anchor = anchor.contiguous()
        positive = positive.contiguous()
        negative = negative.contiguous()
        batch_size, n_features = anchor.shape
        total_loss = torch.zeros(1, device=anchor.device, dtype=anchor.dtype)
        triplet_kernel[(batch_size,)](anchor, positive, negative, total_loss, self.margin,
                                      FEATURES=n_features, BLOCK=1024)
        return total_loss[0] / batch_size

# case: paper_diag
@triton.jit
def diag_kernel(a_ptr, b_ptr, out_ptr, N, M, TOTAL, BLOCK: tl.constexpr):
    """Computes diag(A) B."""
    offsets = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < TOTAL
    rows = offsets // M
    a = tl.load(a_ptr + rows, mask=mask, other=0.0)
    b = tl.load(b_ptr + offsets, mask=mask, other=0.0)
    tl.store(out_ptr + offsets, a * b, mask=mask)


class ModelNew(nn.Module):
    def forward(self, A, B):
        N, M = B.shape
        out = torch.empty_like(B)
        diag_kernel[(triton.cdiv(N * M, 1024),)](A, B, out, N, M, N * M, BLOCK=1024)
        return out

# case: softmax_rows
# use: softmax
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.dim = 1

    def forward(self, x):
        rows, cols = x.shape
        out = torch.empty_like(x)
        softmax_kernel[(rows,)](x, out, x.stride(0), cols, BLOCK=triton.next_power_of_2(cols))
        return out

# case: two_pass_reduction
# use: sum_all
@triton.jit
def partial_kernel(x_ptr, part_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.store(part_ptr + pid, tl.sum(x, axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        n = x.numel()
        blocks = triton.cdiv(n, 1024)
        part = torch.empty(blocks, device=x.device)
        out = torch.zeros((), device=x.device)
        partial_kernel[(blocks,)](x, part, n, BLOCK=1024)
        sum_kernel[(1,)](part, out, blocks, BLOCK=triton.next_power_of_2(blocks))
        return out / n

# case: persistent_loop
@triton.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    step = tl.num_programs(0)
    for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), step):
        offs = block * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offs, mask=offs < n)
        tl.store(out_ptr + offs, tl.log(1.0 + tl.exp(x)), mask=offs < n)


class ModelNew(nn.Module):
    def forward(self, x):
        props = torch.cuda.get_device_properties(x.device)
        out = torch.empty_like(x)
        k[(props.multi_processor_count,)](x, out, x.numel(), BLOCK=1024)
        return out

# case: block_pointers
@triton.jit
def k(x_ptr, y_ptr, M, N, sm, sn, BM: tl.constexpr, BN: tl.constexpr):
    xp = tl.make_block_ptr(base=x_ptr, shape=(M, N), strides=(sm, sn),
                           offsets=(tl.program_id(0) * BM, 0), block_shape=(BM, BN), order=(1, 0))
    yp = tl.make_block_ptr(base=y_ptr, shape=(M, N), strides=(sm, sn),
                           offsets=(tl.program_id(0) * BM, 0), block_shape=(BM, BN), order=(1, 0))
    for _ in range(0, N, BN):
        x = tl.load(xp, boundary_check=(0, 1))
        tl.store(yp, x * x, boundary_check=(0, 1))
        xp = tl.advance(xp, (0, BN))
        yp = tl.advance(yp, (0, BN))


class ModelNew(nn.Module):
    def forward(self, x):
        M, N = x.shape
        y = torch.empty_like(x)
        k[(triton.cdiv(M, 16),)](x, y, M, N, x.stride(0), x.stride(1), BM=16, BN=32)
        return y

# case: tensor_descriptor_device
@triton.jit
def k(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    x_desc = tl.make_tensor_descriptor(x_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    y_desc = tl.make_tensor_descriptor(y_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    tile = x_desc.load([m, n])
    y_desc.store([m, n], tile * 0.5)


class ModelNew(nn.Module):
    def forward(self, x):
        triton.set_allocator(lambda size, align, stream: torch.empty(size, device="cuda", dtype=torch.int8))
        M, N = x.shape
        y = torch.empty_like(x)
        k[(triton.cdiv(M, 16), triton.cdiv(N, 16))](x, y, M, N, BM=16, BN=16)
        return y

# case: tensor_descriptor_host
from triton.tools.tensor_descriptor import TensorDescriptor

@triton.jit
def k(x_desc, y_desc, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(0) * BM
    tile = x_desc.load([m, 0])
    y_desc.store([m, 0], tl.exp(tile))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        xd = TensorDescriptor.from_tensor(x, [16, 16])
        yd = TensorDescriptor.from_tensor(y, [16, 16])
        k[(triton.cdiv(x.shape[0], 16),)](xd, yd, BM=16, BN=16)
        return y

# case: device_functions
@triton.jit
def gelu(x):
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))


@triton.jit
def put(ptr, offs, value, mask):
    tl.store(ptr + offs, gelu(value), mask=mask)


@triton.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    put(out_ptr, offs, tl.load(x_ptr + offs, mask=mask), mask)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
        return out

# case: transpose_is_layout_change
@triton.jit
def k(x_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    rm = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    rn = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    mask = (rm < M) & (rn < N)
    x = tl.load(x_ptr + rm * N + rn, mask=mask)
    tl.store(out_ptr + rn * M + rm, x, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        M, N = x.shape
        out = x.new_empty((N, M))
        k[(triton.cdiv(M, 32), triton.cdiv(N, 32))](x, out, M, N, BLOCK=32)
        return out

# case: in_place_on_clone
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = x.clone()
        relu_kernel[(triton.cdiv(y.numel(), 1024),)](y, y, y.numel(), BLOCK=1024)
        return y

# case: staged_pipeline
# use: add
# use: relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = [self._add, self._relu]

    def _launch(self, kernel, *tensors):
        out = torch.empty_like(tensors[0])
        n = out.numel()
        kernel[(triton.cdiv(n, 1024),)](*tensors, out, n, BLOCK=1024)
        return out

    def _add(self, x, y):
        return self._launch(add_kernel, x, y)

    def _relu(self, x):
        return self._launch(relu_kernel, x)

    def forward(self, x, y):
        return self._relu(self._add(x, y))

# case: dispatch_table
# use: relu
# use: copy
@triton.jit
def sigmoid_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, 1.0 / (1.0 + tl.exp(-x)), mask=offs < n)


KERNELS = {"relu": relu_kernel, "sigmoid": sigmoid_kernel}


class ModelNew(nn.Module):
    def __init__(self, activation="sigmoid"):
        super().__init__()
        self.activation = activation

    def forward(self, x):
        out = torch.empty_like(x)
        KERNELS[self.activation][(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out

# case: partial_and_closure
import functools
# use: relu
def make_launcher(kernel, block):
    def launch(x):
        out = torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), block),)
        functools.partial(kernel[grid], x, out, x.numel())(BLOCK=block)
        return out

    return launch


relu = make_launcher(relu_kernel, 512)


class ModelNew(nn.Module):
    def forward(self, x):
        return relu(x)

# case: submodules
# use: relu
# use: launch_relu
# use: matmul
# use: launch_matmul
class Linear(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_in, n_out) * 0.02)

    def forward(self, x):
        return launch_matmul(x, self.weight)


class ReLU(nn.Module):
    def forward(self, x):
        return launch_relu(x)


class ModelNew(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = nn.ModuleList([Linear(64, 64), ReLU(), Linear(64, 64)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

# case: sequential_of_own_modules
# use: relu
# use: launch_relu
class ReLU(nn.Module):
    def forward(self, x):
        return launch_relu(x)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(ReLU(), nn.Identity(), nn.Flatten(), ReLU())

    def forward(self, x):
        return self.net(x)

# case: layer_norm
@triton.jit
def k(x_ptr, w_ptr, b_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * N
    y_ptr += row * N
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / N
    d = tl.where(mask, x - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(d * d, axis=0) / N + eps)
    w = tl.load(w_ptr + cols, mask=mask)
    b = tl.load(b_ptr + cols, mask=mask)
    tl.store(y_ptr + cols, d * rstd * w + b, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, normalized_shape):
        super().__init__()
        self.ln = nn.LayerNorm(normalized_shape)

    def forward(self, x):
        shape = x.shape
        N = self.ln.weight.numel()
        x2 = x.contiguous().view(-1, N)
        y = torch.empty_like(x2)
        k[(x2.shape[0],)](x2, self.ln.weight, self.ln.bias, y, N, self.ln.eps, BLOCK=triton.next_power_of_2(N))
        return y.view(shape)

# case: batch_norm_buffers
@triton.jit
def k(x_ptr, scale_ptr, shift_ptr, y_ptr, C, HW, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    c = (offs // HW) % C
    x = tl.load(x_ptr + offs, mask=mask)
    tl.store(y_ptr + offs, x * tl.load(scale_ptr + c, mask=mask) + tl.load(shift_ptr + c, mask=mask), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, num_features):
        super().__init__()
        self.register_buffer("scale", torch.ones(num_features))
        self.register_buffer("shift", torch.zeros(num_features))

    def forward(self, x):
        N, C, H, W = x.size()
        y = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 512),)](x, self.scale, self.shift, y, C, H * W, x.numel(), BLOCK=512)
        return y

# case: conv_weights
@triton.jit
def conv_kernel(x_ptr, w_ptr, b_ptr, y_ptr, C, H, W, O, OH, OW, KH: tl.constexpr, KW: tl.constexpr, BLOCK: tl.constexpr):
    n = tl.program_id(0)
    o = tl.program_id(1)
    offs = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < OH * OW
    oh = offs // OW
    ow = offs % OW
    acc = tl.zeros([BLOCK], dtype=tl.float32)
    for c in range(0, C):
        for kh in range(KH):
            for kw in range(KW):
                x = tl.load(x_ptr + ((n * C + c) * H + oh + kh) * W + ow + kw, mask=mask, other=0.0)
                w = tl.load(w_ptr + ((o * C + c) * KH + kh) * KW + kw)
                acc += x * w
    acc += tl.load(b_ptr + o)
    tl.store(y_ptr + (n * O + o) * OH * OW + offs, acc, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.kernel_size = kernel_size

    def forward(self, x):
        w, b = self.conv.weight, self.conv.bias
        N, C, H, W = x.shape
        O, _, KH, KW = w.shape
        OH, OW = H - KH + 1, W - KW + 1
        y = torch.empty(N, O, OH, OW, device=x.device, dtype=x.dtype)
        conv_kernel[(N, O, triton.cdiv(OH * OW, 64))](x, w, b, y, C, H, W, O, OH, OW, KH, KW, BLOCK=64)
        return y

# case: optional_bias_and_training
# use: add
# use: relu
class ModelNew(nn.Module):
    def __init__(self, n, bias=True):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(n)) if bias else None

    def forward(self, x):
        out = torch.empty_like(x)
        n = x.numel()
        grid = (triton.cdiv(n, 1024),)
        if self.bias is not None:
            add_kernel[grid](x, self.bias.expand_as(x).contiguous(), out, n, BLOCK=1024)
        else:
            relu_kernel[grid](x, out, n, BLOCK=1024)
        return out

# case: guarded_import_and_fallback_for_cpu
import torch
try:
    import triton
    import triton.language as tl
    HAS_TRITON = True
except ImportError:
    HAS_TRITON = False
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        if not HAS_TRITON or not x.is_cuda:
            return torch.relu(x)
        with torch.cuda.device(x.device):
            return launch_relu(x)

# case: casts_and_views
# use: relu
class ModelNew(nn.Module):
    @torch.no_grad()
    def forward(self, x):
        dtype = x.dtype
        y = x.to(torch.float32).permute(0, 2, 1).contiguous().flatten()
        z = y.new_empty(y.shape)
        relu_kernel[(triton.cdiv(y.numel(), 1024),)](y, z, y.numel(), BLOCK=1024)
        b, c, n = x.shape
        return z.view(b, n, c).transpose(1, 2).to(dtype).contiguous()

# case: chained_outputs_tuple
@triton.jit
def k(x_ptr, m_ptr, i_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=-float("inf"))
    tl.store(m_ptr + row, tl.max(x, axis=0))
    tl.store(i_ptr + row, tl.argmax(x, axis=0).to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, x):
        M, N = x.shape
        values = torch.empty(M, device=x.device, dtype=x.dtype)
        indices = torch.empty(M, device=x.device, dtype=torch.int64)
        k[(M,)](x, values, indices, N, BLOCK=triton.next_power_of_2(N))
        return values, indices

# case: chunked_loop_with_list
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        outs = []
        for part in x.split(128, dim=0):
            part = part.contiguous()
            out = torch.empty_like(part)
            relu_kernel[(triton.cdiv(part.numel(), 256),)](part, out, part.numel(), BLOCK=256)
            outs.append(out)
        return torch.cat(outs, dim=0)

# case: kernel_run_method
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel.run(x, out, x.numel(), grid=(triton.cdiv(x.numel(), 64),), warmup=False, BLOCK=64)
        return out

# case: static_and_class_methods
# use: relu
class Ops:
    BLOCK = 256

    @staticmethod
    def blocks(n, block):
        return triton.cdiv(n, block)

    @classmethod
    def relu(cls, x):
        out = torch.empty_like(x)
        relu_kernel[(cls.blocks(x.numel(), cls.BLOCK),)](x, out, x.numel(), BLOCK=cls.BLOCK)
        return out


class ModelNew(nn.Module):
    def forward(self, x):
        return Ops.relu(x)

# case: property_and_dataclass
import dataclasses
# use: relu
@dataclasses.dataclass
class Plan:
    block: int
    warps: int = 4


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.plan = Plan(block=256)

    @property
    def block(self):
        return self.plan.block

    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), self.block),)](x, out, x.numel(), BLOCK=self.block)
        return out

# case: histogram_scatter
@triton.jit
def k(idx_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    bins = tl.load(idx_ptr + offs, mask=mask, other=0)
    tl.atomic_add(out_ptr + bins, 1, mask=mask)


class ModelNew(nn.Module):
    def forward(self, idx):
        out = torch.zeros(256, dtype=torch.int32, device=idx.device)
        k[(triton.cdiv(idx.numel(), 256),)](idx, out, idx.numel(), BLOCK=256)
        return out

# case: grouped_gemm_pointers
@triton.jit
def k(ptrs, n, BLOCK: tl.constexpr):
    x = tl.load(ptrs).to(tl.pointer_type(tl.float32))
    y = tl.load(ptrs + 1).to(tl.pointer_type(tl.float32))
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + offs, tl.load(x + offs, mask=offs < n) * 3.0, mask=offs < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        ptrs = torch.tensor([x.data_ptr(), y.data_ptr()], dtype=torch.int64, device=x.device)
        k[(triton.cdiv(x.numel(), 128),)](ptrs, x.numel(), BLOCK=128)
        return y

# case: custom_op_decorator
# use: relu
@torch.library.custom_op("mini::relu", mutates_args=())
def my_relu(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    torch.library.wrap_triton(relu_kernel)[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
    return out


@my_relu.register_fake
def _(x):
    return torch.empty_like(x)


class ModelNew(nn.Module):
    def forward(self, x):
        return my_relu(x)

# case: online_softmax_while
@triton.jit
def k(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    m = -float("inf")
    s = 0.0
    start = 0
    while start < N:
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=-float("inf"))
        new_m = tl.maximum(m, tl.max(x, axis=0))
        s = s * tl.exp(m - new_m) + tl.sum(tl.exp(x - new_m), axis=0)
        m = new_m
        start += BLOCK
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N)
        tl.store(y_ptr + row * N + cols, tl.exp(x - m) / s, mask=cols < N)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        k[(x.shape[0],)](x, y, x.shape[1], BLOCK=256)
        return y

# case: scalar_loss_postprocessing
# use: sum_all
import math

class ModelNew(nn.Module):
    def __init__(self, weight=0.5):
        super().__init__()
        self.weight = weight
        self.log_scale = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        acc = torch.zeros(2, device=x.device)
        n = x.numel()
        sum_kernel[(triton.cdiv(n, 256),)](x, acc, n, BLOCK=256)
        loss = torch.sqrt(acc[0]) / math.sqrt(n) + self.weight * self.log_scale.exp()
        return loss.squeeze()

# case: strides_and_int_argument
# use: matmul
class ModelNew(nn.Module):
    def forward(self, A, B, split: int = 1):
        A, B = (t if t.stride(-1) == 1 else t.contiguous() for t in (A, B))
        M, K = A.shape
        K2, N = B.shape
        if K != K2:
            raise ValueError(f"inner sizes differ: {K} and {K2}")
        C = torch.empty((M, N), device=A.device, dtype=torch.promote_types(A.dtype, B.dtype))
        grid = (triton.cdiv(M, 16), triton.cdiv(N, 16), split)
        matmul_kernel[grid](A, B, C, M, N, K, *A.stride(), *B.stride(), *C.stride(), BM=16, BN=16, BK=16)
        return C

# case: prepared_weight_kept
# use: relu
# use: matmul
# use: launch_matmul
class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n, n))
        self.prepared = None

    def forward(self, x):
        if self.prepared is None:
            self.prepared = self.weight.t().contiguous()
        return launch_matmul(x, self.prepared)

# case: output_buffer_kept
# use: relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.buffer = None

    def forward(self, x):
        if self.buffer is None or self.buffer.shape != x.shape:
            self.buffer = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 256),)](x, self.buffer, x.numel(), BLOCK=256)
        return self.buffer

# case: optional_mask
# use: relu
# use: add
class ModelNew(nn.Module):
    def forward(self, x, mask=None, scale: float = 1.0):
        out = torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), 256),)
        if mask is None:
            relu_kernel[grid](x, out, x.numel(), BLOCK=256)
        else:
            add_kernel[grid](x, mask, out, x.numel(), BLOCK=256)
        return out

# case: autotune_with_hooks
def prune(configs, named_args, **kwargs):
    return [c for c in configs if c.kwargs["BLOCK"] <= named_args["n"]]


def zero(args):
    args["out_ptr"].zero_()


@triton.autotune(
    configs=[triton.Config({"BLOCK": 128}, num_warps=4, pre_hook=zero)],
    key=["n"],
    prune_configs_by={"early_config_prune": prune},
)
@triton.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + offs, mask=offs < n, other=0.0)))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros((), device=x.device)
        k[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
        return out

# case: namedtuple_and_enum
from collections import namedtuple
from enum import Enum
from typing import NamedTuple, Optional
# use: relu
Sizes = namedtuple("Sizes", ["rows", "cols"])


class Shape(NamedTuple):
    block: int
    warps: int


class Kind(Enum):
    RELU = 1


class ModelNew(nn.Module):
    kind: Optional[Kind] = Kind.RELU

    def forward(self, x):
        sizes = Sizes(*x.shape)
        shape = Shape(block=128, warps=4)
        out = torch.empty(sizes.rows, sizes.cols, device=x.device)
        n = sizes.rows * sizes.cols
        relu_kernel[(triton.cdiv(n, shape.block),)](x, out, n, BLOCK=shape.block, num_warps=shape.warps)
        return out

# case: own_operator_class
# use: matmul
# use: launch_matmul
class Matrix:
    def __init__(self, t):
        self.t = t

    def __matmul__(self, other):
        return Matrix(launch_matmul(self.t, other.t))

    def __len__(self):
        return self.t.shape[0]

    def __repr__(self):
        return f"Matrix({tuple(self.t.shape)})"


class ModelNew(nn.Module):
    def forward(self, a, b):
        return (Matrix(a) @ Matrix(b)).t

# case: custom_op_through_namespace
# use: relu
# use: launch_relu
@torch.library.triton_op("mini::relu2", mutates_args={})
def relu2(x: torch.Tensor) -> torch.Tensor:
    return launch_relu(x)


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ops.mini.relu2(x)

# case: main_guard_and_own_test
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)


def get_inputs():
    return [torch.rand(4, 4)]


def get_init_inputs():
    return []


def test():
    x = get_inputs()[0]
    assert torch.allclose(ModelNew()(x), torch.relu(x))


if __name__ == "__main__":
    test()

# case: greek_names_and_constants
# use: softmax
import math
ε = 1e-5
CONFIG = {torch.float32: 128, torch.float16: 256}


class ModelNew(nn.Module):
    def __init__(self, dim=-1):
        super().__init__()
        self.dim = dim
        self.σ = 1.0 / math.sqrt(64)

    def forward(self, x):
        dim = self.dim % x.ndim
        x = x.movedim(dim, -1).contiguous()
        flat = x.view(-1, x.shape[-1])
        out = torch.full_like(flat, float("-inf"))
        block = max(CONFIG.get(x.dtype, 128), triton.next_power_of_2(flat.shape[1]))
        softmax_kernel[(flat.shape[0],)](flat, out, flat.stride(0), flat.shape[1], BLOCK=block)
        return out.view(x.shape).movedim(-1, dim)

# case: cuda_streams_and_checks
# use: relu
# use: launch_relu
torch.backends.cuda.matmul.allow_tf32 = True
torch.set_float32_matmul_precision("high")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.weight = nn.Parameter(torch.empty(4, 4))
        nn.init.kaiming_uniform_(self.weight, a=5**0.5)

    def forward(self, x):
        torch._check(x.dim() >= 1)
        stream = torch.cuda.current_stream()
        major, minor = torch.cuda.get_device_capability()
        y = launch_relu(x)
        y.record_stream(stream)
        torch.cuda.synchronize()
        return y
