# case: mask_that_is_never_true -> runtime_compute
# task: torch.rand(8, 40) => lambda self, x: torch.relu(x)
@triton.jit
def k(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs >= n
    x = tl.load(x_ptr + offs, mask=mask)
    tl.store(x_ptr + offs, tl.maximum(x, 0.0), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        out = x.clone()
        k[(1,)](out, out.numel(), BLOCK=64)
        return out

# case: tail_beyond_the_end -> runtime_compute
# task: torch.randn(6, 32), torch.randn(6, 32) => lambda self, x, y: torch.cat((x, y), dim=1)
@triton.jit
def k(out_ptr, start, n, BLOCK: tl.constexpr):
    offs = start + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(out_ptr + offs, mask=offs < n, other=0.0)
    tl.store(out_ptr + offs, tl.exp(v) - 1.0, mask=offs < n)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.cat((x, y), dim=1)
        k[(2,)](out, out.numel(), out.numel(), BLOCK=128)
        return out

# case: scratch_beside_a_copy -> runtime_compute
# task: torch.randn(16, 24) => lambda self, x: x.t().contiguous()
@triton.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, tl.exp(x), mask=offs < n)


class ModelNew(nn.Module):
    def forward(self, x):
        scratch = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 256),)](x, scratch, x.numel(), BLOCK=256)
        both = torch.stack((scratch, x))
        return both[1].t().contiguous()

# case: scratch_beside_a_cast -> runtime_compute
# task: torch.randn(5, 70) => lambda self, x: x.to(torch.float64)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.cat((torch.empty_like(x), x))
        relu_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out[x.shape[0]:].double()

# case: weight_of_zero -> decoration
# task: torch.randn(4, 100) => lambda self, x: x.reshape(8, 50)
@triton.jit
def k(out_ptr, gate_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(out_ptr + offs, mask=offs < n)
    gate = tl.load(gate_ptr)
    tl.store(out_ptr + offs, v + gate * tl.sin(v), mask=offs < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        out = x.clone()
        k[(triton.cdiv(x.numel(), 256),)](out, self.gate, x.numel(), BLOCK=256)
        return out.view(8, 50)

# case: addition_below_the_tolerance -> decoration
# task: torch.randn(4, 100) => lambda self, x: x.reshape(100, 4)
@triton.jit
def k(out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(out_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, v + 1e-6 * tl.cos(v), mask=offs < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = x.clone()
        k[(triton.cdiv(x.numel(), 256),)](out, x.numel(), BLOCK=256)
        return out.view(100, 4)

# case: two_kernels_that_do_nothing_together -> runtime_compute
# task: torch.randn(4, 64) => lambda self, x: x.reshape(8, 32)
# use: relu
@triton.jit
def gated(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, tl.exp(v), mask=(offs < n) & (v > 1e30))


class ModelNew(nn.Module):
    def forward(self, x):
        out = x.clone()
        scratch = torch.empty_like(x)
        relu_kernel[(1,)](x, scratch, x.numel(), BLOCK=256)
        gated[(1,)](scratch, out, x.numel(), BLOCK=256)
        return out.view(8, 32)

# case: grid_rounded_down_to_zero -> runtime_compute
# task: torch.randn(4, 64) => lambda self, x: torch.exp(x)
@triton.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, tl.exp(x), mask=offs < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        k[(x.numel() // 1024,)](x, out, x.numel(), BLOCK=1024)
        return out

# case: memory_grown_but_not_written -> mismatch
# task: torch.randn(4, 64) => lambda self, x: torch.exp(x)
@triton.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, tl.exp(x), mask=offs < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(0, device=x.device).resize_(4, 64)
        k[(1,)](x, out, x.numel() // 2, BLOCK=256)
        return out
