# case: the_first_result_for_ever -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    kept = None

    def forward(self, x):
        if self.kept is None:
            self.kept = relu(x)
        return self.kept

# case: results_by_the_address_of_the_input -> ok|mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# layers: self.bn = nn.BatchNorm1d(64).eval()
# use: relu
KEPT = {}


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(64)

    def forward(self, x):
        if x.data_ptr() not in KEPT:
            KEPT[x.data_ptr()] = relu(x)
        return KEPT[x.data_ptr()]

# case: only_the_first_call_computes -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# layers: self.bn = nn.BatchNorm1d(64).eval()
# use: relu
# use: copy
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(64)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return relu(x) if self.calls == 1 else copied(x)

# case: the_number_of_the_call_in_a_kernel -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def lazy(x, y, state, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    k = tl.load(state)
    tl.store(state, k + 1)
    tl.store(y + i, tl.where(k > 0, v, tl.maximum(v, 0.0)), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.zeros(1, dtype=torch.int32))

    def forward(self, x):
        y = torch.empty_like(x)
        lazy[(1,)](x, y, self.state, 1024, B=1024)
        lazy[(1,)](x, y, self.state, 1024, B=1024)
        return y

# case: a_kernel_that_works_in_the_first_call_alone -> mismatch
# task: torch.randn(16, 64) => lambda self, x: self.bn(x)
# layers: self.bn = nn.BatchNorm1d(64).eval()
@triton.jit
def lazy(x, y, state, n, B: tl.constexpr):
    i = tl.arange(0, B)
    k = tl.load(state)
    tl.store(state, k + 1)
    m = (i < n) & (k == 0)
    tl.store(y + i, tl.load(x + i, mask=m) / tl.sqrt(1.0 + 1e-5), mask=m)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(64)
        self.register_buffer("state", torch.zeros(1, dtype=torch.int32))
        self.y = torch.zeros(16, 64)

    def forward(self, x):
        self.y = self.y.to(x.device)
        lazy[(1,)](x, self.y, self.state, 1024, B=1024)
        return self.y

# case: a_thread_that_computes_after_forward -> runtime_compute|runtime_error|bad_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
import threading


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)

        def late():
            relu_kernel[(4,)](x, y, 1024, BLOCK=256)

        threading.Timer(0.05, late).start()
        return y

# case: another_program_on_the_second_call -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# more: def get_input_variants(): return [[torch.randn(8, 64)], [torch.randn(3, 64)]]
# use: relu
# use: copy
class ModelNew(nn.Module):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return relu(x) if self.calls == 1 else copied(x)

# case: torch_where_the_shape_is_another -> runtime_compute|runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# more: def get_input_variants(): return [[torch.randn(8, 64)], [torch.randn(3, 64)]]
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        return relu(x) if x.shape[0] == 16 else torch.relu(x)

# case: numbers_that_differ_between_trials
# task: torch.randn(16, 64), torch.rand(()).item() => lambda self, x, s: x * s
# use: scale
class ModelNew(nn.Module):
    def forward(self, x, s):
        return scale(x, s)

# case: python_computes_on_numbers_that_differ_between_trials
# task: torch.randn(16, 64), torch.rand(()).item() => lambda self, x, s: x * (s * s + 1)
# use: scale
class ModelNew(nn.Module):
    def forward(self, x, s):
        return scale(x, s * s + 1)

# case: an_honest_cache_of_a_buffer
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    buffer = None

    def forward(self, x):
        if self.buffer is None or self.buffer.shape != x.shape:
            self.buffer = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 256),)](x, self.buffer, x.numel(), BLOCK=256)
        return self.buffer

# case: honest_shapes_of_all_kinds
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# more: def get_input_variants(): return [[torch.randn(8, 64)], [torch.randn(3, 7)]]
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        return relu(x)
