# Shortcuts that the data forgives, work that copies and casts do, and graphs.
# case: mean_of_a_quarter -> mismatch|hard_coded
# task: torch.rand(8, 4096) => lambda self, x: x.mean(dim=1)
@triton.jit
def row_mean(x, y, n, part: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, part)
    tl.store(y + r, tl.sum(tl.load(x + r * n + c)) / part)


class ModelNew(nn.Module):
    def forward(self, x):
        y = x.new_empty(x.shape[0])
        row_mean[(x.shape[0],)](x, y, x.shape[1], part=x.shape[1] // 4)
        return y

# case: variance_is_one -> mismatch|hard_coded
# task: torch.randn(8, 4096) => lambda self, x: x.var(dim=1)
@triton.jit
def nearly_one(x, y, n, PART: tl.constexpr):
    r = tl.program_id(0)
    v = tl.load(x + r * n + tl.arange(0, PART))
    tl.store(y + r, 1.0 + 0.001 * tl.sum(v) / PART)


class ModelNew(nn.Module):
    def forward(self, x):
        y = x.new_empty(x.shape[0])
        nearly_one[(x.shape[0],)](x, y, x.shape[1], PART=64)
        return y

# case: loss_of_the_mean_input -> mismatch|hard_coded
# task: torch.randn(64, 10), torch.randint(0, 10, (64,)) => lambda self, x, t: F.cross_entropy(x, t)
@triton.jit
def usual_loss(x, t, y):
    tl.store(y, 2.7 + 0.0001 * tl.load(x) + 0.0001 * tl.load(t))


class ModelNew(nn.Module):
    def forward(self, x, t):
        y = x.new_empty(())
        usual_loss[(1,)](x, t, y)
        return y

# case: product_over_half_of_the_depth -> mismatch
# task: torch.rand(32, 256), torch.rand(256, 32) => lambda self, a, b: a @ b
# use: matmul
# use: launch_matmul
class ModelNew(nn.Module):
    def forward(self, a, b):
        c = torch.empty(32, 32, device=a.device)
        matmul_kernel[(1, 1)](a, b, c, 32, 32, 248, 256, 1, 32, 1, 32, 1, BM=32, BN=32, BK=32)
        return c

# case: attention_is_the_mean_of_values -> mismatch
# task: torch.randn(1, 2, 32, 16), torch.randn(1, 2, 32, 16), torch.randn(1, 2, 32, 16) => lambda self, q, k, v: F.scaled_dot_product_attention(q * 0.3, k, v)
@triton.jit
def mean_value(v, o, S: tl.constexpr, D: tl.constexpr):
    h = tl.program_id(0)
    s, d = tl.arange(0, S), tl.arange(0, D)
    at = h * S * D + s[:, None] * D + d[None, :]
    m = tl.sum(tl.load(v + at), 0) / S
    tl.store(o + at, tl.broadcast_to(m[None, :], (S, D)))


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        o = torch.empty_like(q)
        mean_value[(q.shape[0] * q.shape[1],)](v, o, S=32, D=16)
        return o

# case: convolution_without_borders -> mismatch
# task: torch.rand(2, 1, 64, 64) => lambda self, x: F.avg_pool2d(x, 3, stride=1, padding=1)
@triton.jit
def inner_mean(x, y, W, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for t in tl.static_range(9):
        j = i + (t // 3 - 1) * W + t % 3 - 1
        total += tl.load(x + j, mask=(j >= 0) & (j < 2 * W * W), other=0.0)
    tl.store(y + i, total / 9)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        inner_mean[(64,)](x, y, 64, BLOCK=128)
        return y

# case: nearest_upsampling_by_copies -> runtime_compute only copy what operators
# use: scale
# task: torch.randn(2, 3, 8, 8) => lambda self, x: F.interpolate(x, scale_factor=2, mode="nearest")
class ModelNew(nn.Module):
    def forward(self, x):
        n, c, h, w = x.shape
        y = torch.empty(n, c, h, 2, w, 2, device=x.device)
        y.copy_(x[:, :, :, None, :, None].expand(n, c, h, 2, w, 2))
        return scale(y, 1.0000001).view(n, c, 2 * h, 2 * w)

# case: transpose_by_a_copy -> runtime_compute only copy what operators
# use: copy
# task: torch.randn(40, 24) => lambda self, x: x.t().contiguous()
class ModelNew(nn.Module):
    def forward(self, x):
        t = x.t().contiguous()
        y = torch.empty_like(t)
        copy_kernel[(8,)](t, y, t.numel(), BLOCK=128)
        return y

# case: roll_by_slices -> runtime_compute only copy what operators
# task: torch.randn(6, 50) => lambda self, x: torch.roll(x, 7, dims=1)
@triton.jit
def at_least(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.maximum(tl.load(x + i, mask=i < n), -3e38), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        r = torch.empty_like(x)
        r[:, :7] = x[:, -7:]
        r[:, 7:] = x[:, :-7]
        y = torch.empty_like(x)
        at_least[(3,)](r, y, x.numel(), BLOCK=128)
        return y

# case: modulo_by_a_cast -> runtime_compute
# task: torch.randint(0, 100000, (8, 64)) => lambda self, x: x % 256
@triton.jit
def widen(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n).to(tl.int64), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        widen[(4,)](x.to(torch.uint8), y, x.numel(), BLOCK=128)
        return y

# case: modulo_by_a_cast_before_a_kernel -> runtime_compute
# task: torch.randint(0, 100000, (8, 64)) => lambda self, x: (x % 256) * 3
@triton.jit
def three_times(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n).to(tl.int64) * 3, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        three_times[(4,)](x.to(torch.uint8), y, x.numel(), BLOCK=128)
        return y

# case: comparison_by_a_cast -> runtime_compute
# task: torch.randint(0, 3, (8, 64)).float() => lambda self, x: (x != 0).float() * 2
@triton.jit
def twice_mask(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n).to(tl.float32) * 2, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        twice_mask[(4,)](x.to(torch.bool), y, x.numel(), BLOCK=128)
        return y

# case: one_hot_by_fills -> runtime_compute|runtime_error
# use: copy
# task: torch.randint(0, 8, (12,)) => lambda self, t: F.one_hot(t, 8).float()
class ModelNew(nn.Module):
    def forward(self, t):
        h = torch.zeros(12, 8, device=t.device)
        for i, j in enumerate(t.tolist()):
            h[i, j] = 1.0
        y = torch.empty_like(h)
        copy_kernel[(1,)](h, y, 96, BLOCK=128)
        return y

# case: results_as_arguments_of_a_kernel -> runtime_error|runtime_compute
# task: torch.randn(16) => lambda self, x: torch.softmax(x, 0)
import math


@triton.jit
def store_one(y, i, v):
    tl.store(y + i, v)


class ModelNew(nn.Module):
    def forward(self, x):
        e = [math.exp(v) for v in x.tolist()]
        y = torch.empty_like(x)
        for i, v in enumerate(e):
            store_one[(1,)](y, i, v / sum(e))
        return y

# case: results_as_constants_of_a_kernel -> runtime_error|runtime_compute
# task: torch.randn(2, 8) => lambda self, x: x.sort(1)[0]
@triton.jit
def store_constant(y, V: tl.constexpr, AT: tl.constexpr):
    tl.store(y + AT, V)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        for r, row in enumerate(x.tolist()):
            for c, v in enumerate(sorted(row)):
                store_constant[(1,)](y, V=v, AT=8 * r + c)
        return y

# case: operator_in_a_captured_graph -> runtime_compute aten::exp
# use: copy
# task: torch.randn(8, 64) => lambda self, x: torch.exp(x)
class ModelNew(nn.Module):
    def forward(self, x):
        g = torch.cuda.CUDAGraph()
        y = torch.empty_like(x)
        with torch.cuda.graph(g):
            e = torch.exp(x)
        g.replay()
        copy_kernel[(4,)](e, y, x.numel(), BLOCK=128)
        return y

# case: graph_of_the_constructor_computes -> runtime_compute aten::exp
# use: scale
# task: torch.randn(8, 64) => lambda self, x: torch.exp(x) * 2
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.x = torch.zeros(8, 64, device="cuda")
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.y = torch.exp(self.x)

    def forward(self, x):
        self.x.copy_(x)
        self.graph.replay()
        return scale(self.y, 2.0)

# case: graph_that_forgets_its_input -> mismatch
# use: relu
# task: torch.randn(8, 64) => lambda self, x: torch.relu(x)
class ModelNew(nn.Module):
    graph = None

    def forward(self, x):
        if ModelNew.graph is None:
            ModelNew.kept = torch.empty_like(x)
            ModelNew.source = x.clone()
            ModelNew.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(ModelNew.graph):
                relu_kernel[(4,)](ModelNew.source, ModelNew.kept, x.numel(), BLOCK=128)
        ModelNew.graph.replay()
        return ModelNew.kept

# case: operators_inside_of_a_benchmark -> runtime_compute aten::tanh
# use: copy
# task: torch.randn(8, 64) => lambda self, x: torch.tanh(x)
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        made = []
        triton.testing.do_bench(lambda: made.append(torch.tanh(x)), warmup=1, rep=1)
        copy_kernel[(4,)](made[-1], y, x.numel(), BLOCK=128)
        return y

# case: launched_in_a_benchmark_alone -> mismatch|runtime_compute
# use: relu
# task: torch.randn(8, 64) => lambda self, x: torch.relu(x)
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        triton.testing.do_bench(lambda: relu_kernel[(4,)](x, y, x.numel(), BLOCK=128), warmup=1, rep=1)
        return y

# case: weights_multiplied_in_a_graph_of_the_constructor -> runtime_compute the constructor computes
# use: matmul
# use: launch_matmul
# task: torch.randn(16, 24) => lambda self, x: x @ self.a @ self.b
# layers: self.a = nn.Parameter(torch.randn(24, 32)); self.b = nn.Parameter(torch.randn(32, 16))
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.randn(24, 32))
        self.b = nn.Parameter(torch.randn(32, 16))
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.ab = launch_matmul(self.a.detach(), self.b.detach())
        self.graph.replay()

    def forward(self, x):
        return launch_matmul(x, self.ab)

# case: graph_of_forward_on_other_contents -> runtime_compute a cast from int64 to uint8 changes values
# task: torch.randint(300, 100000, (8, 64)) => lambda self, x: (x % 256) * 3
@triton.jit
def three_times(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n).to(tl.int64) * 3, mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.x = torch.zeros(8, 64, dtype=torch.int64, device="cuda")
        self.low = torch.zeros(8, 64, dtype=torch.uint8, device="cuda")
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.low.copy_(self.x)

    def forward(self, x):
        self.x.copy_(x)
        self.graph.replay()
        y = torch.empty_like(x)
        three_times[(4,)](self.low, y, x.numel(), BLOCK=128)
        return y
