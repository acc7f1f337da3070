# case: linear_gelu_scale_fused_class
# task: torch.randn(10, 24) => lambda self, x: F.gelu(self.linear(x)) * 0.5
# layers: self.linear = nn.Linear(24, 18)
@triton.jit
def _fused_linear_gelu(x, w, b, o, M, N, K, scale: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                       BLOCK_K: tl.constexpr):
    pm = tl.program_id(0)
    pn = tl.program_id(1)
    rm = pm * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = pn * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    k = 0
    while k < K:
        rk = k + tl.arange(0, BLOCK_K)
        xv = tl.load(x + rm[:, None] * K + rk[None, :], mask=(rm < M)[:, None] & (rk < K)[None, :], other=0.0)
        wv = tl.load(w + rn[None, :] * K + rk[:, None], mask=(rn < N)[None, :] & (rk < K)[:, None], other=0.0)
        acc += tl.dot(xv, wv)
        k += BLOCK_K
    acc += tl.load(b + rn, mask=rn < N, other=0.0)[None, :]
    g = acc * 0.5 * (1.0 + tl.erf(acc * 0.70710678))
    tl.store(o + rm[:, None] * N + rn[None, :], g * scale, mask=(rm < M)[:, None] & (rn < N)[None, :])


class FusedLinear(nn.Module):
    def __init__(self, linear: nn.Linear, scale: float):
        super().__init__()
        self.weight = linear.weight
        self.bias = linear.bias
        self.scale = scale

    def forward(self, x):
        out = x.new_empty(x.size(0), self.weight.size(0))
        M, K = x.size()
        N = self.weight.size(0)
        grid = (triton.cdiv(M, 16), triton.cdiv(N, 16))
        _fused_linear_gelu[grid](x.contiguous(), self.weight, self.bias, out, M, N, K, self.scale, 16, 16, 16)
        return out


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(24, 18)
        self.fused = FusedLinear(self.linear, 0.5)

    def forward(self, x):
        return self.fused(x)

# case: device_assertions_and_dtype_map
# task: torch.randn(100) => lambda self, x: F.softplus(x)
_TORCH_TO_TL = {torch.float32: tl.float32, torch.float16: tl.float16, torch.bfloat16: tl.bfloat16}


@triton.jit
def softplus_kernel(x_ptr, y_ptr, n, DTYPE: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    m = offs < n
    x = tl.load(x_ptr + offs, mask=m).to(tl.float32)
    y = tl.where(x > 20.0, x, tl.log(1.0 + tl.exp(tl.minimum(x, 20.0))))
    tl.store(y_ptr + offs, y.to(DTYPE), mask=m)


class ModelNew(nn.Module):
    def forward(self, x):
        if not x.is_cuda:
            raise RuntimeError("CUDA tensor required")
        if x.dtype not in _TORCH_TO_TL:
            raise TypeError("unsupported dtype: %s" % x.dtype)
        y = torch.empty_like(x)
        n = x.numel()
        softplus_kernel[(triton.cdiv(n, 64),)](x, y, n, _TORCH_TO_TL[x.dtype], BLOCK=64)
        return y

# case: two_stage_global_max_then_normalise
# task: torch.randn(300) => lambda self, x: x / x.abs().max()
@triton.jit
def absmax_partial(x_ptr, p_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    o = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n, other=0.0)
    tl.store(p_ptr + pid, tl.max(tl.abs(x), axis=0))


@triton.jit
def divide_by_max(x_ptr, p_ptr, y_ptr, n, parts, P: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    q = tl.arange(0, P)
    m = tl.max(tl.load(p_ptr + q, mask=q < parts, other=0.0), axis=0)
    o = pid * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + o, tl.load(x_ptr + o, mask=o < n) / m, mask=o < n)


def normalize(x):
    flat = x.flatten()
    n = flat.shape[0]
    blocks = (n + 127) // 128
    partial = torch.empty((blocks,), dtype=torch.float32, device=flat.device)
    absmax_partial[(blocks,)](flat, partial, n, BLOCK=128)
    y = torch.empty_like(flat)
    divide_by_max[(blocks,)](flat, partial, y, n, blocks, P=triton.next_power_of_2(blocks), BLOCK=128)
    return y.reshape(x.shape)


class ModelNew(nn.Module):
    def forward(self, *args):
        return normalize(args[0])

# case: inference_mode_and_eval_in_init
# task: torch.randn(4, 8, 6) => lambda self, x: x.sum(dim=1)
@triton.jit
def sum_mid(x_ptr, y_ptr, D1, D2, BLOCK: tl.constexpr):
    b = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for r in range(0, D1):
        acc = acc + tl.load(x_ptr + b * D1 * D2 + r * D2 + c, mask=c < D2, other=0)
    tl.store(y_ptr + b * D2 + c, acc, mask=c < D2)


class ModelNew(nn.Module):
    def __init__(self, dim: int = 1, *unused):
        super().__init__()
        self.dim = dim
        self.eval()
        for p in self.parameters():
            p.requires_grad_(False)

    @torch.inference_mode()
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert x.dim() == 3 and self.dim == 1
        B, D1, D2 = map(int, x.shape)
        y = torch.empty((B, D2), device=x.device, dtype=x.dtype)
        sum_mid[(B,)](x.contiguous(), y, D1, D2, BLOCK=triton.next_power_of_2(D2))
        return y

# case: keepdim_unsqueeze_after_kernel
# task: torch.randn(4, 50) => lambda self, x: x.mean(dim=1, keepdim=True)
@triton.jit
def row_mean_kernel(x_ptr, o_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    s = 0.0
    for i in range(0, tl.cdiv(N, BLOCK)):
        c = i * BLOCK + tl.arange(0, BLOCK)
        s += tl.sum(tl.load(x_ptr + row * N + c, mask=c < N, other=0.0))
    tl.store(o_ptr + row, s / N)


class ModelNew(nn.Module):
    def __init__(self, dim=1, keepdim=True):
        super().__init__()
        self.dim = dim
        self.keepdim = keepdim

    def forward(self, x):
        out = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        row_mean_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=32)
        if self.keepdim:
            out = out.unsqueeze(self.dim)
        return out

# case: padding_via_masks_conv1d_stride
# task: torch.randn(2, 3, 11) => lambda self, x: F.relu(self.c(x))
# layers: self.c = nn.Conv1d(3, 5, 3, stride=2, padding=1)
@triton.jit
def conv1d_relu(x_ptr, w_ptr, b_ptr, y_ptr, C, L, OC, OL, stride, pad, K: tl.constexpr, BLOCK: tl.constexpr):
    n = tl.program_id(0)
    oc = tl.program_id(1)
    ol = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.full([BLOCK], 0.0, tl.float32)
    for c in range(C):
        for k in tl.static_range(0, K):
            il = ol * stride + k - pad
            xv = tl.load(x_ptr + (n * C + c) * L + il, mask=(il >= 0) & (il < L) & (ol < OL), other=0.0)
            wv = tl.load(w_ptr + (oc * C + c) * K + k)
            acc += xv * wv
    acc += tl.load(b_ptr + oc)
    tl.store(y_ptr + (n * OC + oc) * OL + ol, tl.maximum(acc, 0), mask=ol < OL)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv1d(3, 5, 3, stride=2, padding=1)

    def forward(self, x):
        conv = self.c
        (s,), (p,), (k,) = conv.stride, conv.padding, conv.kernel_size
        N, C, L = x.shape
        OL = (L + 2 * p - k) // s + 1
        y = torch.empty(N, conv.out_channels, OL, dtype=x.dtype, device=x.device)
        conv1d_relu[(N, conv.out_channels, triton.cdiv(OL, 8))](
            x, conv.weight, conv.bias, y, C, L, conv.out_channels, OL, s, p, K=k, BLOCK=8)
        return y

# case: triangular_matmul_masked_loads
# task: torch.randn(20, 20), torch.randn(20, 20) => lambda self, a, b: torch.triu(torch.matmul(torch.triu(a), torch.triu(b)))
@triton.jit
def triu_mm(a_ptr, b_ptr, c_ptr, N, BLOCK: tl.constexpr):
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k0 in range(0, N, BLOCK):
        k = k0 + tl.arange(0, BLOCK)
        a = tl.load(a_ptr + r[:, None] * N + k[None, :], mask=(r[:, None] < N) & (k[None, :] < N) & (r[:, None] <= k[None, :]), other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + c[None, :], mask=(k[:, None] < N) & (c[None, :] < N) & (k[:, None] <= c[None, :]), other=0.0)
        acc += tl.dot(a, b)
    acc = tl.where(r[:, None] <= c[None, :], acc, 0.0)
    tl.store(c_ptr + r[:, None] * N + c[None, :], acc, mask=(r[:, None] < N) & (c[None, :] < N))


class ModelNew(nn.Module):
    def forward(self, A, B):
        N = A.shape[0]
        C = torch.zeros_like(A)
        g = triton.cdiv(N, 16)
        triu_mm[(g, g)](A, B, C, N, BLOCK=16)
        return C

# case: expert_gating_list_of_params
# task: torch.randn(4, 8) => lambda self, x: x * self.scales[0] * self.scales[1]
# layers: self.scales = nn.ParameterList([nn.Parameter(torch.full((8,), 1.5)), nn.Parameter(torch.full((8,), 2.0))])
@triton.jit
def colmul_(y_ptr, s_ptr, D: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, D)
    y = tl.load(y_ptr + r * D + c)
    tl.store(y_ptr + r * D + c, y * tl.load(s_ptr + c))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = nn.ParameterList([nn.Parameter(torch.full((8,), 1.5)), nn.Parameter(torch.full((8,), 2.0))])

    def forward(self, x):
        y = x.clone()
        for s in self.scales:
            colmul_[(y.shape[0],)](y, s, D=8)
        return y

# case: bias_optional_none_pointer
# task: torch.randn(6, 16) => lambda self, x: self.fc(x)
# layers: self.fc = nn.Linear(16, 16, bias=False)
@triton.jit
def lin_opt_bias(x_ptr, w_ptr, b_ptr, y_ptr, K: tl.constexpr, HAS_BIAS: tl.constexpr):
    r = tl.program_id(0)
    n = tl.arange(0, K)
    k = tl.arange(0, K)
    acc = tl.sum(tl.load(w_ptr + n[:, None] * K + k[None, :]) * tl.load(x_ptr + r * K + k)[None, :], 1)
    if HAS_BIAS:
        acc = acc + tl.load(b_ptr + n)
    tl.store(y_ptr + r * K + n, acc)


def linear(x, weight, bias=None):
    y = torch.empty((x.shape[0], weight.shape[0]), device=x.device, dtype=x.dtype)
    lin_opt_bias[(x.shape[0],)](x, weight, bias if bias is not None else weight, y, K=16, HAS_BIAS=bias is not None)
    return y


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(16, 16, bias=False)

    def forward(self, x):
        return linear(x, self.fc.weight, self.fc.bias)

# case: residual_add_in_kernel_not_torch
# task: torch.randn(5, 32) => lambda self, x: F.layer_norm(x + torch.relu(x), (32,))
@triton.jit
def relu_residual_ln(x_ptr, y_ptr, N: tl.constexpr, EPS: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, N)
    x = tl.load(x_ptr + r * N + c)
    h = x + tl.where(x > 0, x, 0.0)
    mu = tl.sum(h, 0) / N
    d = h - mu
    var = tl.sum(d * d, 0) / N
    tl.store(y_ptr + r * N + c, d / tl.sqrt(var + EPS))


class ModelNew(nn.Module):
    def __init__(self, *args):
        super(ModelNew, self).__init__()
        self.eps = 1e-5

    def forward(self, x):
        y = torch.empty_like(x)
        relu_residual_ln[(x.shape[0],)](x, y, N=x.shape[1], EPS=self.eps)
        return y

# case: global_helper_with_out_and_stream_of_device
@triton.jit
def log1p_abs(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n, other=0.0)
    tl.store(y_ptr + o, tl.log(1.0 + tl.abs(x)), mask=o < n)


def run(x, out=None):
    out = torch.empty_like(x) if out is None else out
    assert out.shape == x.shape and out.device == x.device
    with torch.cuda.device_of(x):
        log1p_abs[(triton.cdiv(out.numel(), 16),)](x, out, out.numel(), BLOCK=16)
    return out


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self._out = None

    def forward(self, x):
        if self._out is None or self._out.shape != x.shape:
            self._out = torch.empty_like(x)
        return run(x, self._out)

# case: seeded_step_counter_noise_free
# task: torch.randn(40) => lambda self, x: x + 1
@triton.jit
def add_const(x_ptr, y_ptr, n, step, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + o, tl.load(x_ptr + o, mask=o < n) + 1.0, mask=o < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 0

    def forward(self, x):
        self.step += 1
        y = torch.empty_like(x)
        add_const[(2,)](x, y, x.numel(), self.step, BLOCK=32)
        return y

# case: size_dispatch_between_three_kernels
# task: torch.randn(3, 70) => lambda self, x: x.norm(dim=1)
@triton.jit
def norm_small(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + r * N + c, mask=c < N, other=0.0)
    tl.store(y_ptr + r, tl.sqrt(tl.sum(x * x, 0)))


@triton.jit
def norm_loop(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for s in range(0, N, BLOCK):
        c = s + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + r * N + c, mask=c < N, other=0.0)
        acc += x * x
    tl.store(y_ptr + r, tl.sqrt(tl.sum(acc, 0)))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, n = x.shape
        y = torch.empty(rows, device=x.device)
        block = triton.next_power_of_2(n)
        if block <= 64:
            norm_small[(rows,)](x, y, n, BLOCK=block)
        elif block <= 4096:
            norm_loop[(rows,)](x, y, n, BLOCK=64)
        else:
            norm_loop[(rows,)](x, y, n, BLOCK=1024, num_warps=8)
        return y

# case: attention_with_projections_and_views
# task: torch.randn(1, 16, 32) => lambda self, x: F.scaled_dot_product_attention(*[t.view(1, 16, 2, 16).transpose(1, 2) for t in (x, x * 1.0, x)]).transpose(1, 2).reshape(1, 16, 32)
@triton.jit
def head_attention(q_ptr, o_ptr, T: tl.constexpr, D: tl.constexpr, scale):
    h = tl.program_id(0)
    t = tl.arange(0, T)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + h * T * D + t[:, None] * D + d[None, :])
    s = tl.dot(q, tl.trans(q)) * scale
    s = s - tl.max(s, 1)[:, None]
    p = tl.exp(s)
    p = p / tl.sum(p, 1)[:, None]
    tl.store(o_ptr + h * T * D + t[:, None] * D + d[None, :], tl.dot(p, q))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.n_head = 2

    def forward(self, x):
        B, T, C = x.size()
        q = x.view(B, T, self.n_head, C // self.n_head).transpose(1, 2).contiguous()
        o = torch.empty_like(q)
        head_attention[(B * self.n_head,)](q, o, T=T, D=C // self.n_head, scale=(C // self.n_head) ** -0.5)
        return o.transpose(1, 2).contiguous().view(B, T, C)

# case: dropout_identity_in_eval
@triton.jit
def drop(x_ptr, y_ptr, n, p, seed, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    r = tl.rand(seed, o)
    tl.store(y_ptr + o, tl.where(r > p, x / (1 - p), 0.0), mask=o < n)


class Dropout(nn.Module):
    def __init__(self, p=0.5):
        super().__init__()
        self.p = p

    def forward(self, x):
        if not self.training:
            return x
        y = torch.empty_like(x)
        drop[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), self.p, 123, BLOCK=64)
        return y


@triton.jit
def twice(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + o, 2 * tl.load(x_ptr + o, mask=o < n), mask=o < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = Dropout()

    def forward(self, x):
        x = self.drop(x)
        y = torch.empty_like(x)
        twice[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
        return y

# case: gather_scatter_indices_in_kernel
# task: torch.randn(6, 8), torch.tensor([3, 1, 5]) => lambda self, x, i: x[i] * 2
@triton.jit
def take_rows(x_ptr, i_ptr, y_ptr, D: tl.constexpr):
    r = tl.program_id(0)
    src = tl.load(i_ptr + r)
    c = tl.arange(0, D)
    tl.store(y_ptr + r * D + c, tl.load(x_ptr + src * D + c) * 2)


class ModelNew(nn.Module):
    def forward(self, x, idx):
        idx = idx.contiguous().to(torch.int64)
        y = torch.empty((idx.shape[0],) + tuple(x.shape[1:]), device=x.device, dtype=x.dtype)
        take_rows[(len(idx),)](x, idx, y, D=x.shape[-1])
        return y

# case: try_autotune_with_named_configs
# task: torch.randn(12, 64) => lambda self, x: torch.log_softmax(x, dim=1)
CONFIGS = []
for _w in [1, 2, 4]:
    CONFIGS.append(triton.Config({}, num_warps=_w))


@triton.autotune(configs=CONFIGS, key=["N"])
@triton.jit
def log_softmax_kernel(X, Y, sx, sy, N: tl.constexpr):
    pid = tl.program_id(0)
    idx = tl.arange(0, N)
    x = tl.load(X + pid * sx + idx).to(tl.float32)
    m = tl.max(x, 0)
    lse = tl.log(tl.sum(tl.exp(x - m), 0)) + m
    tl.store(Y + pid * sy + idx, x - lse)


class ModelNew(torch.nn.Module):
    def __init__(self, dim: int = 1):
        super(ModelNew, self).__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous() if not x.is_contiguous() else x
        y = torch.empty_like(x)
        log_softmax_kernel[(x.shape[0], )](x, y, x.stride(0), y.stride(0), N=x.shape[1])
        return y

# case: kl_div_batchmean
# task: torch.rand(7, 20) + 0.1, torch.rand(7, 20) + 0.1 => lambda self, p, t: F.kl_div(torch.log(p), t, reduction="batchmean")
@triton.jit
def kl_kernel(p_ptr, t_ptr, out_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < n
    p = tl.load(p_ptr + o, mask=m, other=1.0)
    t = tl.load(t_ptr + o, mask=m, other=1.0)
    tl.atomic_add(out_ptr, tl.sum(tl.where(m, t * (tl.log(t) - tl.log(p)), 0.0)))


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        total = torch.zeros((1,), device=predictions.device, dtype=torch.float32)
        n = predictions.numel()
        kl_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](predictions, targets, total, n, BLOCK=64)
        loss = total / predictions.shape[0]
        return loss.squeeze()

# case: strided_output_write_nhwc
# task: torch.randn(2, 3, 4, 4) => lambda self, x: (x * 2).contiguous(memory_format=torch.channels_last)
@triton.jit
def nchw_scale_any(x_ptr, y_ptr, C, H, W, xs0, xs1, xs2, xs3, ys0, ys1, ys2, ys3, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    w = i % W
    h = (i // W) % H
    c = (i // (W * H)) % C
    b = i // (W * H * C)
    v = tl.load(x_ptr + b * xs0 + c * xs1 + h * xs2 + w * xs3, mask=i < n)
    tl.store(y_ptr + b * ys0 + c * ys1 + h * ys2 + w * ys3, v * 2, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x, memory_format=torch.channels_last)
        B, C, H, W = x.shape
        nchw_scale_any[(triton.cdiv(x.numel(), 32),)](x, y, C, H, W, *x.stride(), *y.stride(), x.numel(), BLOCK=32)
        return y

# case: multiple_inheritance_mixin
# task: torch.randn(33) => lambda self, x: torch.tanh(x)
class LaunchMixin:
    BLOCK = 32

    def blocks(self, n):
        return (triton.cdiv(n, self.BLOCK),)


@triton.jit
def tanh_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n, other=0.0)
    e = tl.exp(-2.0 * tl.abs(x))
    t = (1.0 - e) / (1.0 + e)
    tl.store(y_ptr + o, tl.where(x < 0, -t, t), mask=o < n)


class ModelNew(LaunchMixin, nn.Module):
    def __init__(self):
        nn.Module.__init__(self)

    def forward(self, x):
        y = torch.empty_like(x)
        tanh_kernel[self.blocks(x.numel())](x, y, x.numel(), BLOCK=self.BLOCK)
        return y

# case: conditional_cast_of_result
# task: torch.randn(64).half() => lambda self, x: (x.float() * 0.3).half()
@triton.jit
def k03(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + o, tl.load(x_ptr + o, mask=o < n).to(tl.float32) * 0.3, mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        orig = x.dtype
        y = torch.empty(x.shape, device=x.device, dtype=torch.float32)
        k03[(1,)](x, y, x.numel(), BLOCK=64)
        if orig == torch.float16:
            y = y.half()
        elif orig == torch.bfloat16:
            y = y.to(torch.bfloat16)
        return y

# case: softmax_three_kernels_workspace
# task: torch.randn(5, 40) => lambda self, x: torch.softmax(x, 1)
@triton.jit
def rowmax(x, m, N, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    tl.store(m + r, tl.max(tl.load(x + r * N + c, mask=c < N, other=float("-inf")), 0))


@triton.jit
def expsub(x, m, e, N, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    tl.store(e + r * N + c, tl.exp(tl.load(x + r * N + c, mask=c < N) - tl.load(m + r)), mask=c < N)


@triton.jit
def divsum(e, N, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    v = tl.load(e + r * N + c, mask=c < N, other=0.0)
    tl.store(e + r * N + c, v / tl.sum(v, 0), mask=c < N)


class ModelNew(nn.Module):
    def forward(self, x):
        R, N = x.shape
        m = x.new_empty(R)
        e = x.new_empty(R, N)
        B = triton.next_power_of_2(N)
        for kernel, args in [(rowmax, (x, m, N)), (expsub, (x, m, e, N)), (divsum, (e, N))]:
            kernel[(R,)](*args, B=B)
        return e
