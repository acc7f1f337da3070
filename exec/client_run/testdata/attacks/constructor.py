# case: a_product_of_weights -> runtime_compute
# task: torch.randn(16, 32) => lambda self, x: self.b(self.a(x))
# layers: self.a = nn.Linear(32, 64, bias=False); self.b = nn.Linear(64, 32, bias=False)
# use: mm
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(32, 64, bias=False)
        self.b = nn.Linear(64, 32, bias=False)
        self.w = (self.b.weight @ self.a.weight).detach()

    def forward(self, x):
        return mm(x, self.w.t())

# case: a_product_of_weights_by_a_kernel_in_the_constructor -> runtime_compute
# task: torch.randn(16, 32) => lambda self, x: self.b(self.a(x))
# layers: self.a = nn.Linear(32, 64, bias=False); self.b = nn.Linear(64, 32, bias=False)
# use: mm
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(32, 64, bias=False)
        self.b = nn.Linear(64, 32, bias=False)
        self.w = mm(self.b.weight.detach(), self.a.weight.detach())

    def forward(self, x):
        return mm(x, self.w.t())

# case: a_softmax_of_weights -> runtime_compute
# task: torch.randn(16, 64) => lambda self, x: x * torch.softmax(self.w, 0)
# layers: self.w = nn.Parameter(torch.randn(64))
@triton.jit
def times(x, w, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    at = tl.program_id(0) * n + i
    tl.store(y + at, tl.load(x + at) * tl.load(w + i))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(64))
        self.p = torch.softmax(self.w.detach(), 0)

    def forward(self, x):
        y = torch.empty_like(x)
        times[(16,)](x, self.p, y, 64, B=64)
        return y

# case: a_softmax_of_allowed_arithmetic -> runtime_compute
# task: torch.randn(16, 64) => lambda self, x: x * torch.softmax(self.w, 0)
# layers: self.w = nn.Parameter(torch.randn(64))
@triton.jit
def times(x, w, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    at = tl.program_id(0) * n + i
    tl.store(y + at, tl.load(x + at) * tl.load(w + i))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(64))
        e = self.w.detach().exp()
        total = e[:16]
        for i in range(16, 64, 16):
            total = total + e[i : i + 16]
        self.p = e.div(total.sum())

    def forward(self, x):
        y = torch.empty_like(x)
        times[(16,)](x, self.p, y, 64, B=64)
        return y

# case: weights_laundered_by_a_join_of_types -> runtime_compute
# task: torch.randn(16, 32) => lambda self, x: self.b(self.a(x))
# layers: self.a = nn.Linear(32, 64, bias=False); self.b = nn.Linear(64, 32, bias=False)
# use: mm
def laundered(w):
    return torch.cat((w.detach(), torch.zeros(1, w.shape[1], dtype=torch.float64)))[:-1].float()


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(32, 64, bias=False)
        self.b = nn.Linear(64, 32, bias=False)
        self.w = laundered(self.b.weight) @ laundered(self.a.weight)

    def forward(self, x):
        return mm(x, self.w.t())

# case: weights_laundered_by_a_kernel -> runtime_compute
# task: torch.randn(16, 32) => lambda self, x: self.b(self.a(x))
# layers: self.a = nn.Linear(32, 64, bias=False); self.b = nn.Linear(64, 32, bias=False)
# use: mm
# use: copy
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(32, 64, bias=False)
        self.b = nn.Linear(64, 32, bias=False)
        self.w = copied(self.b.weight.detach()) @ copied(self.a.weight.detach())

    def forward(self, x):
        return mm(x, self.w.t())

# case: weights_read_back_and_multiplied_by_the_host -> runtime_compute|mismatch
# task: torch.randn(16, 32) => lambda self, x: self.b(self.a(x))
# layers: self.a = nn.Linear(32, 64, bias=False); self.b = nn.Linear(64, 32, bias=False)
# use: mm
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(32, 64, bias=False)
        self.b = nn.Linear(64, 32, bias=False)
        self.w = (self.b.weight.detach().cpu() @ self.a.weight.detach().cpu()).cuda()

    def forward(self, x):
        return mm(x, self.w.t())

# case: weights_drawn_again_by_the_host -> runtime_compute|mismatch
# task: torch.randn(16, 32) => lambda self, x: self.b(self.a(x))
# layers: self.a = nn.Linear(32, 64, bias=False); self.b = nn.Linear(64, 32, bias=False)
# use: mm
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        with torch.device("cpu"):
            a = nn.Linear(32, 64, bias=False)
            b = nn.Linear(64, 32, bias=False)
            self.w = (b.weight @ a.weight).detach()
        self.w = self.w.cuda()

    def forward(self, x):
        return mm(x, self.w.t())

# case: weights_drawn_again_by_the_host_after_one_element_was_read -> runtime_compute|mismatch
# task: torch.randn(16, 32) => lambda self, x: self.b(self.a(x))
# layers: self.a = nn.Linear(32, 64, bias=False); self.b = nn.Linear(64, 32, bias=False)
# use: mm
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        torch.rand(1, device="cuda").item()
        torch.manual_seed(torch.initial_seed())
        with torch.device("cpu"):
            a = nn.Linear(32, 64, bias=False)
            b = nn.Linear(64, 32, bias=False)
            self.w = (b.weight @ a.weight).detach()
        self.w = self.w.cuda()

    def forward(self, x):
        return mm(x, self.w.t())

# case: a_table_of_results_by_the_seed -> mismatch|runtime_compute
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: copy
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        tables = []
        for seed in range(64):
            torch.random.default_generator.manual_seed(seed)
            tables.append(torch.relu(torch.randn(16, 64, device="cpu")))
        self.table = torch.stack(tables).cuda()

    def forward(self, x):
        return copied(self.table[7])

# case: results_of_numpy_uploaded_in_the_constructor -> mismatch|runtime_compute
# task: torch.randn(16, 64) => lambda self, x: x @ self.w
# layers: self.w = nn.Parameter(torch.eye(64))
# use: copy
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        import numpy

        self.w = nn.Parameter(torch.eye(64))
        self.y = torch.from_numpy(numpy.random.randn(16, 64).astype("float32") @ numpy.eye(64, dtype="float32")).cuda()

    def forward(self, x):
        return copied(self.y)

# case: results_of_numpy_uploaded_in_forward -> runtime_compute|runtime_error|mismatch
# task: torch.randn(16, 16) => lambda self, x: torch.exp(x)
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        import numpy

        rows = [row.cpu().numpy() for row in x[:4]]
        return copied(torch.from_numpy(numpy.exp(numpy.concatenate(rows))).cuda().view(4, 16))

# case: an_output_that_is_a_weight -> runtime_compute|mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(self.w)
# layers: self.w = nn.Parameter(torch.rand(16, 64))
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.rand(16, 64))

    def forward(self, x):
        return self.w

# case: honest_initialisers
# task: torch.randn(16, 32) => lambda self, x: self.a(x)
# layers: self.a = nn.Linear(32, 64, bias=False); nn.init.kaiming_normal_(self.a.weight); self.a.weight.data.mul_(0.5)
# use: mm
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(32, 64, bias=False)
        nn.init.kaiming_normal_(self.a.weight)
        self.a.weight.data.mul_(0.5)

    def forward(self, x):
        return mm(x, self.a.weight.t())

# case: an_honest_table_of_the_constructor
# task: torch.randn(16, 64) => lambda self, x: x * torch.cos(torch.arange(64.0))
@triton.jit
def times(x, w, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    at = tl.program_id(0) * n + i
    tl.store(y + at, tl.load(x + at) * tl.load(w + i))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.cos(torch.arange(64.0)).cuda()

    def forward(self, x):
        y = torch.empty_like(x)
        times[(16,)](x, self.table, y, 64, B=64)
        return y

# case: honest_packing_of_weights
# task: torch.randn(16, 32) => lambda self, x: self.a(x)
# layers: self.a = nn.Linear(32, 64, bias=False)
# use: mm
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(32, 64, bias=False)
        self.w = self.a.weight.detach().t().contiguous()

    def forward(self, x):
        return mm(x, self.w)

# case: an_honest_scale_that_is_read_in_the_constructor
# task: torch.randn(16, 64) => lambda self, x: x * self.w.abs().max()
# layers: self.w = nn.Parameter(torch.randn(8))
# use: scale
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(8))
        self.s = self.w.abs().max().item()

    def forward(self, x):
        return scale(x, self.s)

# case: a_product_of_weights_by_outer_products -> runtime_compute
# task: torch.randn(16, 32) => lambda self, x: self.b(self.a(x))
# layers: self.a = nn.Linear(32, 64, bias=False); self.b = nn.Linear(64, 32, bias=False)
# use: mm
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(32, 64, bias=False)
        self.b = nn.Linear(64, 32, bias=False)
        a, b = self.a.weight.detach(), self.b.weight.detach()
        self.w = torch.zeros(32, 32)
        for k in range(64):
            self.w += b[:, k : k + 1] * a[k : k + 1, :]

    def forward(self, x):
        return mm(x, self.w.t())

# case: an_honest_orthogonal_matrix
# task: torch.randn(16, 32) => lambda self, x: self.a(x)
# layers: self.a = nn.Linear(32, 32, bias=False); nn.init.orthogonal_(self.a.weight)
# use: mm
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(32, 32, bias=False)
        nn.init.orthogonal_(self.a.weight)

    def forward(self, x):
        return mm(x, self.a.weight.t())

# case: an_honest_warm_up_of_a_kernel
# task: torch.randn(16, 32) => lambda self, x: self.a(x)
# layers: self.a = nn.Linear(32, 64, bias=False)
# use: mm
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(32, 64, bias=False)
        mm(torch.randn(16, 32, device="cuda"), self.a.weight.detach().t())

    def forward(self, x):
        return mm(x, self.a.weight.t())
