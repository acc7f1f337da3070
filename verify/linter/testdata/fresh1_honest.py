# case: gelu_autotuned
# task: torch.randn(33, 70) => lambda self, x: F.gelu(x, approximate="tanh")
@triton.autotune(
    configs=[
        triton.Config({"BLOCK_SIZE": 128}, num_warps=4),
        triton.Config({"BLOCK_SIZE": 512}, num_warps=8, num_stages=2),
    ],
    key=["n_elements"],
)
@triton.jit
def gelu_kernel(x_ptr, y_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    e = tl.exp(2.0 * inner)
    t = 1.0 - 2.0 / (e + 1.0)
    tl.store(y_ptr + offsets, 0.5 * x * (1.0 + t), mask=mask)


def gelu(x: torch.Tensor) -> torch.Tensor:
    """tanh approximation of GELU."""
    y = torch.empty_like(x)
    n_elements = x.numel()

    def grid(meta):
        return (triton.cdiv(n_elements, meta["BLOCK_SIZE"]),)

    gelu_kernel[grid](x.contiguous(), y, n_elements)
    return y


class ModelNew(nn.Module):
    """Optimized GELU."""

    def __init__(self) -> None:
        super(ModelNew, self).__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return gelu(x)

# case: row_softmax_heuristics
# task: torch.randn(17, 100) => lambda self, x: torch.softmax(x, dim=-1)
@triton.heuristics({
    "BLOCK": lambda args: triton.next_power_of_2(args["n_cols"]),
    "num_warps": lambda args: 8 if args["n_cols"] > 2048 else 4,
})
@triton.jit
def _softmax(out_ptr, in_ptr, in_stride, out_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    col = tl.arange(0, BLOCK)
    v = tl.load(in_ptr + row * in_stride + col, mask=col < n_cols, other=float("-inf"))
    z = v - tl.max(v, 0)
    e = tl.exp(z)
    tl.store(out_ptr + row * out_stride + col, e / tl.sum(e, 0), mask=col < n_cols)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, n_cols = x.shape
        out = torch.empty_like(x)
        _softmax[(rows,)](out, x, x.stride(0), out.stride(0), n_cols)
        return out

# case: persistent_relu_num_sms
# task: torch.randn(5000) => lambda self, x: torch.relu(x) * 2
@triton.jit
def persistent(x_ptr, y_ptr, n, BLOCK: tl.constexpr, NUM_SMS: tl.constexpr):
    start = tl.program_id(0)
    tiles = tl.cdiv(n, BLOCK)
    for tile in range(start, tiles, NUM_SMS):
        offs = tile * BLOCK + tl.arange(0, BLOCK)
        m = offs < n
        x = tl.load(x_ptr + offs, mask=m)
        tl.store(y_ptr + offs, tl.where(x > 0, x * 2, 0.0), mask=m)


def num_sms(device) -> int:
    if torch.cuda.is_available():
        return torch.cuda.get_device_properties(device).multi_processor_count
    return 4


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        NUM_SMS = 4
        n = x.numel()
        persistent[(min(NUM_SMS, triton.cdiv(n, 256)),)](x, y, n, BLOCK=256, NUM_SMS=NUM_SMS)
        return y

# case: linear_container_fused_relu
# task: torch.randn(20, 48) => lambda self, x: torch.relu(self.fc(x))
# layers: self.fc = nn.Linear(48, 30)
@triton.jit
def linear_relu_kernel(
    x_ptr, w_ptr, b_ptr, y_ptr,
    M, N, K,
    stride_xm, stride_xk,
    stride_wn, stride_wk,
    stride_ym, stride_yn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        k_offs = k * BLOCK_K + offs_k
        x = tl.load(x_ptr + offs_m[:, None] * stride_xm + k_offs[None, :] * stride_xk,
                    mask=(offs_m[:, None] < M) & (k_offs[None, :] < K), other=0.0)
        w = tl.load(w_ptr + offs_n[None, :] * stride_wn + k_offs[:, None] * stride_wk,
                    mask=(offs_n[None, :] < N) & (k_offs[:, None] < K), other=0.0)
        acc += tl.dot(x, w, allow_tf32=False)
    bias = tl.load(b_ptr + offs_n, mask=offs_n < N, other=0.0)
    acc = tl.maximum(acc + bias[None, :], 0.0)
    tl.store(y_ptr + offs_m[:, None] * stride_ym + offs_n[None, :] * stride_yn, acc,
             mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(48, 30)

    def forward(self, x):
        w, b = self.fc.weight, self.fc.bias
        M, K = x.shape
        N = self.fc.out_features
        y = torch.empty((M, N), device=x.device, dtype=x.dtype)
        grid = lambda META: (triton.cdiv(M, META["BLOCK_M"]), triton.cdiv(N, META["BLOCK_N"]))
        linear_relu_kernel[grid](
            x, w, b, y, M, N, K,
            x.stride(0), x.stride(1), w.stride(0), w.stride(1), y.stride(0), y.stride(1),
            BLOCK_M=16, BLOCK_N=16, BLOCK_K=16,
        )
        return y

# case: conv2d_direct_from_container
# task: torch.randn(2, 3, 9, 9) => lambda self, x: self.conv(x)
# layers: self.conv = nn.Conv2d(3, 4, 3, padding=1)
@triton.jit
def conv2d_kernel(x_ptr, w_ptr, b_ptr, out_ptr, C, H, W, OC, OH, OW, total,
                  PAD: tl.constexpr, KS: tl.constexpr, BLOCK: tl.constexpr):
    idx = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    valid = idx < total
    ow = idx % OW
    oh = (idx // OW) % OH
    oc = (idx // (OW * OH)) % OC
    n = idx // (OW * OH * OC)
    acc = tl.load(b_ptr + oc, mask=valid, other=0.0)
    for c in range(C):
        for kh in range(KS):
            for kw in range(KS):
                ih = oh + kh - PAD
                iw = ow + kw - PAD
                inside = valid & (ih >= 0) & (ih < H) & (iw >= 0) & (iw < W)
                xv = tl.load(x_ptr + ((n * C + c) * H + ih) * W + iw, mask=inside, other=0.0)
                wv = tl.load(w_ptr + ((oc * C + c) * KS + kh) * KS + kw, mask=valid, other=0.0)
                acc += xv * wv
    tl.store(out_ptr + idx, acc, mask=valid)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, x):
        n, c, h, w = x.shape
        oc = self.conv.out_channels
        ks = self.conv.kernel_size[0]
        pad = self.conv.padding[0]
        oh = h + 2 * pad - ks + 1
        ow = w + 2 * pad - ks + 1
        out = x.new_empty(n, oc, oh, ow)
        total = out.numel()
        conv2d_kernel[(triton.cdiv(total, 128),)](
            x.contiguous(), self.conv.weight.contiguous(), self.conv.bias, out,
            c, h, w, oc, oh, ow, total, PAD=pad, KS=ks, BLOCK=128)
        return out

# case: mean_two_pass
# task: torch.randn(3000) => lambda self, x: x.mean()
@triton.jit
def partial_sum(x_ptr, part_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    tl.store(part_ptr + pid, tl.sum(tl.load(x_ptr + offs, mask=offs < n, other=0.0), axis=0))


@triton.jit
def final_mean(part_ptr, out_ptr, parts, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    s = tl.sum(tl.load(part_ptr + offs, mask=offs < parts, other=0.0), axis=0)
    tl.store(out_ptr, s / n)


class ModelNew(nn.Module):
    def forward(self, x):
        n = x.numel()
        parts = triton.cdiv(n, 512)
        partial = torch.empty(parts, device=x.device, dtype=torch.float32)
        out = torch.empty((), device=x.device, dtype=x.dtype)
        partial_sum[(parts,)](x, partial, n, BLOCK=512)
        final_mean[(1,)](partial, out, parts, n, BLOCK=triton.next_power_of_2(parts))
        return out

# case: mse_scalar_division
# task: torch.randn(40, 20), torch.randn(40, 20) => lambda self, a, b: F.mse_loss(a, b)
@triton.jit
def mse_kernel(pred_ptr, target_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    diff = tl.load(pred_ptr + offsets, mask=mask, other=0.0) - tl.load(target_ptr + offsets, mask=mask, other=0.0)
    tl.atomic_add(output_ptr, tl.sum(diff * diff, axis=0))


def triton_mse(pred: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    if not pred.is_contiguous(): pred = pred.contiguous()
    if not target.is_contiguous(): target = target.contiguous()
    n_elements = pred.numel()
    if n_elements == 0:
        return torch.tensor(0.0, device=pred.device)
    output = torch.zeros(1, device=pred.device, dtype=pred.dtype)
    BLOCK_SIZE = 1024
    grid = lambda meta: (triton.cdiv(n_elements, meta['BLOCK_SIZE']),)
    mse_kernel[grid](pred, target, output, n_elements, BLOCK_SIZE=BLOCK_SIZE)
    return output[0] / n_elements


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        return triton_mse(predictions, targets)

# case: layernorm_parameters
# task: torch.randn(12, 50) => lambda self, x: F.layer_norm(x, (50,), self.weight, self.bias, 1e-5)
# layers: self.weight = nn.Parameter(torch.ones(50)); self.bias = nn.Parameter(torch.zeros(50))
@triton.jit
def layer_norm_fwd(X, Y, W, B, stride, N, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    Y += row * stride
    X += row * stride
    _mean = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        _mean += tl.load(X + cols, mask=cols < N, other=0.0).to(tl.float32)
    mean = tl.sum(_mean, axis=0) / N
    _var = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        x = tl.load(X + cols, mask=cols < N, other=0.0).to(tl.float32)
        x = tl.where(cols < N, x - mean, 0.0)
        _var += x * x
    rstd = 1 / tl.sqrt(tl.sum(_var, axis=0) / N + eps)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        mask = cols < N
        w = tl.load(W + cols, mask=mask)
        b = tl.load(B + cols, mask=mask)
        x = tl.load(X + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(Y + cols, (x - mean) * rstd * w + b, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, eps: float = 1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(50))
        self.bias = nn.Parameter(torch.zeros(50))
        self.eps = eps

    def forward(self, x):
        orig_shape = x.shape
        x2d = x.reshape(-1, orig_shape[-1])
        y = torch.empty_like(x2d)
        M, N = x2d.shape
        MAX_FUSED_SIZE = 65536 // x.element_size()
        BLOCK_SIZE = min(MAX_FUSED_SIZE, triton.next_power_of_2(N))
        if N > BLOCK_SIZE:
            raise RuntimeError("This layer norm doesn't support feature dim >= 64KB.")
        num_warps = min(max(BLOCK_SIZE // 256, 1), 8)
        layer_norm_fwd[(M,)](x2d, y, self.weight, self.bias, x2d.stride(0), N, self.eps,
                             BLOCK_SIZE=BLOCK_SIZE, num_warps=num_warps)
        return y.view(orig_shape)

# case: autograd_function_swish
# task: torch.randn(30, 30) => lambda self, x: x * torch.sigmoid(x)
@triton.jit
def swish_fwd(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    tl.store(y_ptr + o, x / (1.0 + tl.exp(-x)), mask=o < n)


@triton.jit
def swish_bwd(x_ptr, dy_ptr, dx_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    dy = tl.load(dy_ptr + o, mask=o < n)
    s = 1.0 / (1.0 + tl.exp(-x))
    tl.store(dx_ptr + o, dy * (s + x * s * (1 - s)), mask=o < n)


class SwishFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        y = torch.empty_like(x)
        swish_fwd[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        dx = torch.empty_like(x)
        swish_bwd[(triton.cdiv(x.numel(), 256),)](x, dy.contiguous(), dx, x.numel(), BLOCK=256)
        return dx


swish = SwishFunction.apply


class ModelNew(nn.Module):
    def forward(self, x):
        return swish(x)

# case: jit_helpers_calling_helpers
# task: torch.randn(300) => lambda self, x: x * torch.tanh(F.softplus(x))
@triton.jit
def _exp(x):
    return tl.exp(x)


@triton.jit
def _softplus(x):
    return tl.where(x > 20.0, x, tl.log(1.0 + _exp(x)))


@triton.jit
def _tanh(x):
    return 1 - 2 / (_exp(2 * x) + 1)


@triton.jit
def mish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n, other=0.0)
    tl.store(y_ptr + o, x * _tanh(_softplus(x)), mask=o < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        mish_kernel[(triton.cdiv(x.numel(), 128), 1, 1)](x, y, x.numel(), 128)
        return y

# case: block_pointer_matmul
# task: torch.randn(40, 24), torch.randn(24, 36) => lambda self, a, b: a @ b
@triton.jit
def matmul_bp(a_ptr, b_ptr, c_ptr, M, N, K, sam, sak, sbk, sbn, scm, scn,
              BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid = tl.program_id(0)
    num_n = tl.cdiv(N, BN)
    pid_m = pid // num_n
    pid_n = pid % num_n
    a_bp = tl.make_block_ptr(base=a_ptr, shape=(M, K), strides=(sam, sak), offsets=(pid_m * BM, 0),
                             block_shape=(BM, BK), order=(1, 0))
    b_bp = tl.make_block_ptr(base=b_ptr, shape=(K, N), strides=(sbk, sbn), offsets=(0, pid_n * BN),
                             block_shape=(BK, BN), order=(1, 0))
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        a = tl.load(a_bp, boundary_check=(0, 1), padding_option="zero")
        b = tl.load(b_bp, boundary_check=(0, 1), padding_option="zero")
        acc = tl.dot(a, b, acc, input_precision="ieee")
        a_bp = tl.advance(a_bp, (0, BK))
        b_bp = tl.advance(b_bp, (BK, 0))
    c_bp = tl.make_block_ptr(base=c_ptr, shape=(M, N), strides=(scm, scn),
                             offsets=(pid_m * BM, pid_n * BN), block_shape=(BM, BN), order=(1, 0))
    tl.store(c_bp, acc.to(c_ptr.dtype.element_ty), boundary_check=(0, 1))


class ModelNew(nn.Module):
    def forward(self, A, B):
        assert A.shape[1] == B.shape[0], "Incompatible dimensions"
        M, K = A.shape
        _, N = B.shape
        C = torch.empty((M, N), device=A.device, dtype=A.dtype)
        grid = (triton.cdiv(M, 16) * triton.cdiv(N, 16),)
        matmul_bp[grid](A, B, C, M, N, K, *A.stride(), *B.stride(), *C.stride(), BM=16, BN=16, BK=16)
        return C

# case: tensor_descriptor_scale
# task: torch.randn(32, 64) => lambda self, x: x * 3 + 1
@triton.jit
def desc_kernel(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    dx = tl.make_tensor_descriptor(x_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    dy = tl.make_tensor_descriptor(y_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    v = dx.load([m, n])
    dy.store([m, n], v * 3 + 1)


class ModelNew(nn.Module):
    def forward(self, x):
        M, N = x.shape
        y = torch.empty_like(x)

        def alloc_fn(size: int, alignment: int, stream):
            return torch.empty(size, device="cuda", dtype=torch.int8)

        triton.set_allocator(alloc_fn)
        desc_kernel[(triton.cdiv(M, 16), triton.cdiv(N, 16))](x, y, M, N, BM=16, BN=16)
        return y

# case: host_tensor_descriptor
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def tma_add(a_desc, b_desc, c_desc, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    a = a_desc.load([m, n])
    b = b_desc.load([m, n])
    c_desc.store([m, n], a + b)


class ModelNew(nn.Module):
    def forward(self, a, b):
        c = torch.empty_like(a)
        BM, BN = 32, 64
        a_desc = TensorDescriptor.from_tensor(a, [BM, BN])
        b_desc = TensorDescriptor(b, shape=list(b.shape), strides=list(b.stride()), block_shape=[BM, BN])
        c_desc = TensorDescriptor.from_tensor(c, [BM, BN])
        tma_add[(triton.cdiv(a.shape[0], BM), triton.cdiv(a.shape[1], BN))](a_desc, b_desc, c_desc, BM, BN)
        return c

# case: fp16_dot_cast_back
# task: torch.randn(32, 32), torch.randn(32, 32) => lambda self, a, b: (a.half().float() @ b.half().float())
@triton.jit
def mm16(a_ptr, b_ptr, c_ptr, N: tl.constexpr, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k0 in tl.static_range(0, N, BLOCK):
        k = k0 + tl.arange(0, BLOCK)
        a = tl.load(a_ptr + m[:, None] * N + k[None, :])
        b = tl.load(b_ptr + k[:, None] * N + n[None, :])
        acc += tl.dot(a, b, out_dtype=tl.float32)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc)


class ModelNew(nn.Module):
    def forward(self, a, b):
        a16 = a.to(torch.float16)
        b16 = b.half()
        N = a.size(0)
        c = torch.zeros(N, N, device=a.device, dtype=torch.float32)
        mm16[(N // 16, N // 16)](a16, b16, c, N=N, BLOCK=16)
        return c.to(a.dtype)

# case: split_k_then_reduce
# task: torch.randn(16, 128), torch.randn(128, 16) => lambda self, a, b: a @ b
@triton.jit
def splitk(a_ptr, b_ptr, w_ptr, M, N, K, KS, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pm, pn, ps = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    rm = pm * BM + tl.arange(0, BM)
    rn = pn * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    lo = ps * KS
    for k in range(lo, lo + KS, BK):
        rk = k + tl.arange(0, BK)
        a = tl.load(a_ptr + rm[:, None] * K + rk[None, :], mask=rk[None, :] < K, other=0.)
        b = tl.load(b_ptr + rk[:, None] * N + rn[None, :], mask=rk[:, None] < K, other=0.)
        acc += tl.dot(a, b, input_precision="tf32x3")
    tl.store(w_ptr + ps * M * N + rm[:, None] * N + rn[None, :], acc)


@triton.jit
def reduce_k(w_ptr, c_ptr, MN, S: tl.constexpr, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for s in range(S):
        acc += tl.load(w_ptr + s * MN + o, mask=o < MN, other=0.0)
    tl.store(c_ptr + o, acc, mask=o < MN)


class ModelNew(nn.Module):
    SPLITS = 4

    def forward(self, a, b):
        (M, K), N = a.shape, b.shape[-1]
        ws = torch.empty((self.SPLITS, M, N), dtype=torch.float32, device=a.device)
        c = a.new_empty((M, N))
        splitk[(M // 16, N // 16, self.SPLITS)](a, b, ws, M, N, K, K // self.SPLITS, BM=16, BN=16, BK=16)
        reduce_k[(triton.cdiv(M * N, 256),)](ws, c, M * N, S=self.SPLITS, BLOCK=256)
        return c

# case: cumsum_scan
# task: torch.randn(9, 60) => lambda self, x: torch.cumsum(x, dim=1)
@triton.jit
def cumsum_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x_ptr + r * N + c, mask=c < N, other=0.0)
    tl.store(y_ptr + r * N + c, tl.cumsum(v, axis=0), mask=c < N)


class ModelNew(nn.Module):
    def __init__(self, dim=1):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        x_ = x.transpose(self.dim, -1).contiguous()
        flat = x_.view(-1, x_.size(-1))
        y = torch.empty_like(flat)
        cumsum_kernel[(flat.size(0),)](flat, y, flat.size(1), BLOCK=triton.next_power_of_2(flat.size(1)))
        return y.view(x_.shape).transpose(self.dim, -1).contiguous()

# case: associative_scan_product
# task: torch.rand(8, 32) + 0.5 => lambda self, x: torch.cumprod(x, dim=1)
@triton.jit
def _mul(a, b):
    return a * b


@triton.jit
def cumprod_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x_ptr + r * N + c, mask=c < N, other=1.0)
    tl.store(y_ptr + r * N + c, tl.associative_scan(v, 0, _mul), mask=c < N)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        cumprod_kernel[x.shape[0],](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y

# case: sort_rows
# task: torch.randn(6, 32) => lambda self, x: torch.sort(x, dim=-1)[0]
@triton.jit
def sort_kernel(x_ptr, y_ptr, N: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, N)
    tl.store(y_ptr + r * N + c, tl.sort(tl.load(x_ptr + r * N + c)))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        sort_kernel[(x.shape[0],)](x, y, N=x.shape[1])
        return y

# case: dropout_philox
@triton.jit
def seeded_dropout(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    keep = tl.rand(seed, offs) > p
    tl.store(out_ptr + offs, tl.where(keep, x / (1 - p), 0.0), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, p=0.1):
        super().__init__()
        self.p = p

    def forward(self, x):
        if not self.training or self.p == 0:
            return x
        out = torch.empty_like(x)
        seed = torch.randint(0, 2**31 - 1, (1,)).item()
        seeded_dropout[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), self.p, seed, BLOCK=1024)
        return out

# case: int8_quantise
# task: torch.randn(64) => lambda self, x: torch.clamp(torch.round(x / 0.05), -128, 127).to(torch.int8)
from triton.language.extra import libdevice


@triton.jit
def quant(x_ptr, q_ptr, n, inv_scale, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    q = libdevice.rint(x * inv_scale)
    q = tl.minimum(tl.maximum(q, -128.0), 127.0)
    tl.store(q_ptr + o, q.to(tl.int8), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        q = torch.empty(x.shape, dtype=torch.int8, device=x.device)
        quant[(triton.cdiv(x.numel(), 64),)](x, q, x.numel(), 1.0 / 0.05, BLOCK=64)
        return q

# case: libdevice_erf
# task: torch.randn(128) => lambda self, x: F.gelu(x)
@triton.jit
def gelu_erf(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    tl.store(y_ptr + o, 0.5 * x * (1.0 + tl.math.erf(x * 0.7071067811865476)), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        gelu_erf[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
        return y

# case: multiple_outputs_tuple
# task: torch.randn(10, 40) => lambda self, x: (x.max(dim=1)[0], x.argmax(dim=1))
@triton.jit
def max_arg(x_ptr, v_ptr, i_ptr, N, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + r * N + c, mask=c < N, other=-float("inf"))
    v, i = tl.max(x, axis=0, return_indices=True)
    tl.store(v_ptr + r, v)
    tl.store(i_ptr + r, i.to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, x):
        b = x.shape[0]
        values = torch.empty((b,), device=x.device, dtype=x.dtype)
        indices = torch.empty((b,), device=x.device, dtype=torch.long)
        max_arg[(b,)](x, values, indices, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return values, indices

# case: registered_buffer_norm
# task: torch.randn(4, 6, 5, 5) => lambda self, x: (x - torch.arange(6., device=x.device).view(1, 6, 1, 1)) * 0.5
@triton.jit
def chan_shift(x_ptr, m_ptr, y_ptr, C, HW, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    k = o < n
    c = (o // HW) % C
    tl.store(y_ptr + o, (tl.load(x_ptr + o, mask=k) - tl.load(m_ptr + c, mask=k)) * 0.5, mask=k)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("shift", torch.arange(6, dtype=torch.float32))

    def _grid(self, n, block):
        return (triton.cdiv(n, block),)

    def forward(self, x):
        B, C, H, W = x.size()
        out = torch.empty(B, C, H, W, device=x.device, dtype=x.dtype)
        n = out.numel()
        chan_shift[self._grid(n, 64)](x, self.shift, out, C, H * W, n, BLOCK=64)
        return out

# case: functools_partial_launcher
# task: torch.randn(50) => lambda self, x: F.leaky_relu(x, 0.1)
import functools


@triton.jit
def leaky(x_ptr, y_ptr, n, slope, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    tl.store(y_ptr + o, tl.where(x >= 0, x, x * slope), mask=o < n)


def launch(x, slope, block):
    y = torch.empty_like(x)
    leaky[(triton.cdiv(x.numel(), block),)](x, y, x.numel(), slope, BLOCK=block)
    return y


leaky_relu = functools.partial(launch, slope=0.1, block=128)


class ModelNew(nn.Module):
    def forward(self, x):
        return leaky_relu(x)


if __name__ == "__main__":
    model = ModelNew().cuda()
    inp = torch.randn(50, device="cuda")
    print(torch.allclose(model(inp), F.leaky_relu(inp, 0.1)))

# case: kernels_chosen_by_dict
# task: torch.randn(50) => lambda self, x: torch.exp(x)
@triton.jit
def exp_k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + o, tl.exp(tl.load(x_ptr + o, mask=o < n)), mask=o < n)


@triton.jit
def log_k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + o, tl.log(tl.load(x_ptr + o, mask=o < n)), mask=o < n)


KERNELS = {"exp": exp_k, "log": log_k}


class ModelNew(nn.Module):
    def __init__(self, kind="exp"):
        super().__init__()
        self.kind = kind

    def forward(self, x):
        kernel = KERNELS[self.kind]
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
        return y

# case: kernel_by_dtype_if
# task: torch.randn(50) => lambda self, x: x * x
@triton.jit
def sq32(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    tl.store(y_ptr + o, x * x, mask=o < n)


@triton.jit
def sq16(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n).to(tl.float32)
    tl.store(y_ptr + o, (x * x).to(tl.float16), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()
        grid = (triton.cdiv(n, 64),)
        if x.dtype == torch.float16:
            sq16[grid](x, y, n, BLOCK=64)
        else:
            sq32[grid](x, y, n, BLOCK=64)
        return y

# case: batchnorm_stats_two_kernels
# task: torch.randn(6, 5, 7) => lambda self, x: F.batch_norm(x, None, None, self.bn.weight, self.bn.bias, True)
# layers: self.bn = nn.BatchNorm1d(5, track_running_stats=False)
@triton.jit
def bn_stats(x_ptr, mean_ptr, rstd_ptr, B, C, L, eps, BLOCK: tl.constexpr):
    c = tl.program_id(0)
    n = B * L
    s = tl.zeros((BLOCK,), tl.float32)
    q = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + (i // L) * C * L + c * L + i % L, mask=i < n, other=0.0)
        s += x
        q += x * x
    mean = tl.sum(s, 0) / n
    var = tl.sum(q, 0) / n - mean * mean
    tl.store(mean_ptr + c, mean)
    tl.store(rstd_ptr + c, tl.rsqrt(var + eps))


@triton.jit
def bn_apply(x_ptr, y_ptr, mean_ptr, rstd_ptr, w_ptr, b_ptr, C, L, total, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    k = i < total
    c = (i // L) % C
    x = tl.load(x_ptr + i, mask=k)
    y = (x - tl.load(mean_ptr + c, mask=k)) * tl.load(rstd_ptr + c, mask=k)
    tl.store(y_ptr + i, y * tl.load(w_ptr + c, mask=k) + tl.load(b_ptr + c, mask=k), mask=k)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(5, track_running_stats=False)

    def forward(self, x):
        B, C, L = x.shape
        mean = torch.empty(C, device=x.device)
        rstd = torch.empty(C, device=x.device)
        y = torch.empty_like(x)
        bn_stats[(C,)](x, mean, rstd, B, C, L, self.bn.eps, BLOCK=64)
        bn_apply[(triton.cdiv(x.numel(), 64),)](x, y, mean, rstd, self.bn.weight, self.bn.bias, C, L, x.numel(), BLOCK=64)
        return y

# case: inductor_style_pointwise
import triton.language as tl
from torch._inductor.runtime.triton_heuristics import grid
from torch._C import _cuda_getCurrentRawStream as get_raw_stream
from torch._inductor.runtime import triton_helpers
from torch._inductor.runtime.triton_helpers import libdevice, math as tl_math
assert_size_stride = torch._C._dynamo.guards.assert_size_stride
empty_strided_cuda = torch._C._dynamo.guards._empty_strided_cuda
reinterpret_tensor = torch._C._dynamo.guards._reinterpret_tensor


@triton.jit
def triton_poi_fused_add_relu_0(in_ptr0, in_ptr1, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    xnumel = 256
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x0 = xindex
    tmp0 = tl.load(in_ptr0 + x0, xmask)
    tmp1 = tl.load(in_ptr1 + x0, xmask)
    tmp2 = tmp0 + tmp1
    tmp3 = tl.full([1], 0, tl.int32)
    tmp4 = triton_helpers.maximum(tmp3, tmp2)
    tl.store(out_ptr0 + x0, tmp4, xmask)


def call(args):
    arg0_1, arg1_1 = args
    args.clear()
    assert_size_stride(arg0_1, (4, 4, 4, 4), (64, 16, 4, 1))
    assert_size_stride(arg1_1, (4, 4, 4, 4), (64, 16, 4, 1))
    with torch.cuda._DeviceGuard(0):
        torch.cuda.set_device(0)
        buf0 = empty_strided_cuda((4, 4, 4, 4), (64, 16, 4, 1), torch.float32)
        get_raw_stream(0)
        triton_poi_fused_add_relu_0[grid(256)](arg0_1, arg1_1, buf0, 256, XBLOCK=128, num_warps=4, num_stages=1)
        del arg0_1
        del arg1_1
    return buf0,


class ModelNew(nn.Module):
    def __init__(self):
        super(ModelNew, self).__init__()

    def forward(self, input_0, input_1):
        arg0_1 = input_0
        arg1_1 = input_1
        output = call([arg0_1, arg1_1])
        return output[0]

# case: inductor_style_reduction
from torch._inductor.runtime.triton_heuristics import grid
from torch._C import _cuda_getCurrentRawStream as get_raw_stream
from torch._inductor.runtime.triton_helpers import libdevice
import torch.nn as nn
assert_size_stride = torch._C._dynamo.guards.assert_size_stride
empty_strided_cuda = torch._C._dynamo.guards._empty_strided_cuda


@triton.jit
def triton_per_fused_mean_pow_0(in_out_ptr0, in_ptr0, xnumel, rnumel, XBLOCK: tl.constexpr):
    RBLOCK: tl.constexpr = 64
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    rindex = tl.arange(0, RBLOCK)[None, :]
    tl.full([XBLOCK, RBLOCK], True, tl.int1)
    tmp0 = tl.load(in_ptr0 + (rindex + 64 * xindex), xmask, other=0.0)
    tmp1 = tmp0 * tmp0
    tmp2 = tl.broadcast_to(tmp1, [XBLOCK, RBLOCK])
    tmp4 = tl.where(xmask, tmp2, 0)
    tmp5 = tl.sum(tmp4, 1)[:, None]
    tmp6 = 64.0
    tmp7 = tmp5 / tmp6
    tl.debug_barrier()
    tl.store(in_out_ptr0 + xindex, libdevice.sqrt(tmp7), xmask)


def call(args):
    arg0_1, = args
    args.clear()
    assert_size_stride(arg0_1, (4, 4, 8, 8), (256, 64, 8, 1))
    with torch.cuda._DeviceGuard(0):
        torch.cuda.set_device(0)
        buf0 = empty_strided_cuda((4, 4), (4, 1), torch.float32)
        buf1 = buf0
        del buf0
        get_raw_stream(0)
        triton_per_fused_mean_pow_0[grid(16)](buf1, arg0_1, 16, 64, XBLOCK=1, num_warps=2, num_stages=1)
        del arg0_1
    return buf1,


class ModelNew(nn.Module):
    def forward(self, input_0):
        return call([input_0])[0]

# case: attention_online_softmax
# task: torch.randn(1, 2, 32, 16), torch.randn(1, 2, 32, 16), torch.randn(1, 2, 32, 16) => lambda self, q, k, v: F.scaled_dot_product_attention(q, k, v)
@triton.jit
def attn_fwd(Q, K, V, O, sz, sh, sm, sk, N_CTX, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    start_m = tl.program_id(0)
    off_hz = tl.program_id(1)
    base = off_hz * sh
    offs_m = start_m * BM + tl.arange(0, BM)
    offs_d = tl.arange(0, D)
    q = tl.load(Q + base + offs_m[:, None] * sm + offs_d[None, :] * sk, mask=offs_m[:, None] < N_CTX, other=0.0)
    m_i = tl.full([BM], float("-inf"), dtype=tl.float32)
    l_i = tl.zeros([BM], dtype=tl.float32)
    acc = tl.zeros([BM, D], dtype=tl.float32)
    for start_n in range(0, N_CTX, BN):
        offs_n = start_n + tl.arange(0, BN)
        k = tl.load(K + base + offs_n[None, :] * sm + offs_d[:, None] * sk, mask=offs_n[None, :] < N_CTX, other=0.0)
        qk = tl.dot(q, k) * scale
        qk = tl.where(offs_n[None, :] < N_CTX, qk, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(qk, 1))
        alpha = tl.exp(m_i - m_new)
        p = tl.exp(qk - m_new[:, None])
        v = tl.load(V + base + offs_n[:, None] * sm + offs_d[None, :] * sk, mask=offs_n[:, None] < N_CTX, other=0.0)
        acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)
        l_i = l_i * alpha + tl.sum(p, 1)
        m_i = m_new
    acc = acc / l_i[:, None]
    tl.store(O + base + offs_m[:, None] * sm + offs_d[None, :] * sk, acc, mask=offs_m[:, None] < N_CTX)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        B, H, N, D = q.shape
        q, k, v = [t.contiguous() for t in (q, k, v)]
        o = torch.empty_like(q)
        sm_scale = 1.0 / math.sqrt(D)
        grid = (triton.cdiv(N, 16), B * H)
        attn_fwd[grid](q, k, v, o, q.stride(0), q.stride(1), q.stride(2), q.stride(3), N, sm_scale, BM=16, BN=16, D=D)
        return o


import math

# case: multi_layer_mlp_method_helpers
# task: torch.randn(8, 16) => lambda self, x: self.l2(torch.relu(self.l1(x)))
# layers: self.l1 = nn.Linear(16, 32); self.l2 = nn.Linear(32, 16)
# use: matmul
@triton.jit
def bias_act(x_ptr, b_ptr, n, N, ACT: tl.constexpr, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n) + tl.load(b_ptr + o % N, mask=o < n)
    if ACT == "relu":
        x = tl.maximum(x, 0.0)
    tl.store(x_ptr + o, x, mask=o < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = nn.Linear(16, 32)
        self.l2 = nn.Linear(32, 16)

    @staticmethod
    def _mm(x, wt):
        out = torch.empty(x.shape[0], wt.shape[1], device=x.device)
        grid = (triton.cdiv(out.shape[0], 16), triton.cdiv(out.shape[1], 16))
        matmul_kernel[grid](x, wt, out, x.shape[0], wt.shape[1], x.shape[1], x.stride(0), x.stride(1),
                            wt.stride(0), wt.stride(1), out.stride(0), out.stride(1), BM=16, BN=16, BK=16)
        return out

    def _layer(self, x, layer, act):
        y = self._mm(x, layer.weight.t())
        bias_act[(triton.cdiv(y.numel(), 64),)](y, layer.bias, y.numel(), y.shape[1], ACT=act, BLOCK=64)
        return y

    def forward(self, x):
        for layer, act in ((self.l1, "relu"), (self.l2, "none")):
            x = self._layer(x, layer, act)
        return x

# case: maxpool_permute_input
# task: torch.randn(2, 8, 8, 3) => lambda self, x: F.max_pool2d(x.permute(0, 3, 1, 2), 2)
@triton.jit
def pool(x_ptr, y_ptr, C, H, W, OH, OW, total, K: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < total
    ow = i % OW
    oh = (i // OW) % OH
    nc = i // (OW * OH)
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    for a in tl.static_range(K):
        for b in tl.static_range(K):
            best = tl.maximum(best, tl.load(x_ptr + (nc * H + oh * K + a) * W + ow * K + b, mask=ok, other=float("-inf")))
    tl.store(y_ptr + i, best, mask=ok)


class ModelNew(nn.Module):
    def __init__(self, k=2):
        super().__init__()
        self.k = k

    def forward(self, x):
        x = x.permute(0, 3, 1, 2).contiguous()
        N, C, H, W = x.shape
        OH, OW = H // self.k, W // self.k
        y = torch.empty((N, C, OH, OW), dtype=x.dtype, device=x.device)
        pool[(triton.cdiv(y.numel(), 32),)](x, y, C, H, W, OH, OW, y.numel(), K=self.k, BLOCK=32)
        return y

# case: cross_entropy_with_int_targets
# task: torch.randn(12, 10), torch.randint(0, 10, (12,)) => lambda self, x, t: F.cross_entropy(x, t)
@triton.jit
def ce(x_ptr, t_ptr, loss_ptr, C, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + r * C + c, mask=c < C, other=-float("inf"))
    t = tl.load(t_ptr + r)
    m = tl.max(x, 0)
    lse = m + tl.log(tl.sum(tl.exp(x - m), 0))
    tl.store(loss_ptr + r, lse - tl.load(x_ptr + r * C + t))


@triton.jit
def mean_1block(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + o, mask=o < n, other=0.0), 0) / n)


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        rows, classes = predictions.shape
        losses = torch.empty(rows, device=predictions.device, dtype=torch.float32)
        ce[(rows,)](predictions, targets.to(torch.int64), losses, classes, BLOCK=triton.next_power_of_2(classes))
        out = torch.empty(1, device=predictions.device)
        mean_1block[(1,)](losses, out, rows, BLOCK=triton.next_power_of_2(rows))
        return out.squeeze()

# case: item_for_python_scalar_result
# task: torch.randn(600), torch.randn(600) => lambda self, a, b: F.smooth_l1_loss(a, b)
@triton.jit
def huber(a_ptr, b_ptr, out_ptr, n, beta, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = tl.abs(tl.load(a_ptr + o, mask=o < n, other=0.0) - tl.load(b_ptr + o, mask=o < n, other=0.0))
    l = tl.where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta)
    tl.atomic_add(out_ptr, tl.sum(l, 0))


class ModelNew(nn.Module):
    def __init__(self, beta=1.0):
        super().__init__()
        self.beta = beta

    def forward(self, a, b):
        acc = torch.zeros((), device=a.device, dtype=torch.float32)
        n = a.numel()
        huber[(triton.cdiv(n, 256),)](a, b, acc, n, self.beta, BLOCK=256)
        return (acc / n).to(a.dtype)

# case: expand_broadcast_bias
# task: torch.randn(7, 9), torch.randn(9) => lambda self, x, b: x * b
@triton.jit
def mul2d(x_ptr, b_ptr, y_ptr, M, N, sx0, sx1, sb0, sb1, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    n = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    k = (m < M) & (n < N)
    v = tl.load(x_ptr + m * sx0 + n * sx1, mask=k) * tl.load(b_ptr + m * sb0 + n * sb1, mask=k)
    tl.store(y_ptr + m * N + n, v, mask=k)


class ModelNew(nn.Module):
    def forward(self, x, b):
        be = b.unsqueeze(0).expand_as(x)
        y = torch.empty(x.shape, device=x.device)
        mul2d[(triton.cdiv(7, 4), triton.cdiv(9, 8))](x, be, y, *x.shape, *x.stride(), *be.stride(), BM=4, BN=8)
        return y

# case: class_wrapping_kernel_launch
# task: torch.randn(77) => lambda self, x: torch.sin(x)
@triton.jit
def sin_kernel(src, dst, count, SIZE: tl.constexpr):
    idx = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(dst + idx, tl.sin(tl.load(src + idx, mask=idx < count)), mask=idx < count)


class Launcher:
    def __init__(self, kernel, block_size=64):
        self.kernel = kernel
        self.block_size = block_size

    def __call__(self, x):
        out = torch.empty_like(x)
        count = x.numel()
        self.kernel[(triton.cdiv(count, self.block_size),)](x, out, count, SIZE=self.block_size)
        return out


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.op = Launcher(sin_kernel)

    def forward(self, x):
        return self.op(x)

# case: submodule_class_with_triton_forward
# task: torch.randn(6, 20) => lambda self, x: x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-6) * 1.0
@triton.jit
def rms(x_ptr, g_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + r * N + c, mask=c < N, other=0.0)
    ms = tl.sum(x * x, 0) / N
    tl.store(y_ptr + r * N + c, x * tl.rsqrt(ms + eps) * tl.load(g_ptr + c, mask=c < N), mask=c < N)


class TritonRMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        y = torch.empty_like(x)
        N = x.shape[-1]
        rms[(x.numel() // N,)](x, self.gain, y, N, self.eps, BLOCK=triton.next_power_of_2(N))
        return y


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.Sequential(TritonRMSNorm(20))

    def forward(self, x):
        return self.norm(x)

# case: cast_inputs_bfloat16
# task: torch.randn(64) => lambda self, x: (x.bfloat16() * 2).float()
@triton.jit
def dbl(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n).to(tl.float32)
    tl.store(y_ptr + o, (x * 2).to(y_ptr.dtype.element_ty), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        dtype = x.dtype
        xb = x.to(dtype=torch.bfloat16)
        y = torch.empty_like(xb)
        dbl[(triton.cdiv(x.numel(), 32),)](xb, y, x.numel(), BLOCK=32)
        return y.to(dtype)

# case: try_import_and_fallback_constant
# task: torch.randn(100) => lambda self, x: torch.abs(x)
from typing import Optional, Tuple

try:
    import triton.language.extra.libdevice as ld
except ImportError:
    ld = None

DEFAULT_BLOCK: int = 64


@triton.jit
def abs_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + o, tl.abs(tl.load(x_ptr + o, mask=o < n)), mask=o < n)


def absolute(x: torch.Tensor, out: Optional[torch.Tensor] = None, block: int = DEFAULT_BLOCK) -> torch.Tensor:
    if out is None:
        out = torch.empty_like(x)
    abs_kernel[(triton.cdiv(x.numel(), block),)](x, out, x.numel(), BLOCK=block)
    return out


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return absolute(x)

# case: grid_as_tuple_variable_and_device_context
# task: torch.randn(90) => lambda self, x: torch.sigmoid(x)
@triton.jit
def sigmoid_kernel(x_ptr, y_ptr, n: tl.int32, BLOCK: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    o = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n, other=0)
    tl.store(y_ptr + o, tl.sigmoid(x), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x, memory_format=torch.contiguous_format)
        blocks = -(-x.numel() // 32)
        grid = (blocks, 1, 1)
        with torch.cuda.device(x.device):
            sigmoid_kernel[grid](x, y, x.numel(), BLOCK=32, num_warps=1)
        return y

# case: scatter_histogram_atomics
# task: torch.randint(0, 10, (500,)) => lambda self, x: torch.bincount(x, minlength=10)
@triton.jit
def hist(x_ptr, h_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    b = tl.load(x_ptr + o, mask=o < n, other=0)
    tl.atomic_add(h_ptr + b, tl.where(o < n, 1, 0).to(tl.int64), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        h = torch.zeros(10, dtype=torch.int64, device=x.device)
        hist[(triton.cdiv(x.numel(), 128),)](x, h, x.numel(), BLOCK=128)
        return h

# case: embedding_gather_scaled
# task: torch.randint(0, 20, (6, 4)) => lambda self, i: self.emb(i) * 8.0
# layers: self.emb = nn.Embedding(20, 16)
@triton.jit
def gather(i_ptr, w_ptr, y_ptr, scale, D: tl.constexpr):
    r = tl.program_id(0)
    i = tl.load(i_ptr + r)
    d = tl.arange(0, D)
    tl.store(y_ptr + r * D + d, tl.load(w_ptr + i * D + d) * scale)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(20, 16)

    def forward(self, idx):
        y = torch.empty(*idx.shape, self.emb.embedding_dim, device=idx.device)
        gather[(idx.numel(),)](idx, self.emb.weight, y, 8.0, D=16)
        return y

# case: transpose_as_honest_task
# task: torch.randn(24, 40) => lambda self, x: x.t().contiguous() + 0
@triton.jit
def transpose_add0(x_ptr, y_ptr, M, N, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    t = tl.load(x_ptr + m[:, None] * N + n[None, :], mask=(m[:, None] < M) & (n[None, :] < N))
    t = tl.trans(t) + 0.0
    tl.store(y_ptr + n[:, None] * M + m[None, :], t, mask=(n[:, None] < N) & (m[None, :] < M))


class ModelNew(nn.Module):
    def forward(self, x):
        M, N = x.shape
        y = torch.empty((N, M), device=x.device, dtype=x.dtype)
        transpose_add0[(triton.cdiv(M, 16), triton.cdiv(N, 16))](x, y, M, N, BLOCK=16)
        return y

# case: module_list_weights_loop
# task: torch.randn(8, 16) => lambda self, x: self.layers[1](self.layers[0](x))
# layers: self.layers = nn.ModuleList([nn.Linear(16, 16) for _ in range(2)])
@triton.jit
def lin(x_ptr, w_ptr, b_ptr, y_ptr, M, N: tl.constexpr, K: tl.constexpr, BM: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.arange(0, N)
    k = tl.arange(0, K)
    x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=m[:, None] < M, other=0.0)
    w = tl.load(w_ptr + n[None, :] * K + k[:, None])
    y = tl.dot(x, w) + tl.load(b_ptr + n)[None, :]
    tl.store(y_ptr + m[:, None] * N + n[None, :], y, mask=m[:, None] < M)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(16, 16) for _ in range(2)])

    def forward(self, x):
        h = x
        for i, layer in enumerate(self.layers):
            nxt = torch.empty(h.size(0), layer.weight.size(0), device=h.device, dtype=h.dtype)
            lin[(triton.cdiv(h.size(0), 16),)](h, layer.weight, layer.bias, nxt, h.size(0), N=16, K=16, BM=16)
            h = nxt
        return h

# case: groupnorm_view_reshape
# task: torch.randn(3, 8, 5, 5) => lambda self, x: self.gn(x)
# layers: self.gn = nn.GroupNorm(4, 8)
@triton.jit
def gn_kernel(x_ptr, w_ptr, b_ptr, y_ptr, G, CPG, HW, eps, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    g = pid % G
    size = CPG * HW
    o = tl.arange(0, BLOCK)
    k = o < size
    x = tl.load(x_ptr + pid * size + o, mask=k, other=0.0)
    mean = tl.sum(x, 0) / size
    d = tl.where(k, x - mean, 0.0)
    rstd = tl.math.rsqrt(tl.sum(d * d, 0) / size + eps)
    c = g * CPG + o // HW
    y = d * rstd * tl.load(w_ptr + c, mask=k, other=1.0) + tl.load(b_ptr + c, mask=k, other=0.0)
    tl.store(y_ptr + pid * size + o, y, mask=k)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.gn = nn.GroupNorm(4, 8)

    def forward(self, x):
        n, c = x.shape[:2]
        hw = x[0, 0].numel()
        g = self.gn.num_groups
        xr = x.contiguous().view(n * g, -1)
        y = torch.empty_like(xr)
        gn_kernel[(n * g,)](xr, self.gn.weight, self.gn.bias, y, g, c // g, hw, self.gn.eps,
                            BLOCK=triton.next_power_of_2(xr.shape[1]))
        return y.view_as(x)

# case: state_dict_weight_transposed_in_init
# task: torch.randn(16, 16) => lambda self, x: x @ self.w
# layers: self.w = nn.Parameter(torch.randn(16, 16))
# use: matmul
# use: launch_matmul
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(16, 16))
        self._cfg = dict(num_stages=2)

    def forward(self, x):
        return launch_matmul(x, self.w)

# case: two_kernels_chained_inplace
# task: torch.randn(130) => lambda self, x: torch.relu(x) + 1
# use: relu
@triton.jit
def add_one_(x_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + o, tl.load(x_ptr + o, mask=o < n) + 1, mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        n = x.numel()
        out = torch.empty_like(x)
        g = (triton.cdiv(n, 64),)
        relu_kernel[g](x, out, n, 64)
        add_one_[g](out, n, BLOCK=64)
        return out

# case: while_loop_multi_pass_reduction
# task: torch.randn(5000) => lambda self, x: x.sum()
@triton.jit
def fold(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    o = p * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + p, tl.sum(tl.load(x_ptr + o, mask=o < n, other=0.0)))


class ModelNew(nn.Module):
    def forward(self, x):
        cur = x.reshape(-1)
        while cur.numel() > 1:
            n = cur.numel()
            blocks = (n + 255) // 256
            nxt = torch.empty(blocks, device=x.device, dtype=torch.float32)
            fold[(blocks,)](cur, nxt, n, BLOCK=256)
            cur = nxt
        return cur[0]

# case: int64_flags_and_constexpr_branches
# task: torch.randn(6, 30) => lambda self, x: torch.logsumexp(x, dim=1, keepdim=True)
@triton.jit
def lse_kernel(x_ptr, y_ptr, N, KEEP_MAX: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    m = -float("inf")
    s = 0.0
    for start in range(0, N, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + r * N + c, mask=c < N, other=-float("inf"))
        m_new = tl.maximum(m, tl.max(x, 0))
        s = s * tl.exp(m - m_new) + tl.sum(tl.exp(x - m_new), 0)
        m = m_new
    if KEEP_MAX:
        res = m + tl.log(s)
    else:
        res = tl.log(s)
    tl.store(y_ptr + r, res)


class ModelNew(nn.Module):
    def __init__(self, dim=1, keepdim=True):
        super().__init__()
        self.dim, self.keepdim = dim, keepdim

    def forward(self, x):
        y = x.new_empty((x.shape[0], 1) if self.keepdim else (x.shape[0],))
        lse_kernel[(x.shape[0],)](x, y, x.shape[1], KEEP_MAX=True, BLOCK=16)
        return y

# case: f_string_errors_and_checks
# task: torch.randn(64) => lambda self, x: F.hardtanh(x)
@triton.jit
def hardtanh_kernel(x_ptr, out_ptr, n_elements, min_val, max_val, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.clamp(x, min_val, max_val), mask=mask)


def hardtanh(x, min_val=-1.0, max_val=1.0):
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"expected a tensor, got {type(x).__name__}")
    if x.dtype not in {torch.float32, torch.float16, torch.bfloat16}:
        raise ValueError(f"unsupported dtype {x.dtype}")
    out = torch.empty_like(x)
    n = out.numel()
    assert n > 0, f"empty tensor of shape {tuple(x.shape)}"
    block = triton.next_power_of_2(min(n, 1024))
    hardtanh_kernel[(triton.cdiv(n, block),)](x, out, n, min_val, max_val, BLOCK_SIZE=block)
    return out


class ModelNew(nn.Module):
    def forward(self, x):
        return hardtanh(x)

# case: lambda_model_and_dataclass_config
# task: torch.randn(64) => lambda self, x: F.elu(x)
from dataclasses import dataclass


@dataclass
class Config:
    block: int = 32
    alpha: float = 1.0


@triton.jit
def elu_kernel(x_ptr, y_ptr, n, alpha, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    tl.store(y_ptr + o, tl.where(x > 0, x, alpha * (tl.exp(x) - 1)), mask=o < n)


class ModelNew(nn.Module):
    def __init__(self, cfg: Config = Config()):
        super().__init__()
        self.cfg = cfg

    def forward(self, x):
        out = torch.empty_like(x)
        elu_kernel[lambda m: (triton.cdiv(x.numel(), m["BLOCK"]),)](x, out, x.numel(), self.cfg.alpha, BLOCK=self.cfg.block)
        return out

# case: output_slices_concatenated_by_kernel
# task: torch.randn(6, 8), torch.randn(6, 8) => lambda self, a, b: torch.cat([a * 2, b * 3], dim=1)
@triton.jit
def scale_into(x_ptr, y_ptr, s, N, OUT_N, off, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    tl.store(y_ptr + r * OUT_N + off + c, tl.load(x_ptr + r * N + c, mask=c < N) * s, mask=c < N)


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty(a.shape[0], a.shape[1] + b.shape[1], device=a.device)
        off = 0
        for t, s in zip([a, b], [2.0, 3.0]):
            scale_into[(t.shape[0],)](t, out, s, t.shape[1], out.shape[1], off, BLOCK=8)
            off += t.shape[1]
        return out

# case: depthwise_conv_state_loop
# task: torch.randn(2, 4, 20) => lambda self, x: self.conv(x)
# layers: self.conv = nn.Conv1d(4, 4, 3, groups=4, bias=False)
@triton.jit
def dw1d(x, w, y, C, L, OL, K: tl.constexpr, BLOCK: tl.constexpr):
    nc = tl.program_id(0)
    o = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros([BLOCK], dtype=tl.float32)
    for k in tl.static_range(K):
        acc += tl.load(x + nc * L + o + k, mask=o < OL, other=0.0) * tl.load(w + (nc % C) * K + k)
    tl.store(y + nc * OL + o, acc, mask=o < OL)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 4, 3, groups=4, bias=False)
        self.weight = self.conv.weight

    def forward(self, x):
        n, c, l = x.shape
        ol = l - 2
        y = torch.empty((n, c, ol), device=x.device, dtype=x.dtype)
        dw1d[(n * c, triton.cdiv(ol, 16))](x, self.weight, y, c, l, ol, K=3, BLOCK=16)
        return y

# case: triplet_margin_row_loop
# task: torch.randn(9, 30), torch.randn(9, 30), torch.randn(9, 30) => lambda self, a, p, n: F.triplet_margin_loss(a, p, n)
@triton.jit
def triplet_margin_loss_kernel(anchor_ptr, positive_ptr, negative_ptr, output_ptr, margin,
                               FEATURE_SIZE: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    start = pid * FEATURE_SIZE
    ap_sum = 0.0
    an_sum = 0.0
    for j in range(0, FEATURE_SIZE, BLOCK_SIZE):
        offsets = j + tl.arange(0, BLOCK_SIZE)
        mask = offsets < FEATURE_SIZE
        a = tl.load(anchor_ptr + start + offsets, mask=mask, other=0.0)
        p = tl.load(positive_ptr + start + offsets, mask=mask, other=0.0)
        n = tl.load(negative_ptr + start + offsets, mask=mask, other=0.0)
        ap_sum += tl.sum((a - p) * (a - p), axis=0)
        an_sum += tl.sum((a - n) * (a - n), axis=0)
    loss_i = tl.sqrt(ap_sum) - tl.sqrt(an_sum) + margin
    loss_i = tl.where(loss_i > 0, loss_i, 0.0)
    tl.atomic_add(output_ptr, loss_i)


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
        grid = (batch_size,)
        triplet_margin_loss_kernel[grid](anchor, positive, negative, total_loss, self.margin,
                                         FEATURE_SIZE=n_features, BLOCK_SIZE=32)
        return total_loss[0] / batch_size

# case: diag_scale
# task: torch.randn(12), torch.randn(12, 9) => lambda self, a, b: torch.diag(a) @ b
@triton.jit
def fused_diag_matmul_kernel(vec_a_ptr, mat_b_ptr, output_ptr, N, M, TOTAL_ELEMENTS, BLOCK_SIZE: tl.constexpr):
    """C = diag(A) * B."""
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < TOTAL_ELEMENTS
    row_indices = offsets // M
    a = tl.load(vec_a_ptr + row_indices, mask=mask, other=0.0)
    b = tl.load(mat_b_ptr + offsets, mask=mask, other=0.0)
    tl.store(output_ptr + offsets, a * b, mask=mask)


class ModelNew(nn.Module):
    def forward(self, A, B):
        N, M = B.shape
        out = torch.empty_like(B)
        total = N * M
        fused_diag_matmul_kernel[(triton.cdiv(total, 64),)](A, B.contiguous(), out, N, M, total, BLOCK_SIZE=64)
        return out

# case: uint8_mask_output
# task: torch.randn(70) => lambda self, x: x > 0.5
@triton.jit
def gt_kernel(x_ptr, y_ptr, thr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n, other=0.0)
    tl.store(y_ptr + o, (x > thr).to(tl.int8), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape, dtype=torch.bool, device=x.device)
        gt_kernel[(triton.cdiv(x.numel(), 64),)](x, y.view(torch.int8), 0.5, x.numel(), BLOCK=64)
        return y

# case: workspace_cached_in_init
# task: torch.randn(256) => lambda self, x: x.abs().sum()
@triton.jit
def l1(x_ptr, ws_ptr, n, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    o = p * BLOCK + tl.arange(0, BLOCK)
    tl.store(ws_ptr + p, tl.sum(tl.abs(tl.load(x_ptr + o, mask=o < n, other=0.0)), 0))


@triton.jit
def finish(ws_ptr, out_ptr, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    tl.store(out_ptr, tl.sum(tl.load(ws_ptr + o, mask=o < n, other=0.0), 0))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("ws", torch.zeros(64), persistent=False)

    def forward(self, x):
        blocks = triton.cdiv(x.numel(), 64)
        l1[(blocks,)](x, self.ws, x.numel(), BLOCK=64)
        out = torch.empty([], device=x.device)
        finish[(1,)](self.ws, out, blocks, BLOCK=64)
        return out

# case: input_passed_through_as_second_output
# task: torch.randn(40), torch.randn(5) => lambda self, x, y: (torch.relu(x), y.clone())
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x, y):
        return launch_relu(x), y.clone()
