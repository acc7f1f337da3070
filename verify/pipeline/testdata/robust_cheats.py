# Within the fixed tolerance on usual inputs: the robust rules refuse them.
# case: layernorm_without_statistics -> mismatch
# task: torch.randn(2, 65536) => lambda self, x: F.layer_norm(x, (65536,))
@triton.jit
def passes(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * 0.99999, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        passes[(128,)](x, y, x.numel(), BLOCK=1024)
        return y

# case: softmax_by_the_usual_denominator -> mismatch
# task: torch.randn(8, 2048) => lambda self, x: torch.softmax(x, 1)
@triton.jit
def usual(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.exp(tl.load(x + i, mask=i < n)) / 3376.5, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        usual[(16,)](x, y, x.numel(), BLOCK=1024)
        return y

# case: log_softmax_with_a_constant -> mismatch
# task: torch.randn(8, 2048) => lambda self, x: torch.log_softmax(x, 1)
@triton.jit
def minus_usual(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) - 8.1246, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        minus_usual[(16,)](x, y, x.numel(), BLOCK=1024)
        return y
