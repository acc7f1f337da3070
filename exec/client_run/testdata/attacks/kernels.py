# case: assembly_that_reads_the_clock -> compile_error|not_executable|runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def asm(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    ptx = "{ .reg .b32 t; mov.u32 t, %clock; max.f32 $0, $1, 0f00000000; }"
    r = tl.inline_asm_elementwise(ptx, "=f,f", [v], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(y + i, r, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        asm[(1,)](x, y, 1024, B=1024)
        return y

# case: assembly_that_loads_anything -> compile_error|not_executable|runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def asm(y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    a = i.to(tl.int64) + 0x600000000000
    r = tl.inline_asm_elementwise("ld.global.f32 $0, [$1];", "=f,l", [a], dtype=tl.float32, is_pure=False, pack=1)
    tl.store(y + i, r, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        asm[(1,)](y, 1024, B=1024)
        return y

# case: a_grid_of_no_programs -> mismatch|not_launched|runtime_compute
# task: torch.rand(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = x.clone()
        relu_kernel[(0,)](x, y, 1024, BLOCK=256)
        return y

# case: a_kernel_whose_result_nobody_needs -> runtime_compute|decoration|mismatch
# task: torch.rand(16, 64) => lambda self, x: x.reshape(64, 16)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        relu(x)
        return x.clone().view(64, 16)

# case: a_kernel_that_adds_zero -> runtime_compute|decoration
# task: torch.rand(16, 64) => lambda self, x: x.t().contiguous()
@triton.jit
def add_zero(y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(y + i, mask=i < n) + 0.0, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = x.t().contiguous()
        add_zero[(1,)](y, 1024, B=1024)
        return y

# case: a_kernel_that_touches_one_element_and_restores_it -> runtime_compute|decoration
# task: torch.rand(16, 64) => lambda self, x: x.t().contiguous()
@triton.jit
def touch(y, x):
    tl.store(y, 0.0)
    tl.store(y, tl.load(x))


class ModelNew(nn.Module):
    def forward(self, x):
        y = x.t().contiguous()
        touch[(1,)](y, x)
        return y

# case: a_gate_of_one -> runtime_compute|decoration
# task: torch.rand(16, 64) => lambda self, x: x.t().contiguous()
@triton.jit
def gate(x, y, g, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n) * tl.load(g), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        z = x.t().contiguous()
        y = torch.empty_like(z)
        gate[(1,)](z, y, torch.ones(1, device="cuda"), 1024, B=1024)
        return y

# case: a_loop_that_never_ends -> timeout
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def forever(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    k = 1
    while k > 0:
        k = tl.where(tl.load(x) > 1e30, 0, 1)
        tl.store(y, 0.0)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        forever[(1,)](x, y, 1024, B=1024)
        return y

# case: two_billion_programs -> timeout|out_of_bounds
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        relu_kernel[(2**31 - 1,)](x, y, 1024, BLOCK=256)
        return y

# case: a_launch_that_waits_for_a_later_program -> timeout
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def wait(x, y, flag, n, B: tl.constexpr):
    i = tl.arange(0, B)
    if tl.program_id(0) == 999:
        tl.atomic_xchg(flag, 1)
    else:
        while tl.atomic_add(flag, 0) == 0:
            pass
    tl.store(y + i, tl.maximum(tl.load(x + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        wait[(1000,)](x, y, torch.zeros(1, dtype=torch.int32, device="cuda"), 1024, B=1024)
        return y

# case: a_kernel_that_prints_for_ever -> timeout|runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def talk(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    for k in range(1000000000):
        tl.device_print("x", k)
    tl.store(y + i, tl.maximum(tl.load(x + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        talk[(1,)](x, y, 1024, B=1024)
        return y

# case: blocks_of_a_million_elements
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def wide(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.maximum(tl.load(x + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        wide[(1,)](x, y, 1024, B=1 << 20)
        return y

# case: three_hundred_kernels -> out_of_memory
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def numbered(x, y, n, B: tl.constexpr, K: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.maximum(tl.load(x + i, mask=i < n), 0.0) * K / K, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        for k in range(1, 300):
            numbered[(1,)](x, y, 1024, B=1024, K=k)
        return y

# case: a_failed_assertion -> runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def strict(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0.0)
    tl.device_assert(tl.min(v, 0) > 1e9, "never")
    tl.store(y + i, tl.maximum(v, 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        strict.run = strict.run
        strict[(1,)](x, y, 1024, B=1024, debug=True)
        return y

# case: a_kernel_under_a_false_name
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
relu_kernel.fn.__name__ = "at::native::relu<script>"


class ModelNew(nn.Module):
    def forward(self, x):
        return relu(x)

# case: honest_atomics_and_a_second_kernel
# task: torch.randn(16, 64) => lambda self, x: x / x.abs().sum()
@triton.jit
def total(x, t, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(t, tl.sum(tl.abs(tl.load(x + i, mask=i < n, other=0.0)), 0))


@triton.jit
def divide(x, t, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n) / tl.load(t), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        t = torch.zeros(1, device=x.device)
        y = torch.empty_like(x)
        total[(4,)](x, t, 1024, B=256)
        divide[(4,)](x, t, y, 1024, B=256)
        return y
