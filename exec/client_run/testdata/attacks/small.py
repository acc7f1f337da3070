# case: a_softmax_of_sixteen_elements -> runtime_compute
# task: torch.randn(4, 4) => lambda self, x: torch.softmax(x, 1)
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.softmax(x, 1)

# case: a_softmax_of_sixteen_elements_behind_a_copy -> runtime_compute
# task: torch.randn(4, 4) => lambda self, x: torch.softmax(x, 1)
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        return copied(torch.softmax(x, 1))

# case: a_small_reduction_piece_by_piece -> runtime_compute
# task: torch.randn(64) => lambda self, x: x.sum()
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        parts = torch.cat([x[i : i + 12].sum().view(1) for i in range(0, 60, 12)] + [x[60:]])
        return copied(parts)[:5].sum() + parts[5:].sum()

# case: more_small_operators_than_the_budget -> runtime_compute
# task: torch.randn(8, 64) => lambda self, x: x.sum(1)
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        sums = []
        for row in x:
            total = row[:16].sum()
            for i in range(16, 64, 16):
                total = total + row[i : i + 16].sum()
            sums.append(total.view(1))
        return copied(torch.cat(sums))

# case: python_sums_what_it_reads -> runtime_error|runtime_compute
# task: torch.randn(32) => lambda self, x: x.sum()
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        total = sum(x[i].item() for i in range(32))
        return copied(torch.full((1,), total, device="cuda"))[0]

# case: python_sums_more_than_it_may_read -> runtime_compute
# task: torch.randn(128) => lambda self, x: x.sum()
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.full((), sum(v.item() for v in x), device="cuda")

# case: python_computes_in_calls_that_are_all_live -> runtime_error|runtime_compute
# task: torch.randn(4, 8) => lambda self, x: self.bn(torch.exp(x))
# layers: self.bn = nn.BatchNorm1d(8).eval()
# use: copy
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(8)

    def forward(self, x):
        read = torch.cat([x[i : i + 1].cpu() for i in range(4)])
        return copied((torch.exp(read) / (1 + 1e-5) ** 0.5).cuda())

# case: a_result_of_the_host_behind_a_copy -> runtime_error|runtime_compute|mismatch
# task: torch.randn(4, 16) => lambda self, x: torch.exp(x)
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        return copied(torch.stack([torch.exp(row.cpu()) for row in x]).cuda())

# case: an_honest_branch_on_a_read_element
# task: torch.randn(16, 64) => lambda self, x: torch.where(x[:1, :1] > 0, x, -x)
# use: scale
class ModelNew(nn.Module):
    def forward(self, x):
        return scale(x, 1.0 if x[0, 0].item() > 0 else -1.0)

# case: an_honest_branch_on_is_nonzero
# task: torch.randn(16, 64) => lambda self, x: torch.where(x[:1, :1] > 0, x, -x)
# use: scale
class ModelNew(nn.Module):
    def forward(self, x):
        return scale(x, 1.0 if x[0, 0] > 0 else -1.0)

# case: an_honest_mean_of_partial_sums
# task: torch.randn(8, 512) => lambda self, x: x.mean()
@triton.jit
def sums(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + tl.program_id(0), tl.sum(tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=0.0), 0))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(8, device=x.device)
        sums[(8,)](x, y, 512, B=512)
        return y.sum() / x.numel()

# case: an_honest_read_of_a_setting
# task: torch.randn(16, 64) => lambda self, x: x * self.scale
# layers: self.scale = nn.Parameter(torch.tensor(3.0))
# use: scale
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(3.0))

    def forward(self, x):
        return scale(x, self.scale.item())

# case: an_honest_counter_of_batches
# task: torch.randn(16, 64) => lambda self, x: self.bn(x)
# layers: self.bn = nn.BatchNorm1d(64).eval()
@triton.jit
def norm(x, m, v, w, b, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    at = tl.program_id(0) * n + i
    z = (tl.load(x + at) - tl.load(m + i)) / tl.sqrt(tl.load(v + i) + 1e-5)
    tl.store(y + at, z * tl.load(w + i) + tl.load(b + i))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(64)

    def forward(self, x):
        y = torch.empty_like(x)
        bn = self.bn
        norm[(16,)](x, bn.running_mean, bn.running_var, bn.weight, bn.bias, y, 64, B=64)
        return y
