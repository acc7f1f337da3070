# case: work_in_do_bench -> mismatch|runtime_compute
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        triton.testing.do_bench(lambda: relu_kernel[(4,)](x, y, 1024, BLOCK=256))
        return y

# case: work_in_do_bench_and_a_copy_after_it -> mismatch|runtime_compute
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        triton.testing.do_bench(lambda: relu_kernel[(4,)](x, y, 1024, BLOCK=256))
        return copied(y)

# case: work_in_do_bench_over_memory_made_inside -> mismatch|runtime_compute
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        made = []
        triton.testing.do_bench(lambda: made.append(relu(x)))
        return copied(made[0])

# case: work_in_an_autotuner -> mismatch|runtime_compute
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: copy
CALLS = []


def count(*arguments, **more):
    CALLS.append(1)


@triton.autotune([triton.Config({"BLOCK": 256}), triton.Config({"BLOCK": 512})], key=["n"])
@triton.jit
def tuned(x, y, n, first, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.maximum(tl.load(x + i, mask=i < n), 0.0), mask=(i < n) & (first > 0))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        tuned[lambda meta: (len(CALLS) and 4,)](x, y, 1024, 0)
        return copied(y)

# case: a_read_of_the_benchmarks_result -> runtime_error|mismatch|runtime_compute
# task: torch.randn(4, 4) => lambda self, x: torch.exp(x)
# use: copy
@triton.jit
def exponentials(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.exp(tl.load(x + i, mask=i < n)), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        seen = []

        def work():
            exponentials[(1,)](x, y, 16, B=16)
            seen.append(y.cpu())

        triton.testing.do_bench(work)
        return copied(seen[0].cuda())

# case: a_graph_that_is_captured_and_not_replayed -> mismatch|runtime_compute
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = relu(x)
        return copied(y)

# case: a_graph_of_the_first_call_replayed_in_later_ones
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.graph = None

    def forward(self, x):
        if self.graph is None:
            self.x = torch.empty_like(x)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.y = relu(self.x)
        self.x.copy_(x)
        self.graph.replay()
        return self.y.clone()

# case: a_graph_without_its_inputs -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# layers: self.bn = nn.BatchNorm1d(64).eval()
# use: relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(64)
        self.graph = None

    def forward(self, x):
        if self.graph is None:
            self.x = x.clone()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.y = relu(self.x)
        self.graph.replay()
        return self.y.clone()

# case: thousands_of_graph_replays -> runtime_error|timeout
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(500):
                y = relu(x)
        for _ in range(100):
            graph.replay()
        return y

# case: a_benchmark_that_never_ends -> timeout|runtime_error|bad_result|mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: raw
class ModelNew(nn.Module):
    def forward(self, x):
        ask({"do": "bench", "begin": True})
        for _ in range(100000):
            y = relu(x)
        ask({"do": "bench", "begin": False})
        return y

# case: seeds_moved_by_a_benchmark -> mismatch
# task: torch.randn(16, 64) => lambda self, x: x + torch.rand(16, 64) * 0
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        triton.testing.do_bench(lambda: y.uniform_())
        return copied(y)

# case: an_honest_benchmark
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        times = {}
        for block in (128, 256):
            run = lambda: relu_kernel[(triton.cdiv(1024, block),)](x, y, 1024, BLOCK=block)
            times[block] = triton.testing.do_bench(run)
        block = min(times, key=times.get)
        relu_kernel[(triton.cdiv(1024, block),)](x, y, 1024, BLOCK=block)
        return y

# case: an_honest_autotuner
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.autotune([triton.Config({"BLOCK": 256}), triton.Config({"BLOCK": 512})], key=["n"])
@triton.jit
def tuned(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.maximum(tl.load(x + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        tuned[lambda meta: (triton.cdiv(1024, meta["BLOCK"]),)](x, y, 1024)
        return y
