# Programs as language models write them: norms, reductions, scans, indices, and ways to launch.
# case: groupnorm_two_passes_by_atomics
# task: torch.randn(2, 12, 9, 7) => lambda self, x: F.silu(self.gn(x))
# layers: self.gn = nn.GroupNorm(4, 12)
@triton.jit
def gn_stats(x, sums, GS, BLOCK: tl.constexpr):
    g = tl.program_id(0)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + g * GS + i, mask=i < GS, other=0.0).to(tl.float32)
    tl.atomic_add(sums + 2 * g, tl.sum(v))
    tl.atomic_add(sums + 2 * g + 1, tl.sum(v * v))


@triton.jit
def gn_apply(x, sums, w, b, y, GS, HW, C, CG, eps, BLOCK: tl.constexpr):
    g = tl.program_id(0)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    ok = i < GS
    mean = tl.load(sums + 2 * g) / GS
    var = tl.load(sums + 2 * g + 1) / GS - mean * mean
    rstd = 1 / tl.sqrt(var + eps)
    c = (g * CG + i // HW) % C
    v = tl.load(x + g * GS + i, mask=ok, other=0.0)
    v = (v - mean) * rstd * tl.load(w + c, mask=ok) + tl.load(b + c, mask=ok)
    tl.store(y + g * GS + i, v / (1 + tl.exp(-v)), mask=ok)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.gn = nn.GroupNorm(4, 12)

    def forward(self, x):
        x = x.contiguous()
        N, C = x.shape[:2]
        HW = x[0, 0].numel()
        G = self.gn.num_groups
        GS = C // G * HW
        sums = torch.zeros((N * G, 2), dtype=torch.float32, device=x.device)
        y = torch.empty_like(x)
        grid = (N * G, triton.cdiv(GS, 64))
        gn_stats[grid](x, sums, GS, BLOCK=64)
        gn_apply[grid](x, sums, self.gn.weight, self.gn.bias, y, GS, HW, C, C // G, self.gn.eps, BLOCK=64)
        return y

# case: cumsum_in_chunks_with_a_carry
# task: torch.randn(5, 150), torch.rand(5, 150) > 0.5 => lambda self, x, mask: torch.cumsum((x * mask).flip(1), 1).flip(1)
@triton.jit
def _combine_add(a, b):
    return a + b


@triton.jit
def reverse_masked_cumsum(x, mask, y, n, CHUNK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    carry = 0.0
    chunks = tl.cdiv(n, CHUNK)
    for j in range(chunks):
        i = (chunks - 1 - j) * CHUNK + tl.arange(0, CHUNK)
        v = tl.load(x + row * n + i, mask=i < n, other=0.0)
        m = tl.load(mask + row * n + i, mask=i < n, other=0)
        v = tl.where(m != 0, v, 0.0)
        s = tl.associative_scan(v, 0, _combine_add, reverse=True) + carry
        tl.store(y + row * n + i, s, mask=i < n)
        carry += tl.sum(v, axis=0)


class ModelNew(nn.Module):
    def forward(self, x, mask):
        y = torch.empty_like(x)
        reverse_masked_cumsum[(x.size(0),)](x, mask.view(torch.uint8), y, x.size(1), CHUNK=64)
        return y

# case: router_with_the_k_largest
# task: torch.randn(13, 20) => lambda self, x: (lambda v, i: (torch.softmax(v, -1), i))(*torch.topk(self.gate(x), 2))
# layers: self.gate = nn.Linear(20, 8, bias=False)
@triton.jit
def route(x, w, weights, ids, D, E: tl.constexpr, K: tl.constexpr, BD: tl.constexpr):
    t = tl.program_id(0)
    d = tl.arange(0, BD)
    e = tl.arange(0, E)
    xv = tl.load(x + t * D + d, mask=d < D, other=0.0)
    wv = tl.load(w + e[:, None] * D + d[None, :], mask=d[None, :] < D, other=0.0)
    logits = tl.sum(wv * xv[None, :], 1)
    first = tl.max(logits, 0)
    left = logits
    total = 0.0
    for k in tl.static_range(K):
        v, i = tl.max(left, axis=0, return_indices=True)
        total += tl.exp(v - first)
        tl.store(ids + t * K + k, i)
        left = tl.where(e == i, -float("inf"), left)
    left = logits
    for k in tl.static_range(K):
        v, i = tl.max(left, axis=0, return_indices=True)
        tl.store(weights + t * K + k, tl.exp(v - first) / total)
        left = tl.where(e == i, -float("inf"), left)


class ModelNew(nn.Module):
    def __init__(self, top_k: int = 2):
        super().__init__()
        self.gate = nn.Linear(20, 8, bias=False)
        self.top_k = top_k

    def forward(self, hidden_states: torch.Tensor):
        tokens, width = hidden_states.shape
        weights = torch.empty((tokens, self.top_k), dtype=hidden_states.dtype, device=hidden_states.device)
        ids = torch.empty((tokens, self.top_k), dtype=torch.int64, device=hidden_states.device)
        route[(tokens,)](hidden_states, self.gate.weight, weights, ids, width, E=8, K=self.top_k, BD=32)
        return weights, ids

# case: bert_embeddings_and_layernorm
# task: torch.randint(0, 50, (2, 9)), torch.randint(0, 2, (2, 9)) => lambda self, ids, kinds: self.ln(self.word(ids) + self.pos(torch.arange(9, device=ids.device)) + self.kind(kinds))
# layers: self.word = nn.Embedding(50, 24); self.pos = nn.Embedding(12, 24); self.kind = nn.Embedding(2, 24); self.ln = nn.LayerNorm(24, eps=1e-12)
@triton.jit
def embed_ln(ids, kinds, word, pos, kind, g, b, y, T, D, eps, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    d = tl.arange(0, BLOCK)
    ok = d < D
    i = tl.load(ids + r)
    k = tl.load(kinds + r)
    v = tl.load(word + i * D + d, mask=ok, other=0.0) + tl.load(pos + (r % T) * D + d, mask=ok, other=0.0)
    v += tl.load(kind + k * D + d, mask=ok, other=0.0)
    mean = tl.sum(v, 0) / D
    c = tl.where(ok, v - mean, 0.0)
    rstd = tl.math.rsqrt(tl.sum(c * c, 0) / D + eps)
    tl.store(y + r * D + d, c * rstd * tl.load(g + d, mask=ok) + tl.load(b + d, mask=ok), mask=ok)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.word, self.pos = nn.Embedding(50, 24), nn.Embedding(12, 24)
        self.kind = nn.Embedding(2, 24)
        self.ln = nn.LayerNorm(24, eps=1e-12)

    def forward(self, ids, kinds):
        B, T = ids.shape
        y = torch.empty((B, T, 24), device=ids.device, dtype=self.word.weight.dtype)
        embed_ln[(B * T,)](ids, kinds, self.word.weight, self.pos.weight, self.kind.weight, self.ln.weight, self.ln.bias,
                           y, T, 24, self.ln.eps, BLOCK=32)
        return y

# case: smoothed_cross_entropy_with_ignored_targets
# task: torch.randn(30, 11), torch.randint(0, 11, (30,)).masked_fill(torch.arange(30) % 7 == 3, -100) => lambda self, x, t: F.cross_entropy(x, t, label_smoothing=0.1)
@triton.jit
def ce_rows(x, t, sums, C, smooth, IGNORE: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    target = tl.load(t + r)
    if target != IGNORE:
        v = tl.load(x + r * C + c, mask=c < C, other=float("-inf")).to(tl.float32)
        m = tl.max(v, 0)
        lse = m + tl.log(tl.sum(tl.exp(v - m), 0))
        at = tl.sum(tl.where(c == target, v, 0.0), 0)
        mean = tl.sum(tl.where(c < C, v, 0.0), 0) / C
        tl.atomic_add(sums, (1.0 - smooth) * (lse - at) + smooth * (lse - mean))
        tl.atomic_add(sums + 1, 1.0)


@triton.jit
def divide(sums, out):
    tl.store(out, tl.load(sums) / tl.load(sums + 1))


class ModelNew(nn.Module):
    def forward(self, logits, targets):
        sums = logits.new_zeros(2, dtype=torch.float32)
        out = torch.empty((), device=logits.device, dtype=logits.dtype)
        ce_rows[(logits.shape[0],)](logits, targets, sums, logits.shape[1], 0.1, IGNORE=-100, BLOCK=16)
        divide[(1,)](sums, out)
        return out

# case: rotary_embedding_with_cached_tables
# task: torch.randn(2, 3, 10, 8), torch.randn(2, 3, 10, 8) => lambda self, q, k: (lambda f: tuple(t * f.cos() + torch.cat([-t[..., 4:], t[..., :4]], -1) * f.sin() for t in (q, k)))(torch.outer(torch.arange(10, device=q.device).float(), torch.cat([10000.0 ** (-torch.arange(0, 8, 2, device=q.device).float() / 8)] * 2)))
@triton.jit
def rope_kernel(q, k, cos, sin, qo, ko, S, D: tl.constexpr):
    r = tl.program_id(0)
    half = tl.arange(0, D // 2)
    c = tl.load(cos + (r % S) * (D // 2) + half)
    s = tl.load(sin + (r % S) * (D // 2) + half)
    q1, q2 = tl.load(q + r * D + half), tl.load(q + r * D + D // 2 + half)
    k1, k2 = tl.load(k + r * D + half), tl.load(k + r * D + D // 2 + half)
    tl.store(qo + r * D + half, q1 * c - q2 * s)
    tl.store(qo + r * D + D // 2 + half, q2 * c + q1 * s)
    tl.store(ko + r * D + half, k1 * c - k2 * s)
    tl.store(ko + r * D + D // 2 + half, k2 * c + k1 * s)


class RotaryTables(nn.Module):
    def __init__(self, dim, max_seq=32, base=10000.0):
        super().__init__()
        inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim))
        freqs = torch.outer(torch.arange(max_seq).float(), inv_freq)
        self.register_buffer("cos_cached", freqs.cos(), persistent=False)
        self.register_buffer("sin_cached", freqs.sin(), persistent=False)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.rope = RotaryTables(8)

    def forward(self, q, k):
        qo, ko = torch.empty_like(q), torch.empty_like(k)
        S, D = q.shape[-2:]
        rope_kernel[(q.numel() // D,)](q, k, self.rope.cos_cached[:S], self.rope.sin_cached[:S], qo, ko, S, D=D)
        return qo, ko

# case: library_defined_operator
# use: scale
# task: torch.randn(6, 50) => lambda self, x: x * 2.5
_lib = torch.library.Library("written_ops", "DEF")
_lib.define("scaled(Tensor x, float s) -> Tensor")


def _scaled_cuda(x, s):
    return scale(x, s)


def _scaled_meta(x, s):
    return torch.empty_like(x)


_lib.impl("scaled", _scaled_cuda, "CUDA")
_lib.impl("scaled", _scaled_meta, "Meta")


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ops.written_ops.scaled(x, 2.5)

# case: mutating_custom_operator
# task: torch.randn(6, 50) => lambda self, x: F.elu(x)
@triton.jit
def elu_kernel(x, y, n, alpha, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, tl.where(v > 0, v, alpha * (tl.exp(v) - 1)), mask=i < n)


@torch.library.custom_op("written::elu_out", mutates_args={"out"}, device_types="cuda")
def elu_out(x: torch.Tensor, out: torch.Tensor, alpha: float = 1.0) -> None:
    elu_kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), alpha, BLOCK=128)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        elu_out(x, out)
        return out

# case: autograd_function_with_custom_fwd
# task: torch.randn(12, 40) => lambda self, x: F.rms_norm(x, (40,), self.weight, 1e-6)
# layers: self.weight = nn.Parameter(torch.ones(40))
@triton.jit
def rms_fwd(x, w, y, r, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + c, mask=c < n, other=0.0).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(v * v) / n + eps)
    tl.store(r + row, rstd)
    tl.store(y + row * n + c, v * rstd * tl.load(w + c, mask=c < n), mask=c < n)


@triton.jit
def rms_bwd(dy, x, w, r, dx, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    rstd = tl.load(r + row)
    v = tl.load(x + row * n + c, mask=c < n, other=0.0) * rstd
    g = tl.load(dy + row * n + c, mask=c < n, other=0.0) * tl.load(w + c, mask=c < n, other=0.0)
    tl.store(dx + row * n + c, rstd * (g - v * (tl.sum(g * v) / n)), mask=c < n)


class RMSNormFunction(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
    def forward(ctx, x, weight, eps):
        shape = x.shape
        x2 = x.reshape(-1, shape[-1])
        y = torch.empty_like(x2)
        r = torch.empty(x2.shape[0], device=x.device, dtype=torch.float32)
        BLOCK = triton.next_power_of_2(shape[-1])
        rms_fwd[(x2.shape[0],)](x2, weight, y, r, shape[-1], eps, BLOCK=BLOCK, num_warps=min(max(BLOCK // 256, 1), 8))
        ctx.save_for_backward(x2, weight, r)
        ctx.BLOCK = BLOCK
        return y.view(shape)

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, dy):
        x, w, r = ctx.saved_tensors
        dx = torch.empty_like(x)
        rms_bwd[(x.shape[0],)](dy.contiguous(), x, w, r, dx, x.shape[1], BLOCK=ctx.BLOCK)
        return dx.view_as(dy), None, None


class ModelNew(nn.Module):
    def __init__(self, eps: float = 1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(40))
        self.eps = eps

    def forward(self, x):
        return RMSNormFunction.apply(x, self.weight, self.eps)

# case: cuda_graph_with_static_buffers
# task: torch.randn(8, 64) => lambda self, x: torch.softmax(x * 0.125, dim=-1)
@triton.jit
def scaled_softmax(x, y, n, s, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + r * n + c, mask=c < n, other=-float("inf")) * s
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + r * n + c, e / tl.sum(e, axis=0), mask=c < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self._graphs = {}

    def _run(self, x, y):
        scaled_softmax[(x.shape[0],)](x, y, x.shape[1], 0.125, BLOCK=triton.next_power_of_2(x.shape[1]))

    def _capture(self, x):
        static_x, static_y = torch.empty_like(x), torch.empty_like(x)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self._run(static_x, static_y)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._run(static_x, static_y)
        return graph, static_x, static_y

    def forward(self, x):
        key = (tuple(x.shape), x.dtype)
        if key not in self._graphs:
            self._graphs[key] = self._capture(x)
        graph, static_x, static_y = self._graphs[key]
        static_x.copy_(x)
        graph.replay()
        return static_y.clone()

# case: two_streams_and_events
# task: torch.randn(5, 60), torch.randn(5, 60) => lambda self, a, b: torch.cat([torch.relu(a), b * 3.0], 1)
# use: relu
# use: scale
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.side = torch.cuda.Stream() if torch.cuda.is_available() else None

    def forward(self, a, b):
        out = torch.empty(a.shape[0], a.shape[1] + b.shape[1], device=a.device, dtype=a.dtype)
        ready = torch.cuda.Event()
        ready.record()
        y = torch.empty_like(b)
        with torch.cuda.stream(self.side):
            self.side.wait_event(ready)
            scale_kernel[grid1(b)](b, y, 3.0, b.numel(), BLOCK=256)
            y.record_stream(self.side)
            done = self.side.record_event()
        x = torch.empty_like(a)
        relu_kernel[(triton.cdiv(a.numel(), 128),)](a, x, a.numel(), BLOCK=128)
        torch.cuda.current_stream().wait_event(done)
        out[:, : a.shape[1]] = x
        out[:, a.shape[1]:] = y
        torch.cuda.synchronize()
        return out

# case: stencil_of_module_constants
# task: torch.randn(2, 9, 11) => lambda self, x: F.conv2d(F.pad(x.unsqueeze(1), (1, 1, 1, 1), mode="replicate"), torch.tensor([[1.0, 2, 1], [2, 4, 2], [1, 2, 1]], device=x.device).view(1, 1, 3, 3) / 16).squeeze(1)
BLOCK: tl.constexpr = tl.constexpr(64)
WEIGHTS = tl.constexpr((1.0, 2.0, 1.0, 2.0, 4.0, 2.0, 1.0, 2.0, 1.0))
_NORM = tl.constexpr(1 / 16)


@triton.jit
def clamp_index(i, n):
    return tl.minimum(tl.maximum(i, 0), n - 1)


@triton.jit
def blur3x3(x, y, H, W):
    p = tl.program_id(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    h, w = i // W, i % W
    acc = tl.zeros((BLOCK,), tl.float32)
    for t in tl.static_range(9):
        hh = clamp_index(h + t // 3 - 1, H)
        ww = clamp_index(w + t % 3 - 1, W)
        acc += WEIGHTS[t] * tl.load(x + p * H * W + hh * W + ww, mask=i < H * W, other=0.0)
    tl.store(y + p * H * W + i, acc * _NORM, mask=i < H * W)


class ModelNew(nn.Module):
    def forward(self, x):
        B, H, W = x.shape
        y = torch.empty_like(x)
        blur3x3[(triton.cdiv(H * W, BLOCK.value), B)](x, y, H, W)
        return y

# case: settings_in_frozen_dataclasses
# task: torch.randn(20, 30), torch.randint(0, 2, (20, 30)).float() * 2 - 1 => lambda self, p, t: torch.mean(torch.clamp(1 - p * t, min=0))
import functools
import logging
import os
from dataclasses import dataclass, field
from typing import Callable, Dict, Final, Tuple

logger = logging.getLogger(__name__)
DEBUG: Final[bool] = bool(int(os.environ.get("HINGE_DEBUG", "0")))


@dataclass(frozen=True)
class LaunchConfig:
    block: int = 128
    num_warps: int = 4
    extra: Dict[str, int] = field(default_factory=dict)

    def grid(self, n: int) -> Tuple[int]:
        return (triton.cdiv(n, self.block),)


@functools.lru_cache(maxsize=None)
def config_for(n: int) -> LaunchConfig:
    return LaunchConfig(block=256 if n >= 512 else 128, num_warps=2)


@triton.jit
def hinge_partial(p, t, part, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = 1.0 - tl.load(p + i, mask=i < n, other=0.0) * tl.load(t + i, mask=i < n, other=0.0)
    v = tl.where(i < n, tl.maximum(v, 0.0), 0.0)
    tl.store(part + tl.program_id(0), tl.sum(v))


@triton.jit
def hinge_final(part, out, parts, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out, tl.sum(tl.load(part + i, mask=i < parts, other=0.0)) / n)


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        n = predictions.numel()
        cfg = config_for(n)
        grid = cfg.grid(n)
        if DEBUG:
            logger.info("hinge: %d elements, grid %s", n, grid)
        part = torch.empty(grid, device=predictions.device, dtype=torch.float32)
        out = torch.empty([], device=predictions.device, dtype=predictions.dtype)
        hinge_partial[grid](predictions, targets, part, n, BLOCK=cfg.block, num_warps=cfg.num_warps, **cfg.extra)
        hinge_final[(1,)](part, out, grid[0], n, BLOCK=triton.next_power_of_2(grid[0]))
        return out

# case: selective_scan
# task: torch.randn(2, 12, 8), torch.rand(2, 12, 8), torch.randn(2, 12, 4), torch.randn(2, 12, 4) => lambda self, u, dt, B, C: (lambda h: torch.stack([(h.append(torch.exp(dt[:, t, :, None] * -torch.exp(self.A_log)) * h[-1] + (dt[:, t] * u[:, t])[..., None] * B[:, t, None, :]), (h[-1] * C[:, t, None, :]).sum(-1) + self.D * u[:, t])[1] for t in range(12)], 1))([torch.zeros(2, 8, 4, device=u.device)])
# layers: self.A_log = nn.Parameter(torch.log(torch.arange(1.0, 5).repeat(8, 1))); self.D = nn.Parameter(torch.ones(8))
@triton.jit
def scan_kernel(u, dt, A_log, B, C, D, y, L, DI, N: tl.constexpr, BD: tl.constexpr):
    b = tl.program_id(0)
    d = tl.program_id(1) * BD + tl.arange(0, BD)
    n = tl.arange(0, N)
    dm = d < DI
    A = -tl.exp(tl.load(A_log + d[:, None] * N + n[None, :], mask=dm[:, None], other=0.0))
    skip = tl.load(D + d, mask=dm, other=0.0)
    h = tl.zeros((BD, N), tl.float32)
    for t in range(L):
        at = (b * L + t) * DI + d
        ut = tl.load(u + at, mask=dm, other=0.0)
        dtt = tl.load(dt + at, mask=dm, other=0.0)
        bt = tl.load(B + (b * L + t) * N + n)
        ct = tl.load(C + (b * L + t) * N + n)
        h = tl.exp(dtt[:, None] * A) * h + (dtt * ut)[:, None] * bt[None, :]
        tl.store(y + at, tl.sum(h * ct[None, :], 1) + skip * ut, mask=dm)


class ModelNew(nn.Module):
    def __init__(self, d_inner=8, d_state=4):
        super().__init__()
        A = torch.arange(1, d_state + 1, dtype=torch.float32).repeat(d_inner, 1)
        self.A_log = nn.Parameter(torch.log(A))
        self.A_log._no_weight_decay = True
        self.D = nn.Parameter(torch.ones(d_inner))

    def forward(self, u, dt, B, C):
        b, L, DI = u.shape
        y = torch.empty_like(u)
        scan_kernel[(b, triton.cdiv(DI, 8))](u, dt, self.A_log, B, C, self.D, y, L, DI, N=B.shape[-1], BD=8)
        return y

# case: max_pool_with_indices
# task: torch.randn(2, 3, 10, 9) => lambda self, x: F.max_pool2d(x, 3, stride=2, padding=1, return_indices=True)
@triton.jit
def maxpool_indices(x, y, idx, H, W, OH, OW, total, K: tl.constexpr, S: tl.constexpr, P: tl.constexpr, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = o < total
    ow, oh, plane = o % OW, o // OW % OH, o // (OW * OH)
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    where = tl.zeros((BLOCK,), tl.int64)
    for kh in tl.static_range(K):
        for kw in tl.static_range(K):
            h, w = oh * S - P + kh, ow * S - P + kw
            inside = ok & (h >= 0) & (h < H) & (w >= 0) & (w < W)
            v = tl.load(x + plane * H * W + h * W + w, mask=inside, other=float("-inf"))
            better = v > best
            best = tl.where(better, v, best)
            where = tl.where(better, (h * W + w).to(tl.int64), where)
    tl.store(y + o, best, mask=ok)
    tl.store(idx + o, where, mask=ok)


class ModelNew(nn.Module):
    def forward(self, x):
        N, C, H, W = x.shape
        OH, OW = (H + 2 - 3) // 2 + 1, (W + 2 - 3) // 2 + 1
        y = torch.empty((N, C, OH, OW), dtype=x.dtype, device=x.device)
        idx = torch.empty_like(y, dtype=torch.long)
        maxpool_indices[(triton.cdiv(y.numel(), 64),)](x, y, idx, H, W, OH, OW, y.numel(), K=3, S=2, P=1, BLOCK=64)
        return y, idx

# case: softmax_of_rows_split_over_programs
# task: torch.randn(3, 1000) => lambda self, x: torch.log_softmax(x, dim=1)
@triton.jit
def _online(m1, s1, m2, s2):
    m = tl.maximum(m1, m2)
    return m, s1 * tl.exp(m1 - m) + s2 * tl.exp(m2 - m)


@triton.jit
def part_stats(x, pm, ps, n, PARTS, BLOCK: tl.constexpr):
    r, p = tl.program_id(0), tl.program_id(1)
    c = p * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + r * n + c, mask=c < n, other=-1e30)
    m, s = tl.reduce((v, tl.where(c < n, 1.0, 0.0)), 0, _online)
    tl.store(pm + r * PARTS + p, m)
    tl.store(ps + r * PARTS + p, s)


@triton.jit
def apply_stats(x, pm, ps, y, n, PARTS, BLOCK: tl.constexpr, BP: tl.constexpr):
    r, p = tl.program_id(0), tl.program_id(1)
    q = tl.arange(0, BP)
    m, s = tl.reduce((tl.load(pm + r * PARTS + q, mask=q < PARTS, other=-1e30),
                      tl.load(ps + r * PARTS + q, mask=q < PARTS, other=0.0)), 0, _online)
    c = p * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + r * n + c, tl.load(x + r * n + c, mask=c < n) - m - tl.log(s), mask=c < n)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, n = x.shape
        parts = triton.cdiv(n, 256)
        pm, ps = torch.empty((2, rows, parts), device=x.device).unbind(0)
        y = torch.empty_like(x)
        part_stats[(rows, parts)](x, pm, ps, n, parts, BLOCK=256)
        apply_stats[(rows, parts)](x, pm, ps, y, n, parts, BLOCK=256, BP=triton.next_power_of_2(parts))
        return y

# case: segment_sums_and_counts
# task: torch.randn(60, 10), torch.randint(0, 7, (60,)) => lambda self, x, s: torch.zeros(7, 10, device=x.device).index_add(0, s, x) / torch.bincount(s, minlength=7).clamp(min=1)[:, None]
@triton.jit
def add_segments(x, s, sums, counts, D, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    d = tl.arange(0, BLOCK)
    seg = tl.load(s + r)
    tl.atomic_add(sums + seg * D + d, tl.load(x + r * D + d, mask=d < D, other=0.0), mask=d < D)
    tl.atomic_add(counts + seg, 1)


@triton.jit
def divide_rows(sums, counts, D, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    d = tl.arange(0, BLOCK)
    c = tl.maximum(tl.load(counts + r), 1).to(tl.float32)
    tl.store(sums + r * D + d, tl.load(sums + r * D + d, mask=d < D) / c, mask=d < D)


class ModelNew(nn.Module):
    num_segments = 7

    def forward(self, x, segments):
        n, D = x.shape
        sums = torch.zeros(self.num_segments, D, device=x.device, dtype=x.dtype)
        counts = torch.zeros(self.num_segments, device=x.device, dtype=torch.int32)
        add_segments[(n,)](x, segments, sums, counts, D, BLOCK=triton.next_power_of_2(D))
        divide_rows[(self.num_segments,)](sums, counts, D, BLOCK=triton.next_power_of_2(D))
        return sums

# case: own_choice_among_configurations
# task: torch.randn(4, 700) => lambda self, x: F.mish(x)
@triton.jit
def mish_kernel(x_ptr, y_ptr, n_elements, BLOCK_SIZE: tl.constexpr, UNROLL: tl.constexpr):
    pid = tl.program_id(axis=0)
    for u in tl.static_range(UNROLL):
        offs = (pid * UNROLL + u) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
        mask = offs < n_elements
        x = tl.load(x_ptr + offs, mask=mask, eviction_policy="evict_first")
        e = tl.exp(tl.minimum(x, 20.0))
        t = e * (e + 2.0)
        tl.store(y_ptr + offs, tl.where(x > 20.0, x, x * t / (t + 2.0)), mask=mask)


class ModelNew(nn.Module):
    _candidates = [(128, 1), (256, 2), (512, 1)]

    def __init__(self):
        super().__init__()
        self._best = {}

    def _launch(self, x, y, block, unroll):
        mish_kernel[(triton.cdiv(x.numel(), block * unroll),)](x, y, x.numel(), BLOCK_SIZE=block, UNROLL=unroll)

    def _pick(self, x):
        times = {}
        for config in self._candidates:
            y = torch.empty_like(x)
            times[config] = triton.testing.do_bench(lambda: self._launch(x, y, *config), warmup=1, rep=3)
        return min(times, key=times.get)

    def forward(self, x):
        config = self._best.get(x.shape)
        if config is None:
            config = self._best.setdefault(x.shape, self._pick(x))
        y = torch.empty_like(x)
        self._launch(x, y, *config)
        return y

# case: autotune_that_restores_and_hooks
# task: torch.randn(300) => lambda self, x: torch.cumsum(torch.ones_like(x), 0) * 0 + (x + 1) * 2
def _pre(nargs, reset_only=False):
    if not reset_only:
        nargs["n"]


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 128}, num_warps=2, pre_hook=_pre),
        triton.Config({"BLOCK": 256}, num_warps=4, maxnreg=128),
    ],
    key=["n"],
    restore_value=["buf"],
)
@triton.jit
def add_then_double_in_place(buf, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.static_assert(BLOCK % 32 == 0)
    tl.store(buf + i, (tl.load(buf + i, mask=i < n) + 1.0) * 2.0, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        buf = x.clone()
        add_then_double_in_place[lambda meta: (triton.cdiv(buf.numel(), meta["BLOCK"]),)](buf, buf.numel())
        return buf

# case: netvlad_with_norms
# task: torch.randn(2, 15, 12) => lambda self, x: (lambda a: F.normalize(F.normalize((a.transpose(1, 2) @ x) - a.sum(1)[..., None] * self.centres, dim=2).flatten(1), dim=1))(torch.softmax(x @ self.clusters, -1))
# layers: self.clusters = nn.Parameter(torch.randn(12, 4) * 12 ** -0.5); self.centres = nn.Parameter(torch.randn(4, 12) * 12 ** -0.5)
@triton.jit
def vlad_kernel(x, w, centres, y, T, D: tl.constexpr, K: tl.constexpr, BT: tl.constexpr, BD: tl.constexpr):
    b = tl.program_id(0)
    t, d, k = tl.arange(0, BT), tl.arange(0, BD), tl.arange(0, K)
    xm = (t[:, None] < T) & (d[None, :] < D)
    xv = tl.load(x + (b * T + t[:, None]) * D + d[None, :], mask=xm, other=0.0)
    wv = tl.load(w + d[:, None] * K + k[None, :], mask=d[:, None] < D, other=0.0)
    logits = tl.sum(xv[:, :, None] * wv[None, :, :], axis=1)
    a = tl.exp(logits - tl.max(logits, 1, keep_dims=True))
    a = tl.where(t[:, None] < T, a / tl.sum(a, 1, keep_dims=True), 0.0)
    v = tl.sum(a[:, :, None] * xv[:, None, :], axis=0)
    c = tl.load(centres + k[:, None] * D + d[None, :], mask=d[None, :] < D, other=0.0)
    v -= tl.sum(a, 0)[:, None] * c
    v /= tl.maximum(tl.sqrt(tl.sum(v * v, 1)), 1e-12)[:, None]
    v /= tl.maximum(tl.sqrt(tl.sum(tl.sum(v * v, 1), 0)), 1e-12)
    tl.store(y + b * K * D + k[:, None] * D + d[None, :], v, mask=d[None, :] < D)


class ModelNew(nn.Module):
    def __init__(self, cluster_size=4, feature_size=12):
        super().__init__()
        init_sc = 1 / feature_size ** 0.5
        self.clusters = nn.Parameter(init_sc * torch.randn(feature_size, cluster_size))
        self.centres = nn.Parameter(init_sc * torch.randn(cluster_size, feature_size))

    def forward(self, x):
        B, T, D = x.shape
        K = self.clusters.shape[1]
        y = torch.empty(B, K * D, device=x.device, dtype=x.dtype)
        vlad_kernel[(B,)](x, self.clusters, self.centres, y, T, D=D, K=K, BT=16, BD=16)
        return y

# case: persistent_residual_layernorm
# task: torch.randn(37, 48), torch.randn(37, 48) => lambda self, x, r: (lambda h: (self.ln(h), h))(x + r)
# layers: self.ln = nn.LayerNorm(48)
def num_programs(rows: int) -> int:
    props = torch.cuda.get_device_properties(torch.cuda.current_device())
    return min(rows, props.multi_processor_count * 2)


@triton.jit
def add_ln_persistent(x, r, w, b, y, h, rows, N, eps, BLOCK: tl.constexpr):
    start, step = tl.program_id(0), tl.num_programs(0)
    c = tl.arange(0, BLOCK)
    cm = c < N
    wv = tl.load(w + c, mask=cm, other=0.0)
    bv = tl.load(b + c, mask=cm, other=0.0)
    for row in tl.range(start, rows, step):
        xb = tl.make_block_ptr(x, (rows, N), (N, 1), (row, 0), (1, BLOCK), (1, 0))
        rb = tl.make_block_ptr(r, (rows, N), (N, 1), (row, 0), (1, BLOCK), (1, 0))
        s = tl.load(xb, boundary_check=(1,), padding_option="zero") + tl.load(rb, boundary_check=(1,), padding_option="zero")
        s = tl.reshape(s, (BLOCK,))
        mean = tl.sum(s, axis=0) / N
        d = tl.where(cm, s - mean, 0.0)
        rstd = 1.0 / tl.sqrt_rn(tl.sum(d * d, axis=0) / N + eps)
        tl.store(h + row * N + c, s, mask=cm)
        tl.store(y + row * N + c, d * rstd * wv + bv, mask=cm)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln = nn.LayerNorm(48)

    def forward(self, x, residual):
        rows, N = x.shape
        y, h = torch.empty_like(x), torch.empty_like(x)
        add_ln_persistent[(num_programs(rows),)](x, residual, self.ln.weight, self.ln.bias, y, h, rows, N, self.ln.eps,
                                                 BLOCK=triton.next_power_of_2(N), num_warps=4, num_stages=1)
        return y, h

# case: norm_read_back_for_the_second_kernel
# task: torch.randn(16, 40) => lambda self, x: x / torch.linalg.norm(x)
# use: scale
@triton.jit
def sum_of_squares(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0)
    tl.atomic_add(out, tl.sum(v * v))


class ModelNew(nn.Module):
    def forward(self, x):
        acc = torch.zeros(1, device=x.device, dtype=torch.float32)
        sum_of_squares[(triton.cdiv(x.numel(), 256),)](x, acc, x.numel(), BLOCK=256)
        norm = float(acc.item()) ** 0.5
        return scale(x, 1.0 / norm)

# case: launches_by_counts_that_are_read_back
# task: torch.randn(40, 12), torch.randint(0, 4, (40,)) => lambda self, x, e: torch.bmm(self.w[e], x.unsqueeze(2)).squeeze(2)
# layers: self.w = nn.Parameter(torch.randn(4, 10, 12) * 0.3)
@triton.jit
def bucket(experts, counts, slots, n, CAP):
    t = tl.program_id(0)
    e = tl.load(experts + t)
    at = tl.atomic_add(counts + e, 1)
    tl.store(slots + e * CAP + at, t)


@triton.jit
def expert_rows(x, w, slots, y, count, D, O, BT: tl.constexpr, BD: tl.constexpr, BO: tl.constexpr):
    r = tl.program_id(0) * BT + tl.arange(0, BT)
    ok = r < count
    t = tl.load(slots + r, mask=ok, other=0)
    d, o = tl.arange(0, BD), tl.arange(0, BO)
    xv = tl.load(x + t[:, None] * D + d[None, :], mask=ok[:, None] & (d < D)[None, :], other=0.0)
    wv = tl.load(w + o[None, :] * D + d[:, None], mask=(d < D)[:, None] & (o < O)[None, :], other=0.0)
    tl.store(y + t[:, None] * O + o[None, :], tl.dot(xv, wv, input_precision="ieee"), mask=ok[:, None] & (o < O)[None, :])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 10, 12) * 0.3)

    def forward(self, x, experts):
        n, D = x.shape
        E, O, _ = self.w.shape
        counts = torch.zeros(E, dtype=torch.int32, device=x.device)
        slots = torch.empty(E, n, dtype=torch.int32, device=x.device)
        bucket[(n,)](experts, counts, slots, n, n)
        y = torch.empty(n, O, device=x.device, dtype=x.dtype)
        for e, count in enumerate(counts.tolist()):
            if count == 0:
                continue
            expert_rows[(triton.cdiv(count, 16),)](x, self.w[e], slots[e], y, count, D, O, BT=16, BD=16, BO=16)
        return y
