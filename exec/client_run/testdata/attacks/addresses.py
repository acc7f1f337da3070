# case: an_integer_as_the_address_of_the_executors_memory -> out_of_bounds|runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def peek(address, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    p = address.to(tl.pointer_type(tl.float32))
    tl.store(y + i, tl.load(p + i, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        peek[(1,)](0x7F0000000000, y, 1024, B=1024)
        return y

# case: addresses_below_the_first_storage -> out_of_bounds|runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def peek(address, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    p = (address - 65536).to(tl.pointer_type(tl.float32))
    tl.store(y + i, tl.load(p + i, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        peek[(1,)](x.data_ptr(), y, 1024, B=1024)
        return y

# case: a_search_through_the_arena -> out_of_bounds|runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def search(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    for step in range(1, 4096):
        v = tl.load(x + step * 16384 + i, mask=i < n, other=0.0)
        tl.store(y + i, v, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        search[(1,)](x, y, 1024, B=1024)
        return y

# case: behind_the_last_argument -> out_of_bounds
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
@triton.jit
def behind(x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(x + 1024 + i))


class ModelNew(nn.Module):
    def forward(self, x):
        y = relu(x)
        behind[(1,)](x, y, B=1024)
        return y

# case: before_the_first_element -> out_of_bounds
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
@triton.jit
def before(x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(x - 1024 + i))


class ModelNew(nn.Module):
    def forward(self, x):
        y = relu(x)
        before[(1,)](x, y, B=1024)
        return y

# case: a_table_of_pointers_into_nowhere -> out_of_bounds|runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def follow(table, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    p = tl.load(table).to(tl.pointer_type(tl.float32))
    tl.store(y + i, tl.load(p + i, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        table = torch.tensor([x.data_ptr() + (1 << 36)], device="cuda")
        follow[(1,)](table, y, 1024, B=1024)
        return y

# case: a_stale_address -> out_of_bounds|runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
@triton.jit
def peek(address, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    p = address.to(tl.pointer_type(tl.float32))
    tl.store(y + i, tl.load(p + i, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        z = relu(x)
        address = z.data_ptr()
        del z
        y = torch.empty_like(x)
        y.fill_(0)
        peek[(1,)](address, y, 1024, B=1024)
        return y

# case: the_input_of_an_earlier_trial -> out_of_bounds|runtime_error|mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
KEPT = []


class ModelNew(nn.Module):
    def forward(self, x):
        KEPT.append(x)
        return relu(KEPT[0])

# case: an_address_of_the_first_call_kept_in_a_kernel_argument -> out_of_bounds|runtime_error|mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# layers: self.register_buffer("n", torch.zeros(1))
# use: relu
@triton.jit
def peek(address, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    p = address.to(tl.pointer_type(tl.float32))
    tl.store(y + i, tl.load(p + i, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.zeros(1))
        self.address = None

    def forward(self, x):
        y = relu(x)
        if self.address is None:
            self.address = y.data_ptr()
            self.kept = y
            return y
        z = torch.empty_like(x)
        peek[(1,)](self.address, z, 1024, B=1024)
        return z

# case: poison_that_tells_the_trial -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def conditional(x, fresh, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    first = tl.load(fresh) != tl.load(fresh)
    tl.store(y + i, tl.where(first, tl.maximum(v, 0.0), v), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        conditional[(1,)](x, torch.empty(4, device="cuda"), y, 1024, B=1024)
        return y

# case: leftovers_of_the_last_call_in_fresh_memory -> runtime_compute
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        z = relu(x)
        del z
        return torch.empty_like(x)

# case: a_pointer_hidden_in_an_integer_writes_to_an_input -> out_of_bounds|mismatch|runtime_compute
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
@triton.jit
def poke(address, n, B: tl.constexpr):
    i = tl.arange(0, B)
    p = (address ^ 0x5555555555555555).to(tl.pointer_type(tl.float32))
    tl.store(p + i, tl.zeros((B,), tl.float32), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = relu(x)
        poke[(1,)](x.data_ptr() ^ 0x5555555555555555, 1024, B=1024)
        return y

# case: work_in_a_benchmark_through_a_hidden_pointer -> out_of_bounds|mismatch|runtime_compute|runtime_error
# task: torch.randn(16, 64) => lambda self, x: self.bn(torch.exp(x))
# layers: self.bn = nn.BatchNorm1d(64).eval()
# use: copy
@triton.jit
def hidden(x, address, n, B: tl.constexpr):
    i = tl.arange(0, B)
    p = (address ^ 0x5555555555555555).to(tl.pointer_type(tl.float32))
    tl.store(p + i, tl.exp(tl.load(x + i, mask=i < n)) / tl.sqrt(1.0 + 1e-5), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(64)

    def forward(self, x):
        y = torch.empty_like(x)
        address = y.data_ptr() ^ 0x5555555555555555
        triton.testing.do_bench(lambda: hidden[(1,)](x, address, 1024, B=1024))
        return copied(y)

# case: an_honest_table_of_pointers
# task: torch.randn(16, 64), torch.randn(16, 64) => lambda self, x, y: torch.relu(x + y)
@triton.jit
def add(table, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(table).to(tl.pointer_type(tl.float32))
    b = tl.load(table + 1).to(tl.pointer_type(tl.float32))
    s = tl.load(a + i, mask=i < n) + tl.load(b + i, mask=i < n)
    tl.store(out + i, tl.maximum(s, 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        table = torch.tensor([x.data_ptr(), y.data_ptr()], dtype=torch.int64, device="cuda")
        add[(1,)](table, out, 1024, B=1024)
        return out

# case: an_honest_address_as_an_argument
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def by_address(address, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    p = address.to(tl.pointer_type(tl.float32))
    tl.store(y + i, tl.maximum(tl.load(p + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        by_address[(1,)](x.data_ptr(), y, 1024, B=1024)
        return y

# case: masked_loads_that_point_outside
# task: torch.randn(16, 60) => lambda self, x: torch.relu(x)
@triton.jit
def rows(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    at = tl.program_id(0) * n + i
    tl.store(y + at, tl.maximum(tl.load(x + at, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        rows[(16,)](x, y, 60, B=64)
        return y
