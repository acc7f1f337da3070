# case: tutorial_grouped_matmul_autotune_activation
# task: torch.randn(48, 32), torch.randn(32, 40) => lambda self, a, b: F.leaky_relu(a @ b)
def get_configs():
    return [
        triton.Config({"BLOCK_SIZE_M": bm, "BLOCK_SIZE_N": 16, "BLOCK_SIZE_K": 16, "GROUP_SIZE_M": 8},
                      num_stages=s, num_warps=4)
        for bm in (16, 32) for s in (2, 3)
    ]


@triton.autotune(configs=get_configs(), key=["M", "N", "K"])
@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
                  BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr, BLOCK_SIZE_K: tl.constexpr,
                  GROUP_SIZE_M: tl.constexpr, ACTIVATION: tl.constexpr):
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_SIZE_M)
    num_pid_n = tl.cdiv(N, BLOCK_SIZE_N)
    num_pid_in_group = GROUP_SIZE_M * num_pid_n
    group_id = pid // num_pid_in_group
    first_pid_m = group_id * GROUP_SIZE_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_SIZE_M)
    pid_m = first_pid_m + ((pid % num_pid_in_group) % group_size_m)
    pid_n = (pid % num_pid_in_group) // group_size_m
    tl.assume(pid_m >= 0)
    offs_am = (pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)) % M
    offs_bn = (pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)) % N
    offs_k = tl.arange(0, BLOCK_SIZE_K)
    a_ptrs = a_ptr + (offs_am[:, None] * stride_am + offs_k[None, :] * stride_ak)
    b_ptrs = b_ptr + (offs_k[:, None] * stride_bk + offs_bn[None, :] * stride_bn)
    accumulator = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_SIZE_K)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_SIZE_K, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_SIZE_K, other=0.0)
        accumulator = tl.dot(a, b, accumulator)
        a_ptrs += BLOCK_SIZE_K * stride_ak
        b_ptrs += BLOCK_SIZE_K * stride_bk
    if ACTIVATION == "leaky_relu":
        accumulator = leaky_relu(accumulator)
    c = accumulator.to(tl.float32)
    offs_cm = pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    offs_cn = pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    c_ptrs = c_ptr + stride_cm * offs_cm[:, None] + stride_cn * offs_cn[None, :]
    tl.store(c_ptrs, c, mask=(offs_cm[:, None] < M) & (offs_cn[None, :] < N))


@triton.jit
def leaky_relu(x):
    return tl.where(x >= 0, x, 0.01 * x)


def matmul(a, b, activation=""):
    assert a.shape[1] == b.shape[0], "Incompatible dimensions"
    assert a.is_contiguous(), "Matrix A must be contiguous"
    M, K = a.shape
    K, N = b.shape
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    grid = lambda META: (triton.cdiv(M, META["BLOCK_SIZE_M"]) * triton.cdiv(N, META["BLOCK_SIZE_N"]),)
    matmul_kernel[grid](a, b, c, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0),
                        c.stride(1), ACTIVATION=activation)
    return c


class ModelNew(nn.Module):
    def forward(self, a, b):
        return matmul(a, b, activation="leaky_relu")

# case: tutorial_fused_softmax_warmup
DEVICE = triton.runtime.driver.active.get_active_torch_device()
properties = triton.runtime.driver.active.utils.get_device_properties(DEVICE.index)
NUM_SM = properties["multiprocessor_count"]
NUM_REGS = properties["max_num_regs"]


@triton.jit
def softmax_kernel(output_ptr, input_ptr, input_row_stride, output_row_stride, n_rows, n_cols,
                   BLOCK_SIZE: tl.constexpr, num_stages: tl.constexpr):
    row_start = tl.program_id(0)
    row_step = tl.num_programs(0)
    for row_idx in tl.range(row_start, n_rows, row_step, num_stages=num_stages):
        row_start_ptr = input_ptr + row_idx * input_row_stride
        col_offsets = tl.arange(0, BLOCK_SIZE)
        mask = col_offsets < n_cols
        row = tl.load(row_start_ptr + col_offsets, mask=mask, other=-float("inf"))
        row_minus_max = row - tl.max(row, axis=0)
        numerator = tl.exp(row_minus_max)
        softmax_output = numerator / tl.sum(numerator, axis=0)
        tl.store(output_ptr + row_idx * output_row_stride + col_offsets, softmax_output, mask=mask)


kernels = {}


def softmax(x):
    n_rows, n_cols = x.shape
    BLOCK_SIZE = triton.next_power_of_2(n_cols)
    y = torch.empty_like(x)
    kernel, num_programs = kernels.get(BLOCK_SIZE, (None, 0))
    if kernel is None:
        kernel = softmax_kernel.warmup(y, x, x.stride(0), y.stride(0), n_rows, n_cols, BLOCK_SIZE=BLOCK_SIZE,
                                       num_stages=2, num_warps=8, grid=(1,))
        kernel._init_handles()
        occupancy = NUM_REGS // (kernel.n_regs * 32 * 8)
        num_programs = NUM_SM * occupancy
        kernels[BLOCK_SIZE] = (kernel, num_programs)
    num_programs = min(num_programs, n_rows)
    kernel[(num_programs, 1, 1)](y, x, x.stride(0), y.stride(0), n_rows, n_cols, BLOCK_SIZE, 2)
    return y


class ModelNew(nn.Module):
    def forward(self, x):
        return softmax(x)

# case: grouped_gemm_device_pointers
@triton.jit
def grouped(ptrs_a, ptrs_c, sizes, group_size, BLOCK: tl.constexpr):
    for g in range(group_size):
        n = tl.load(sizes + g)
        a = tl.load(ptrs_a + g).to(tl.pointer_type(tl.float32))
        c = tl.load(ptrs_c + g).to(tl.pointer_type(tl.float32))
        o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(c + o, tl.exp(tl.load(a + o, mask=o < n)), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x, y):
        addrs_a, addrs_c, sizes, outs = [], [], [], []
        for t in (x, y):
            c = torch.empty_like(t)
            outs.append(c)
            addrs_a.append(t.data_ptr())
            addrs_c.append(c.data_ptr())
            sizes.append(t.numel())
        d_a = torch.tensor(addrs_a, device=x.device)
        d_c = torch.tensor(addrs_c, device=x.device)
        d_n = torch.tensor(sizes, dtype=torch.int32, device=x.device)
        grouped[(triton.cdiv(max(sizes), 256),)](d_a, d_c, d_n, len(sizes), BLOCK=256)
        return tuple(outs)

# case: cpu_fallback_is_dead_code
@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + o, tl.maximum(tl.load(x_ptr + o, mask=o < n), 0.0), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        if not x.is_cuda:
            return torch.relu(x)
        y = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), BLOCK=128)
        return y

# case: numpy_on_shapes
# task: torch.randn(4, 5, 6) => lambda self, x: torch.cos(x)
import math

import numpy as np


@triton.jit
def cos_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + o, tl.cos(tl.load(x_ptr + o, mask=o < n)), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        n = int(np.prod(x.shape))
        assert n == math.prod(x.shape)
        y = torch.empty_like(x)
        cos_kernel[(math.ceil(n / 64),)](x, y, n, BLOCK=64)
        return y

# case: reduction_modes
# task: torch.randn(30), torch.randn(30) => lambda self, a, b: F.l1_loss(a, b)
@triton.jit
def l1_elem(a_ptr, b_ptr, o_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + o, tl.abs(tl.load(a_ptr + o, mask=o < n) - tl.load(b_ptr + o, mask=o < n)), mask=o < n)


@triton.jit
def l1_sum(a_ptr, b_ptr, o_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = tl.abs(tl.load(a_ptr + o, mask=o < n, other=0.0) - tl.load(b_ptr + o, mask=o < n, other=0.0))
    tl.atomic_add(o_ptr, tl.sum(d, axis=0))


class ModelNew(nn.Module):
    def __init__(self, reduction: str = "mean"):
        super().__init__()
        self.reduction = reduction

    def forward(self, a, b):
        n = a.numel()
        grid = (triton.cdiv(n, 64),)
        if self.reduction == "none":
            out = torch.empty_like(a)
            l1_elem[grid](a, b, out, n, BLOCK=64)
            return out
        total = torch.zeros(1, device=a.device, dtype=torch.float32)
        l1_sum[grid](a, b, total, n, BLOCK=64)
        if self.reduction == "mean":
            total = total / n
        elif self.reduction != "sum":
            raise ValueError(f"bad reduction {self.reduction}")
        return total.squeeze(0)

# case: frobenius_scalar_sqrt_then_second_kernel
# task: torch.randn(20, 20) => lambda self, x: x / torch.norm(x, p="fro")
@triton.jit
def sumsq(x_ptr, s_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n, other=0.0)
    tl.atomic_add(s_ptr, tl.sum(x * x))


@triton.jit
def div_scalar(x_ptr, s_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    s = tl.load(s_ptr)
    tl.store(y_ptr + o, tl.load(x_ptr + o, mask=o < n) / s, mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        n = x.numel()
        s = torch.zeros(1, device=x.device, dtype=torch.float32)
        y = torch.empty_like(x)
        sumsq[(triton.cdiv(n, 128),)](x, s, n, BLOCK=128)
        norm = torch.sqrt(s)
        div_scalar[(triton.cdiv(n, 128),)](x, norm, y, n, BLOCK=128)
        return y

# case: one_minus_mean_cosine
# task: torch.randn(10, 16), torch.randn(10, 16) => lambda self, a, b: torch.mean(1 - F.cosine_similarity(a, b, dim=1))
@triton.jit
def cos_rows(a_ptr, b_ptr, out_ptr, D, eps, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    a = tl.load(a_ptr + r * D + c, mask=c < D, other=0.0)
    b = tl.load(b_ptr + r * D + c, mask=c < D, other=0.0)
    na = tl.sqrt(tl.sum(a * a))
    nb = tl.sqrt(tl.sum(b * b))
    tl.atomic_add(out_ptr, tl.sum(a * b) / tl.maximum(na * nb, eps))


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        acc = torch.zeros((), device=predictions.device)
        rows, d = predictions.shape
        cos_rows[(rows,)](predictions, targets, acc, d, 1e-8, BLOCK=triton.next_power_of_2(d))
        return 1.0 - acc / rows

# case: kernel_factory_closure
# task: torch.randn(70) => lambda self, x: torch.floor(x)
def make_kernel():
    @triton.jit
    def floor_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
        o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y_ptr + o, tl.floor(tl.load(x_ptr + o, mask=o < n)), mask=o < n)

    return floor_kernel


_kernel = make_kernel()


class ModelNew(nn.Module):
    kernel = _kernel
    block = 32

    def forward(self, x):
        y = torch.empty_like(x)
        self.kernel[(triton.cdiv(x.numel(), self.block),)](x, y, x.numel(), BLOCK=self.block)
        return y

# case: partial_of_launched_kernel
# task: torch.randn(90) => lambda self, x: torch.exp2(x)
from functools import partial


@triton.jit
def exp2_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + o, tl.exp2(tl.load(x_ptr + o, mask=o < n)), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        run = partial(exp2_kernel[(triton.cdiv(x.numel(), 64),)], BLOCK=64, num_warps=2)
        run(x, y, x.numel())
        return y

# case: batch_loop_of_slices
# task: torch.randn(3, 4, 5), torch.randn(3, 4, 5) => lambda self, a, b: a - b
@triton.jit
def sub_kernel(a, b, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(a + i, mask=i < n) - tl.load(b + i, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        for i in range(a.size(0)):
            sub_kernel[(1,)](a[i], b[i], out[i], a[i].numel(), B=32)
        return out

# case: atomic_max_full_minus_inf
# task: torch.randn(500) => lambda self, x: x.amax()
@triton.jit
def amax_kernel(x_ptr, m_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_max(m_ptr, tl.max(tl.load(x_ptr + o, mask=o < n, other=float("-inf")), axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        m = torch.full((1,), float("-inf"), device=x.device)
        amax_kernel[(triton.cdiv(x.numel(), 128),)](x, m, x.numel(), BLOCK=128)
        return m.view(())

# case: torch_flags_and_seeds_set
# task: torch.randn(40) => lambda self, x: x * 0.5
import warnings

warnings.filterwarnings("ignore")
torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True
torch.manual_seed(0)


@triton.jit
def half_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + o, tl.load(x_ptr + o, mask=o < n) * 0.5, mask=o < n)


class ModelNew(nn.Module):
    @torch.no_grad()
    def forward(self, x):
        y = torch.empty_like(x)
        half_kernel[(triton.cdiv(x.numel(), 32),)](x, y, x.numel(), BLOCK=32)
        return y

# case: welford_reduce_tuple
# task: torch.randn(8, 32) => lambda self, x: x.var(dim=1, unbiased=False)
@triton.jit
def welford(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    n = n_a + n_b
    d = mean_b - mean_a
    return mean_a + d * (n_b / n), m2_a + m2_b + d * d * n_a * (n_b / n), n


@triton.jit
def var_kernel(x_ptr, y_ptr, N: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, N)
    x = tl.load(x_ptr + r * N + c)
    mean, m2, n = tl.reduce((x, tl.zeros([N], tl.float32), tl.full([N], 1.0, tl.float32)), 0, welford)
    tl.store(y_ptr + r, m2 / n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
        var_kernel[(x.shape[0],)](x, out, N=x.shape[1])
        return out

# case: triton_op_library
# task: torch.randn(40) => lambda self, x: x + 2
from torch.library import triton_op, wrap_triton


@triton.jit
def add2(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + o, tl.load(x_ptr + o, mask=o < n) + 2, mask=o < n)


@triton_op("mylib::add2", mutates_args={})
def add2_op(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    wrap_triton(add2)[(triton.cdiv(x.numel(), 32),)](x, y, x.numel(), BLOCK=32)
    return y


class ModelNew(nn.Module):
    def forward(self, x):
        return add2_op(x)

# case: custom_op_with_kernel_and_fake
# task: torch.randn(40) => lambda self, x: x * 3
@triton.jit
def mul3(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + o, tl.load(x_ptr + o, mask=o < n) * 3, mask=o < n)


@torch.library.custom_op("mylib::mul3", mutates_args=())
def mul3_op(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    mul3[(triton.cdiv(x.numel(), 32),)](x, y, x.numel(), BLOCK=32)
    return y


@mul3_op.register_fake
def _(x):
    return torch.empty_like(x)


class ModelNew(nn.Module):
    def forward(self, x):
        return mul3_op(x)

# case: gru_like_time_loop
# task: torch.randn(5, 3, 8) => lambda self, x: torch.cumsum(x, 0).tanh() if False else torch.stack([x[: i + 1].sum(0) for i in range(5)])
@triton.jit
def step(x_ptr, h_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    h = tl.load(h_ptr + i, mask=i < n) + tl.load(x_ptr + i, mask=i < n)
    tl.store(h_ptr + i, h, mask=i < n)
    tl.store(o_ptr + i, h, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        T, B, D = x.shape
        h = torch.zeros(B, D, device=x.device, dtype=x.dtype)
        out = torch.empty_like(x)
        for t in range(T):
            step[(1,)](x[t], h, out[t], B * D, BLOCK=32)
        return out

# case: enum_activation_constexpr
# task: torch.randn(64) => lambda self, x: torch.sigmoid(x)
import enum


class Act(enum.IntEnum):
    RELU = 0
    SIGMOID = 1


@triton.jit
def act_kernel(x_ptr, y_ptr, n, ACT: tl.constexpr, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    if ACT == 0:
        y = tl.maximum(x, 0.0)
    elif ACT == 1:
        y = tl.sigmoid(x)
    else:
        tl.static_assert(False, "no such activation")
    tl.store(y_ptr + o, y, mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        act_kernel[(triton.cdiv(x.numel(), 32),)](x, y, x.numel(), ACT=int(Act.SIGMOID), BLOCK=32)
        return y

# case: base_class_template_method
# task: torch.randn(64) => lambda self, x: torch.relu(-x)
class ElementwiseBase(nn.Module):
    BLOCK = 32
    kernel = None

    def forward(self, x):
        out = self.allocate(x)
        self.launch(x, out)
        return out

    def allocate(self, x):
        return torch.empty_like(x)

    def launch(self, x, out):
        raise NotImplementedError


@triton.jit
def neg_relu(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + o, tl.maximum(-tl.load(x_ptr + o, mask=o < n), 0.0), mask=o < n)


class ModelNew(ElementwiseBase):
    def launch(self, x, out):
        n = x.numel()
        neg_relu[(triton.cdiv(n, self.BLOCK),)](x, out, n, BLOCK=self.BLOCK)

# case: try_bigger_block_else_smaller
# task: torch.randn(64) => lambda self, x: x / 4
@triton.jit
def quarter(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + o, tl.load(x_ptr + o, mask=o < n) / 4, mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()
        try:
            quarter[(triton.cdiv(n, 64),)](x, y, n, BLOCK=64, num_warps=8)
        except triton.runtime.errors.OutOfResources:
            quarter[(triton.cdiv(n, 16),)](x, y, n, BLOCK=16, num_warps=1)
        return y

# case: broadcast_and_promote_helpers
# task: torch.randn(4, 1), torch.randn(1, 5) => lambda self, a, b: a * b
@triton.jit
def bmul(a_ptr, b_ptr, o_ptr, N, n, sa0, sa1, sb0, sb1, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    r = o // N
    c = o % N
    v = tl.load(a_ptr + r * sa0 + c * sa1, mask=o < n) * tl.load(b_ptr + r * sb0 + c * sb1, mask=o < n)
    tl.store(o_ptr + o, v, mask=o < n)


class ModelNew(nn.Module):
    def forward(self, a, b):
        shape = torch.broadcast_shapes(a.shape, b.shape)
        a, b = torch.broadcast_tensors(a, b)
        out = torch.empty(shape, dtype=torch.promote_types(a.dtype, b.dtype), device=a.device)
        bmul[(triton.cdiv(out.numel(), 16),)](a, b, out, shape[-1], out.numel(), *a.stride(), *b.stride(), BLOCK=16)
        return out

# case: chunked_views_swiglu
# task: torch.randn(6, 32) => lambda self, x: F.silu(x[:, :16]) * x[:, 16:]
@triton.jit
def swiglu(g_ptr, u_ptr, y_ptr, sg, su, sy, D: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, D)
    g = tl.load(g_ptr + r * sg + c)
    u = tl.load(u_ptr + r * su + c)
    tl.store(y_ptr + r * sy + c, g * tl.sigmoid(g) * u)


class ModelNew(nn.Module):
    def forward(self, x):
        gate, up = x.chunk(2, dim=-1)
        y = torch.empty(gate.shape, device=x.device, dtype=x.dtype)
        swiglu[(x.shape[0],)](gate, up, y, gate.stride(0), up.stride(0), y.stride(0), D=gate.shape[1])
        return y

# case: lookup_table_tensor
# task: torch.randn(3, 16) => lambda self, x: x * torch.tensor([1.0, 2.0, 4.0], device=x.device).view(3, 1)
@triton.jit
def row_scale(x_ptr, t_ptr, y_ptr, D: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, D)
    tl.store(y_ptr + r * D + c, tl.load(x_ptr + r * D + c) * tl.load(t_ptr + r))


class ModelNew(nn.Module):
    def forward(self, x):
        table = torch.tensor([1.0, 2.0, 4.0], device=x.device)
        y = torch.empty_like(x)
        row_scale[(3,)](x, table, y, D=16)
        return y

# case: rotary_cache_in_init
# task: torch.randn(4, 8) => lambda self, x: x * torch.cos(torch.arange(4., device=x.device)).view(4, 1)
@triton.jit
def rot(x_ptr, c_ptr, y_ptr, D: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, D)
    tl.store(y_ptr + r * D + c, tl.load(x_ptr + r * D + c) * tl.load(c_ptr + r))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        t = torch.arange(4, dtype=torch.float32)
        self.register_buffer("cos_cached", torch.cos(t))

    def forward(self, x):
        y = torch.empty_like(x)
        rot[(x.shape[0],)](x, self.cos_cached, y, D=8)
        return y

# case: reset_parameters_and_init
# task: torch.randn(16, 16) => lambda self, x: x * self.w
# layers: self.w = nn.Parameter(torch.ones(16))
import math


@triton.jit
def colscale(x_ptr, w_ptr, y_ptr, D: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, D)
    tl.store(y_ptr + r * D + c, tl.load(x_ptr + r * D + c) * tl.load(w_ptr + c))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.empty(16))
        self.reset_parameters()

    def reset_parameters(self):
        bound = 1 / math.sqrt(16)
        nn.init.uniform_(self.w, -bound, bound)
        nn.init.ones_(self.w)

    def forward(self, x):
        y = torch.empty_like(x)
        colscale[(x.shape[0],)](x, self.w, y, D=16)
        return y

# case: bn_eval_folded_in_kernel
# task: torch.randn(2, 3, 4, 4) => lambda self, x: self.bn.eval()(x)
# layers: self.bn = nn.BatchNorm2d(3)
@triton.jit
def bn_eval(x_ptr, m_ptr, v_ptr, w_ptr, b_ptr, y_ptr, C, HW, n, eps, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    k = o < n
    c = (o // HW) % C
    scale = tl.load(w_ptr + c, mask=k) / tl.sqrt(tl.load(v_ptr + c, mask=k, other=1.0) + eps)
    y = (tl.load(x_ptr + o, mask=k) - tl.load(m_ptr + c, mask=k)) * scale + tl.load(b_ptr + c, mask=k)
    tl.store(y_ptr + o, y, mask=k)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm2d(3)

    def forward(self, x):
        bn = self.bn
        y = torch.empty_like(x)
        N, C, H, W = x.shape
        bn_eval[(triton.cdiv(x.numel(), 32),)](x, bn.running_mean, bn.running_var, bn.weight.data, bn.bias.data, y,
                                               C, H * W, x.numel(), bn.eps, BLOCK=32)
        return y

# case: star_inputs_forward
# task: torch.randn(20), torch.randn(20) => lambda self, a, b: a + b
@triton.jit
def k_add(a, b, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o + i, tl.load(a + i, mask=m) + tl.load(b + i, mask=m), mask=m)


class ModelNew(nn.Module):
    def __init__(self, *args, **kwargs):
        super().__init__()
        self.args = args

    def forward(self, *inputs, **kwargs):
        a, b = inputs
        out = torch.empty_like(a)
        k_add[(1,)](a, b, out, out.numel(), B=32)
        return out

# case: optional_mask_argument
# task: torch.randn(8, 16) => lambda self, x: torch.softmax(x, -1)
from typing import Optional


@triton.jit
def masked_softmax(x_ptr, m_ptr, y_ptr, N, HAS_MASK: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + r * N + c, mask=c < N, other=float("-inf"))
    if HAS_MASK:
        keep = tl.load(m_ptr + r * N + c, mask=c < N, other=0)
        x = tl.where(keep != 0, x, float("-inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + r * N + c, e / tl.sum(e, 0), mask=c < N)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, mask: Optional[torch.Tensor] = None) -> torch.Tensor:
        y = torch.empty_like(x)
        m = mask.to(torch.int8) if mask is not None else x
        masked_softmax[(x.shape[0],)](x, m, y, x.shape[1], HAS_MASK=mask is not None, BLOCK=16)
        return y

# case: from_import_language_names
# task: torch.randn(40) => lambda self, x: torch.sqrt(x.abs())
from triton.language import arange, constexpr, load, program_id, store
import triton.language.math as tm


@triton.jit
def sqrt_abs(x_ptr, y_ptr, n, BLOCK: constexpr):
    o = program_id(0) * BLOCK + arange(0, BLOCK)
    v = load(x_ptr + o, mask=o < n, other=0.0)
    store(y_ptr + o, tm.sqrt(tl.abs(v)), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        sqrt_abs[(triton.cdiv(x.numel(), 32),)](x, y, x.numel(), BLOCK=32)
        return y

# case: module_constexpr_globals
# task: torch.randn(40) => lambda self, x: x * 0.25
BLOCK_GLOBAL: tl.constexpr = tl.constexpr(16)
SCALE = tl.constexpr(0.25)


@triton.jit
def global_scale(x_ptr, y_ptr, n):
    o = tl.program_id(0) * BLOCK_GLOBAL + tl.arange(0, BLOCK_GLOBAL)
    tl.store(y_ptr + o, tl.load(x_ptr + o, mask=o < n) * SCALE, mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        global_scale[(triton.cdiv(x.numel(), 16),)](x, y, x.numel())
        return y

# case: layernorm_backward_lock_atomics
@triton.jit
def bwd_partial(dy_ptr, dw_ptr, lock_ptr, stride, N, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    dy = tl.load(dy_ptr + row * stride + cols, mask=mask, other=0).to(tl.float32)
    lock_id = row % GROUP
    lock_ptr += lock_id
    count_ptr = lock_ptr + GROUP
    dw_ptr = dw_ptr + lock_id * N + cols
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    count = tl.load(count_ptr)
    if count == 0:
        tl.atomic_xchg(count_ptr, 1)
    else:
        dy += tl.load(dw_ptr, mask=mask)
    tl.store(dw_ptr, dy, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def bwd_final(part_ptr, out_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    cols = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for i in range(0, M, BM):
        rows = i + tl.arange(0, BM)
        mask = (rows[:, None] < M) & (cols[None, :] < N)
        acc += tl.load(part_ptr + rows[:, None] * N + cols[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + cols, tl.sum(acc, axis=0), mask=cols < N)


class ModelNew(nn.Module):
    GROUP = 64

    def forward(self, dy):
        M, N = dy.shape
        locks = torch.zeros(2 * self.GROUP, dtype=torch.int32, device=dy.device)
        partial = torch.zeros((self.GROUP, N), dtype=torch.float32, device=dy.device)
        bwd_partial[(M,)](dy, partial, locks, dy.stride(0), N, GROUP=self.GROUP, BLOCK=triton.next_power_of_2(N))
        out = torch.empty((N,), dtype=dy.dtype, device=dy.device)
        bwd_final[(triton.cdiv(N, 128),)](partial, out, min(self.GROUP, M), N, BM=32, BN=128)
        return out

# case: split_join_complex_multiply
# task: torch.randn(32) => lambda self, x: torch.stack([-x[1::2], x[0::2]], -1).reshape(-1)
@triton.jit
def rotate_pairs(x_ptr, y_ptr, N: tl.constexpr):
    o = tl.arange(0, N)
    x = tl.load(x_ptr + o)
    a, b = tl.split(tl.reshape(x, (N // 2, 2)))
    tl.store(y_ptr + o, tl.reshape(tl.join(-b, a), (N,)))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        rotate_pairs[(1,)](x, y, N=x.numel())
        return y

# case: inline_asm_and_hints
@triton.jit
def rcp_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.max_contiguous(tl.multiple_of(tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), BLOCK), BLOCK)
    x = tl.load(x_ptr + o, mask=o < n, other=1.0, cache_modifier=".cg", eviction_policy="evict_first")
    r = tl.inline_asm_elementwise("rcp.approx.f32 $0, $1;", "=r,r", [x], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(y_ptr + o, r, mask=o < n, cache_modifier=".cs")


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        rcp_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y

# case: persistent_matmul_flatten
def _num_sms():
    return torch.cuda.get_device_properties("cuda").multi_processor_count


@triton.jit
def _pid(tile_id, num_pid_in_group, num_pid_m, GROUP_M: tl.constexpr):
    group_id = tile_id // num_pid_in_group
    first = group_id * GROUP_M
    size = min(num_pid_m - first, GROUP_M)
    return first + (tile_id % size), (tile_id % num_pid_in_group) // size


@triton.jit
def persistent_mm(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                  GROUP_M: tl.constexpr, NUM_SMS: tl.constexpr):
    start = tl.program_id(0)
    pm = tl.cdiv(M, BM)
    pn = tl.cdiv(N, BN)
    for tile in tl.range(start, pm * pn, NUM_SMS, flatten=True, warp_specialize=False):
        m, n = _pid(tile, GROUP_M * pn, pm, GROUP_M)
        rm = m * BM + tl.arange(0, BM)
        rn = n * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for ki in range(tl.cdiv(K, BK)):
            rk = ki * BK + tl.arange(0, BK)
            a = tl.load(a_ptr + rm[:, None] * K + rk[None, :], mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0)
            b = tl.load(b_ptr + rk[:, None] * N + rn[None, :], mask=(rk[:, None] < K) & (rn[None, :] < N), other=0.0)
            acc = tl.dot(a, b, acc)
        tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc.to(tl.float16), mask=(rm[:, None] < M) & (rn[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.num_sms = _num_sms() if torch.cuda.is_available() else 1

    def forward(self, a, b):
        M, K = a.shape
        N = b.shape[1]
        c = torch.empty((M, N), device=a.device, dtype=torch.float16)
        grid = lambda META: (min(self.num_sms, triton.cdiv(M, META["BM"]) * triton.cdiv(N, META["BN"])),)
        persistent_mm[grid](a.half(), b.half(), c, M, N, K, BM=64, BN=64, BK=32, GROUP_M=8, NUM_SMS=self.num_sms)
        return c.to(a.dtype)

# case: fp8_cast_inputs
@triton.jit
def mm8(a_ptr, b_ptr, c_ptr, N: tl.constexpr):
    m = tl.arange(0, N)
    a = tl.load(a_ptr + m[:, None] * N + m[None, :])
    b = tl.load(b_ptr + m[:, None] * N + m[None, :])
    tl.store(c_ptr + m[:, None] * N + m[None, :], tl.dot(a, b))


class ModelNew(nn.Module):
    def forward(self, a, b):
        a8 = a.to(torch.float8_e4m3fn)
        b8 = b.to(torch.float8_e4m3fn)
        c = torch.empty(a.shape, dtype=torch.float32, device=a.device)
        mm8[(1,)](a8, b8, c, N=32)
        return c

# case: int8_dot_dequant
# task: torch.randint(-8, 8, (16, 32)).to(torch.int8), torch.randint(-8, 8, (32, 16)).to(torch.int8) => lambda self, a, b: (a.float() @ b.float()) * 0.1
@triton.jit
def imm(a_ptr, b_ptr, c_ptr, s, K: tl.constexpr):
    m = tl.arange(0, 16)
    k = tl.arange(0, K)
    a = tl.load(a_ptr + m[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * 16 + m[None, :])
    acc = tl.dot(a, b, out_dtype=tl.int32)
    tl.store(c_ptr + m[:, None] * 16 + m[None, :], acc.to(tl.float32) * s)


class ModelNew(nn.Module):
    def forward(self, a, b):
        c = torch.empty(16, 16, device=a.device, dtype=torch.float32)
        imm[(1,)](a, b, c, 0.1, K=32)
        return c

# case: autograd_setup_context_and_amp
# task: torch.randn(64) => lambda self, x: torch.pow(x, 3)
@triton.jit
def cube(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    tl.store(y_ptr + o, x * x * x, mask=o < n)


class Cube(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda")
    def forward(ctx, x, block):
        y = torch.empty_like(x)
        cube[(triton.cdiv(x.numel(), block),)](x, y, x.numel(), BLOCK=block)
        ctx.save_for_backward(x)
        ctx.block = block
        return y

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * 3 * x * x, None


class ModelNew(nn.Module):
    def forward(self, x):
        return Cube.apply(x, 32)

# case: nvtx_and_logging_around
# task: torch.randn(64) => lambda self, x: torch.ceil(x)
import contextlib
import logging

logger = logging.getLogger(__name__)


@triton.jit
def ceil_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + o, tl.ceil(tl.load(x_ptr + o, mask=o < n)), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        logger.debug("shape %s", tuple(x.shape))
        y = torch.empty_like(x)
        with contextlib.nullcontext():
            ceil_kernel[(triton.cdiv(x.numel(), 32),)](x, y, x.numel(), BLOCK=32)
        return y

# case: namedtuple_state_between_kernels
# task: torch.randn(6, 16) => lambda self, x: (x - x.mean(1, keepdim=True))
from typing import NamedTuple


class Stats(NamedTuple):
    mean: torch.Tensor
    rows: int


@triton.jit
def row_mean(x_ptr, m_ptr, N: tl.constexpr):
    r = tl.program_id(0)
    tl.store(m_ptr + r, tl.sum(tl.load(x_ptr + r * N + tl.arange(0, N)), 0) / N)


@triton.jit
def row_center(x_ptr, m_ptr, y_ptr, N: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, N)
    tl.store(y_ptr + r * N + c, tl.load(x_ptr + r * N + c) - tl.load(m_ptr + r))


class ModelNew(nn.Module):
    def _stats(self, x) -> Stats:
        mean = torch.empty(x.shape[0], device=x.device)
        row_mean[(x.shape[0],)](x, mean, N=16)
        return Stats(mean=mean, rows=x.shape[0])

    def forward(self, x):
        st = self._stats(x)
        y = torch.empty_like(x)
        row_center[(st.rows,)](x, st.mean, y, N=16)
        return y

# case: list_of_output_tensors
# task: torch.randn(12) => lambda self, x: [x * 1.5, x * 2.5]
@triton.jit
def two_scales(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    tl.store(y_ptr + o, x * 1.5, mask=o < n)
    tl.store(z_ptr + o, x * 2.5, mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        outs = [torch.empty_like(x) for _ in range(2)]
        two_scales[(1,)](x, *outs, x.numel(), BLOCK=16)
        return outs

# case: dict_of_kwargs_launch
# task: torch.randn(50) => lambda self, x: torch.relu(x - 1)
@triton.jit
def shift_relu(x_ptr, y_ptr, n, shift, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + o, tl.maximum(tl.load(x_ptr + o, mask=o < n) - shift, 0.0), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.zeros_like(x)
        meta = {"BLOCK": 32, "num_warps": 1}
        args = (x, y, x.numel())
        shift_relu[(triton.cdiv(x.numel(), meta["BLOCK"]),)](*args, shift=1.0, **meta)
        return y

# case: lstm_weights_used_by_kernel
@triton.jit
def small_linear(x_ptr, w_ptr, b_ptr, y_ptr, K: tl.constexpr):
    r = tl.program_id(0)
    n = tl.arange(0, K)
    k = tl.arange(0, K)
    x = tl.load(x_ptr + r * K + k)
    w = tl.load(w_ptr + n[:, None] * K + k[None, :])
    tl.store(y_ptr + r * K + n, tl.sum(w * x[None, :], axis=1) + tl.load(b_ptr + n))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 8)

    def forward(self, x):
        y = torch.empty(x.shape[0], 8, device=x.device)
        small_linear[(x.shape[0],)](x, self.lstm.weight_ih_l0, self.lstm.bias_ih_l0, y, K=8)
        return y

# case: transposed_weight_contiguous_in_forward
# task: torch.randn(16, 16) => lambda self, x: x @ self.fc.weight.t()
# layers: self.fc = nn.Linear(16, 16, bias=False)
# use: matmul
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(16, 16, bias=False)

    def forward(self, x):
        wt = self.fc.weight.detach().t().contiguous().to(x.device, x.dtype)
        M, K = x.shape
        N = wt.shape[1]
        c = torch.empty((M, N), dtype=x.dtype, device=x.device)
        matmul_kernel[triton.cdiv(M, 16), triton.cdiv(N, 16)](
            x, wt, c, M, N, K, *x.stride(), *wt.stride(), *c.stride(), BM=16, BN=16, BK=16)
        return c

# case: einops_free_attention_heads
# task: torch.randn(2, 8, 32) => lambda self, x: x.view(2, 8, 4, 8).transpose(1, 2).mul(2).transpose(1, 2).reshape(2, 8, 32)
@triton.jit
def dbl(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + o, tl.load(x_ptr + o, mask=o < n) * 2, mask=o < n)


class ModelNew(nn.Module):
    def __init__(self, heads=4):
        super().__init__()
        self.h = heads

    def split(self, x):
        b, t, d = x.shape
        return x.view(b, t, self.h, d // self.h).transpose(1, 2).contiguous()

    def merge(self, x):
        b, h, t, d = x.shape
        return x.transpose(1, 2).contiguous().view(b, t, h * d)

    def forward(self, x):
        h = self.split(x)
        y = torch.empty_like(h)
        dbl[(triton.cdiv(h.numel(), 64),)](h, y, h.numel(), BLOCK=64)
        return self.merge(y)

# case: lazily_transposed_weight
# task: torch.randn(8, 8) => lambda self, x: x * self.w.t()
# layers: self.w = nn.Parameter(torch.randn(8, 8))
@triton.jit
def mul_elem(a, b, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.load(a + i, mask=i < n) * tl.load(b + i, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(8, 8))
        self._wt = None

    def forward(self, x):
        if self._wt is None:
            self._wt = self.w.t().contiguous()
        y = torch.empty_like(x)
        mul_elem[(1,)](x, self._wt, y, x.numel(), B=64)
        return y

# case: docstring_full_of_torch
# task: torch.randn(32) => lambda self, x: x - 1
"""Replaces torch.matmul and F.softmax; see exec() notes.

>>> torch.relu(x) @ y   # not what this does
"""


@triton.jit
def minus_one(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """y = x - 1, where torch.sub(x, 1) would do"""
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # eval("...") is not called
    tl.store(y_ptr + o, tl.load(x_ptr + o, mask=o < n) - 1, mask=o < n)


def reference(x):
    return torch.sub(x, 1)


def check():
    x = torch.randn(32, device="cuda")
    assert torch.allclose(ModelNew()(x), reference(x))
    print("max error", (ModelNew()(x) - reference(x)).abs().max().item())


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        minus_one[(1,)](x, y, x.numel(), BLOCK=32)
        return y

# case: benchmark_function_unused_by_forward
# task: torch.randn(32) => lambda self, x: x + 5
@triton.jit
def add5(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + o, tl.load(x_ptr + o, mask=o < n) + 5, mask=o < n)


@triton.testing.perf_report(
    triton.testing.Benchmark(x_names=["N"], x_vals=[2**i for i in range(8, 12)], line_arg="provider",
                             line_vals=["triton", "torch"], line_names=["Triton", "Torch"], plot_name="add5", args={}))
def benchmark(N, provider):
    x = torch.rand(N, device="cuda")
    if provider == "torch":
        return triton.testing.do_bench(lambda: x + 5)
    return triton.testing.do_bench(lambda: ModelNew()(x))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        add5[(1,)](x, y, x.numel(), BLOCK=32)
        return y


def get_inputs():
    return [torch.randn(32).cuda()]


def get_init_inputs():
    return []

# case: autotune_reset_to_zero_and_prune
# task: torch.randn(300) => lambda self, x: x.sum()
def early_config_prune(configs, named_args, **kwargs):
    return [c for c in configs if c.kwargs["BLOCK"] <= 1024] or configs[:1]


@triton.autotune(
    configs=[triton.Config({"BLOCK": b}, num_warps=w) for b, w in [(64, 2), (128, 4)]],
    key=["n"],
    reset_to_zero=["out_ptr"],
    prune_configs_by={"early_config_prune": early_config_prune},
)
@triton.jit
def total(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + o, mask=o < n, other=0.0), 0), sem="relaxed")


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros([], device=x.device, dtype=torch.float32)
        total[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
        return out

# case: ternary_kernel_choice_and_assert_type
# task: torch.randn(33) => lambda self, x: torch.rsqrt(x * x + 1)
@triton.jit
def rs_small(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    tl.store(y_ptr + o, tl.rsqrt(x * x + 1), mask=o < n)


@triton.jit
def rs_big(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    tl.store(y_ptr + o, 1 / tl.sqrt(x * x + 1), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        assert isinstance(x, torch.Tensor) and x.dtype.is_floating_point
        torch._assert(x.dim() >= 1, "needs a dimension")
        n = x.numel()
        kernel, block = (rs_small, triton.next_power_of_2(n)) if n <= 1024 else (rs_big, 1024)
        y = torch.empty_like(x)
        kernel[(triton.cdiv(n, block),)](x, y, n, BLOCK=block)
        return y

# case: index_table_from_arange
# task: torch.randn(16) => lambda self, x: x.flip(0) * 1.0 + 1
@triton.jit
def permute_add(x_ptr, i_ptr, y_ptr, N: tl.constexpr):
    o = tl.arange(0, N)
    i = tl.load(i_ptr + o)
    tl.store(y_ptr + o, tl.load(x_ptr + i) + 1)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("index", torch.arange(15, -1, -1))

    def forward(self, x):
        y = torch.empty_like(x)
        permute_add[(1,)](x, self.index, y, N=16)
        return y

# case: output_from_helper_dataclass_method
# task: torch.randn(10, 10) => lambda self, x: torch.tril(x)
from dataclasses import dataclass, field


@triton.jit
def tril_kernel(x_ptr, y_ptr, M, N, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + r * N + c, mask=(c < N) & (c <= r), other=0.0)
    tl.store(y_ptr + r * N + c, tl.where(c <= r, x, 0.0), mask=c < N)


@dataclass
class Plan:
    rows: int
    cols: int
    block: int = field(default=16)

    @classmethod
    def for_tensor(cls, x):
        return cls(x.shape[0], x.shape[1])

    @property
    def grid(self):
        return (self.rows,)

    def run(self, x):
        y = torch.empty((self.rows, self.cols), dtype=x.dtype, device=x.device)
        tril_kernel[self.grid](x, y, self.rows, self.cols, BLOCK=self.block)
        return y


class ModelNew(nn.Module):
    def forward(self, x):
        return Plan.for_tensor(x).run(x)

# case: masked_fill_copy_semantics
# task: torch.randn(40) => lambda self, x: torch.where(x > 0, x, torch.full_like(x, -1.0))
@triton.jit
def where_kernel(x_ptr, y_ptr, fill, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    tl.store(y_ptr + o, tl.where(x > 0, x, fill), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x).fill_(0)
        where_kernel[(triton.cdiv(x.numel(), 16),)](x, y, -1.0, x.numel(), BLOCK=16)
        return y

# case: conv_transpose_gather_3d_grid
# task: torch.randn(1, 2, 4, 4) => lambda self, x: self.up(x)
# layers: self.up = nn.ConvTranspose2d(2, 3, 2, stride=2)
@triton.jit
def convt(x_ptr, w_ptr, b_ptr, y_ptr, CI, H, W, CO, OH, OW, S: tl.constexpr, K: tl.constexpr, BLOCK: tl.constexpr):
    nco = tl.program_id(0)
    n = nco // CO
    co = nco % CO
    oh = tl.program_id(1)
    ow = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32) + tl.load(b_ptr + co)
    ih = oh // S
    kh = oh % S
    iw = ow // S
    kw = ow % S
    for ci in range(CI):
        x = tl.load(x_ptr + ((n * CI + ci) * H + ih) * W + iw, mask=ow < OW, other=0.0)
        w = tl.load(w_ptr + ((ci * CO + co) * K + kh) * K + kw, mask=ow < OW, other=0.0)
        acc += x * w
    tl.store(y_ptr + (nco * OH + oh) * OW + ow, acc, mask=ow < OW)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.ConvTranspose2d(2, 3, 2, stride=2)

    def forward(self, x):
        (n, ci, h, w), co = x.shape, self.up.out_channels
        y = x.new_empty((n, co, 2 * h, 2 * w))
        convt[(n * co, 2 * h, triton.cdiv(2 * w, 8))](x, self.up.weight, self.up.bias, y, ci, h, w, co, 2 * h, 2 * w, S=2, K=2, BLOCK=8)
        return y

# case: argmin_rows_with_tuple_unpack
# task: torch.randn(7, 20) => lambda self, x: torch.argmin(x, dim=1)
@triton.jit
def argmin_kernel(x_ptr, i_ptr, N, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + r * N + c, mask=c < N, other=float("inf"))
    tl.store(i_ptr + r, tl.argmin(x, axis=0))


class ModelNew(nn.Module):
    def __init__(self, dim: int = 1):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        dim = self.dim if self.dim >= 0 else x.dim() + self.dim
        xm = x.movedim(dim, -1).contiguous()
        *lead, n = xm.shape
        out = torch.empty(lead, dtype=torch.int64, device=x.device)
        argmin_kernel[(out.numel(),)](xm, out, n, BLOCK=triton.next_power_of_2(n))
        return out
