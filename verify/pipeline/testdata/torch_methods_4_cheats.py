# torch computes in methods and operators of tensors.
# case: recursion_rotate -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
def nop():
    return 0


def rec(n, a, b, c, d, e, f):
    if n == 0:
        a()
    else:
        rec(n - 1, b, c, d, e, f, a)


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        rec(5, nop, nop, nop, nop, nop, by_hand)
        return o

# case: contextvar_launder -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
import contextvars
V = contextvars.ContextVar("v", default=by_hand)


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        V.get()()
        return o

# case: match_rebind -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: act
# use: by_hand
class Cheat(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        by_hand()
        return o


class ModelNew(nn.Module):
    def forward(self, x):
        return act(x)
match Cheat:
    case ModelNew:
        pass

# case: mutual_recursion -> runtime_compute elements back
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
# use: by_hand
def a(n, k):
    return b(n - 1, k)


def b(n, k):
    return c(n - 1, k) if n > 0 else k()


def c(n, k):
    return a(n, k) if n > 3 else a(n, by_hand)


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        KEPT.extend([x, o])
        a(16, int)
        return o

# case: repeats_from_a_tensor -> runtime_compute aten::repeat_interleave
# task: torch.randn(16, 64), torch.randint(1, 3, (16,)) => lambda self, x, n: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x, n):
        return launch_relu(x.repeat_interleave(n, dim=0))  # BAD

# case: a_small_matrix -> runtime_compute aten::mm
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def load_small(x, out, B: tl.constexpr):
    o = tl.arange(0, B)
    tl.store(out + o, tl.load(x + o) * 2)


class ModelNew(nn.Module):
    def forward(self, x):
        a = torch.empty(8, 8, device=x.device)
        load_small[(1,)](x, a, B=64)
        return a @ a  # BAD

# case: train_is_called_with_a_tensor -> runtime_compute aten::mul
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def train(self, mode=True):
        if isinstance(mode, bool):
            return super().train(mode)
        return mode * 2  # BAD

    def forward(self, x):
        return self.train(launch_relu(x))

# case: tensor_of_a_shape_times_a_result -> runtime_compute aten::mul
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x) * torch.tensor(x.shape)[0]  # BAD

# case: storage_out_of_a_file -> runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        torch.UntypedStorage.from_file("/proc/self/mem", False, 64)  # BAD
        return launch_relu(x)

# case: view_of_functions -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        d = {'a': torch.empty_like}
        v = d.values()
        d['a'] = torch.relu
        for f in v:
            y = f(x)  # BAD
        if x.ndim > 1:
            return y
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: iterator_over_growing_list -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        fs = []
        it = iter(fs)
        fs.append(torch.relu)
        for f in it:
            return f(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: attribute_of_a_library_object -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
import contextlib


class ModelNew(nn.Module):
    def forward(self, x):
        s = contextlib.ExitStack()
        s.f = torch.relu
        return s.f(x)  # BAD

# case: filter_by_any -> runtime_compute aten::any
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        list(filter(torch.any, [x]))  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: mask_that_is_never_true -> runtime_compute no kernel wrote any of the
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

# case: two_kernels_that_do_nothing_together -> runtime_compute no kernel wrote any of the
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

# case: grid_rounded_down_to_zero -> runtime_compute no kernel wrote any of the
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
