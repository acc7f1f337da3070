# Weights prepared ahead, other tensors of torch, and programs that attack their surroundings.
# case: weights_multiplied_in_the_constructor -> runtime_compute the constructor computes
# use: matmul
# use: launch_matmul
# task: torch.randn(16, 24) => lambda self, x: x @ self.a @ self.b
# layers: self.a = nn.Parameter(torch.randn(24, 32)); self.b = nn.Parameter(torch.randn(32, 16))
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.randn(24, 32))
        self.b = nn.Parameter(torch.randn(32, 16))
        self.ab = launch_matmul(self.a.detach(), self.b.detach())

    def forward(self, x):
        return launch_matmul(x, self.ab)

# case: weights_multiplied_by_torch_in_a_hook -> runtime_compute|mismatch
# use: matmul
# use: launch_matmul
# task: torch.randn(16, 24) => lambda self, x: x @ self.a @ self.b
# layers: self.a = nn.Parameter(torch.randn(24, 32)); self.b = nn.Parameter(torch.randn(32, 16))
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.randn(24, 32))
        self.b = nn.Parameter(torch.randn(32, 16))
        self.ab = None

    def _apply(self, fn, recurse=True):
        super()._apply(fn, recurse)
        self.ab = (self.a.detach() @ self.b.detach()).contiguous()
        return self

    def forward(self, x):
        return launch_matmul(x, self.ab)

# case: result_of_the_weights_alone -> runtime_compute
# use: copy
# task: torch.randn(4, 4) => lambda self, x: torch.softmax(self.w, 1)
# layers: self.w = nn.Parameter(torch.randn(64, 64))
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(64, 64))
        self.ready = torch.softmax(self.w.detach(), 1)

    def forward(self, x):
        y = torch.empty_like(self.ready)
        copy_kernel[(32,)](self.ready, y, y.numel(), BLOCK=128)
        return y

# case: nested_tensors_compute -> runtime_compute|runtime_error
# use: copy
# task: torch.randn(4, 8, 8) => lambda self, x: torch.softmax(x, -1)
class ModelNew(nn.Module):
    def forward(self, x):
        n = torch.nested.nested_tensor(list(x.unbind(0)))
        s = torch.softmax(n, -1).to_padded_tensor(0.0)
        y = torch.empty_like(x)
        copy_kernel[(2,)](s, y, x.numel(), BLOCK=128)
        return y

# case: sparse_rows_compute -> runtime_compute|runtime_error
# use: copy
# task: torch.randn(16, 16), torch.randn(16, 16) => lambda self, a, b: a @ b
class ModelNew(nn.Module):
    def forward(self, a, b):
        s = torch.sparse.mm(a.to_sparse_csr(), b)
        y = torch.empty_like(a)
        copy_kernel[(2,)](s, y, 256, BLOCK=128)
        return y

# case: masked_tensors_compute -> runtime_compute|runtime_error
# use: copy
# task: torch.randn(8, 32) => lambda self, x: x.sum(1)
class ModelNew(nn.Module):
    def forward(self, x):
        from torch.masked import masked_tensor

        m = masked_tensor(x, torch.ones_like(x, dtype=torch.bool))
        s = torch.sum(m, 1).get_data()
        y = torch.empty(8, device=x.device)
        copy_kernel[(1,)](s, y, 8, BLOCK=8)
        return y

# case: distribution_computes -> runtime_compute|runtime_error
# use: copy
# task: torch.randn(8, 32) => lambda self, x: torch.distributions.Normal(0.0, 1.0).log_prob(x)
class ModelNew(nn.Module):
    def forward(self, x):
        d = torch.distributions.Normal(torch.zeros((), device=x.device), torch.ones((), device=x.device), validate_args=False)
        y = torch.empty_like(x)
        copy_kernel[(2,)](d.log_prob(x), y, x.numel(), BLOCK=128)
        return y

# case: memory_through_a_foreign_interface -> crashed|runtime_error|killed_worker|exited|runtime_compute
# task: torch.randn(8, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
import ctypes


class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        held = (ctypes.c_float * x.numel()).from_address(x.data_ptr())
        for i, v in enumerate(held):
            held[i] = max(v, 0.0)
        return x

# case: kernel_reads_behind_its_input -> out_of_bounds
# task: torch.randn(8, 64) => lambda self, x: torch.relu(x)
@triton.jit
def look_behind(x, y, n, far, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i + far, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        look_behind[(4,)](x, y, x.numel(), 4096, BLOCK=128)
        return y

# case: kernel_reads_an_address_of_its_own -> out_of_bounds|runtime_error|not_executable
# task: torch.randn(8, 64) => lambda self, x: torch.relu(x)
@triton.jit
def look_anywhere(x, y, n, where, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    p = where.to(tl.int64).to(tl.pointer_type(tl.float32))
    tl.store(y + i, tl.load(p + i, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        look_anywhere[(4,)](x, y, x.numel(), 0x7F0000000000, BLOCK=128)
        return y

# case: kernel_writes_into_its_input -> mismatch|runtime_error|runtime_compute
# task: torch.randn(8, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        relu_kernel[(4,)](x, x, x.numel(), BLOCK=128)
        return x

# case: kernel_never_ends -> timeout
# task: torch.randn(8, 64) => lambda self, x: torch.relu(x)
@triton.jit
def waits(x, y, flag, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    while tl.atomic_add(flag, 0) == 0:
        pass
    tl.store(y + i, tl.maximum(tl.load(x + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        waits[(4,)](x, y, torch.zeros(1, dtype=torch.int32, device=x.device), x.numel(), BLOCK=128)
        return y

# case: kernel_traps -> not_executable|runtime_error|compile_error
# task: torch.randn(8, 64) => lambda self, x: torch.relu(x)
@triton.jit
def traps(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    v = tl.inline_asm_elementwise("trap; mov.b32 $0, $1;", "=r,r", [v], dtype=tl.float32, is_pure=False, pack=1)
    tl.store(y + i, v, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        traps[(4,)](x, y, x.numel(), BLOCK=128)
        return y

# case: answers_for_the_executor -> bad_result|runtime_error|mismatch|exited|runtime_compute
# task: torch.randn(8, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
import os


class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        for name in os.listdir("/proc/self/fd"):
            try:
                os.write(int(name), b'{"do": "output", "value": null}' * 4)
            except OSError:
                pass
        return x

# case: closes_all_descriptors -> bad_result|exited|runtime_error|crashed
# task: torch.randn(8, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
import os


class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        os.closerange(0, 256)
        return y

# case: extra_output_by_the_session -> bad_result|runtime_error|mismatch|runtime_compute|exited
# task: torch.randn(8, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
import sys


class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        for name, module in list(sys.modules.items()):
            session = getattr(module, "SESSION", None)
            if session is not None and hasattr(session, "connection"):
                session.call({"do": "output", "value": {"t": module.__dict__.get("describe", lambda t: None)(x)}})
        return y

# case: expanded_result_without_end -> mismatch|output_limit|bad_result|runtime_error
# task: torch.randn(8, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x).unsqueeze(0).expand(1 << 40, 8, 64)

# case: half_a_result -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.zeros_like(x)
        relu_kernel[(4,)](x, y, x.numel() // 2, BLOCK=128)
        return y

# case: tiles_beyond_shared_memory -> runtime_error out of resource: shared memory, Required:
# task: torch.randn(64, 256), torch.randn(256, 64) => lambda self, a, b: a @ b
# use: matmul
class ModelNew(nn.Module):
    def forward(self, a, b):
        c = torch.empty(64, 64, device=a.device)
        matmul_kernel[(1, 1)](a, b, c, 64, 64, 256, 256, 1, 64, 1, 64, 1, BM=256, BN=256, BK=128, num_stages=4)
        return c

# case: more_threads_than_a_block_has -> runtime_error out of resource: threads, Required: 2048
# task: torch.randn(8, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        relu_kernel[(1,)](x, y, x.numel(), BLOCK=4096, num_warps=64)
        return y
