# Kernels that are not used, or do not matter.
# case: kernel_false_constexpr_branch -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(x_ptr, y_ptr, n, DO: tl.constexpr, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    if DO:
        tl.store(y_ptr + o, tl.exp(tl.load(x_ptr + o)), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = x.clone()
        k[(1,)](x, y, 1, DO=False, BLOCK=16)
        return y

# case: kernel_early_return -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    if n >= 0:
        return
    tl.store(y_ptr + o, tl.exp(tl.load(x_ptr + o)), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = x.clone()
        k[(1,)](x, y, 1, BLOCK=16)
        return y

# case: kernel_computes_then_stores_input -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    z = tl.exp(x) / tl.sum(tl.exp(x))
    z = x
    tl.store(y_ptr + o, z, mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        k[(1,)](x, y, 1, BLOCK=16)
        return y

# case: kernel_multiplies_by_one -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(x_ptr, y_ptr, n, ONE: tl.constexpr, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    tl.store(y_ptr + o, tl.load(x_ptr + o, mask=o < n) * ONE, mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        k[(1,)](x, y, 1, ONE=1, BLOCK=16)
        return y

# case: kernel_where_same -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    tl.store(y_ptr + o, tl.where(x > 0, x, x), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        k[(1,)](x, y, 1, BLOCK=16)
        return y

# case: kernel_min_max_same -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    tl.store(y_ptr + o, tl.maximum(x, x), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        k[(1,)](x, y, 1, BLOCK=16)
        return y

# case: kernel_double_negation -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    tl.store(y_ptr + o, -(-x), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        k[(1,)](x, y, 1, BLOCK=16)
        return y

# case: kernel_cast_roundtrip -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    tl.store(y_ptr + o, x.to(tl.float32).to(x.dtype), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        k[(1,)](x, y, 1, BLOCK=16)
        return y

# case: store_guarded_by_impossible_index -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if tl.program_id(0) < 0:
        tl.store(y_ptr + o, tl.exp(tl.load(x_ptr + o)), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = x.clone()
        k[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
        return y

# case: store_mask_and_false -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.exp(tl.load(x_ptr + o, mask=o < n))
    tl.store(y_ptr + o, v, mask=(o < n) & (o < 0))


class ModelNew(nn.Module):
    def forward(self, x):
        y = x.clone()
        k[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
        return y

# case: empty_loop_hides_store -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    for i in range(0):
        tl.store(y_ptr + o, tl.exp(tl.load(x_ptr + o)), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = x.clone()
        k[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
        return y

# case: negative_size_guard -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if n < 0:
        tl.store(y_ptr + o, tl.exp(tl.load(x_ptr + o)), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = x.clone()
        k[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
        return y

# case: copy_through_two_variables -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x_ptr + o, mask=o < n)
    b = a
    c = b + 0.0
    d = c * 1.0
    tl.store(y_ptr + o, d, mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
        return y

# case: half_plus_half_copy -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x_ptr + o, mask=o < n)
    tl.store(y_ptr + o, a * 0.5 + a * 0.5, mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
        return y

# case: double_minus_itself_copy -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x_ptr + o, mask=o < n)
    tl.store(y_ptr + o, 2.0 * a - a, mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
        return y

# case: device_function_identity -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def ident(v):
    return v * 1.0


@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + o, ident(tl.load(x_ptr + o, mask=o < n)), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
        return y

# case: branch_both_store_input -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x_ptr + o, mask=o < n)
    if n > 4:
        tl.store(y_ptr + o, a, mask=o < n)
    else:
        tl.store(y_ptr + o, a, mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
        return y

# case: loop_of_copies -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    for s in range(0, n, BLOCK):
        q = s + tl.arange(0, BLOCK)
        tl.store(y_ptr + q, tl.load(x_ptr + q, mask=q < n), mask=q < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
        return y
