# torch computes behind autograd, transforms and tracers.
# case: einsum_in_autograd -> runtime_compute aten::bmm
# task: torch.randn(16, 64), torch.randn(64, 16) => lambda self, a, b: torch.relu(a)
# use: relu
# use: launch_relu
class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        return launch_relu(torch.einsum("ij,jk->ik", a, b))  # BAD

    @staticmethod
    def backward(ctx, g):
        return g, g


class ModelNew(nn.Module):
    def forward(self, a, b):
        return Op.apply(a, b)

# case: torch_compile -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        f = torch.compile(lambda t: t.softmax(-1))  # BAD
        return launch_relu(f(x))

# case: vmap -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(torch.vmap(torch.exp)(x))  # BAD

# case: autograd_function_torch_forward -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
# use: relu
# use: launch_relu
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        launch_relu(x)
        return x.softmax(-1)  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return Fn.apply(x)

# case: vmap_function -> runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.vmap(lambda r: launch_relu(r) / r.sum())(x)

# case: functional_call -> runtime_compute aten::addmm
# task: torch.randn(64, 8) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        return launch_relu(torch.func.functional_call(self.fc, dict(self.fc.named_parameters()), (x,)))  # BAD

# case: gradient_of_logsumexp_is_softmax -> runtime_compute aten::amax
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        z = y.detach().requires_grad_()
        s = torch.logsumexp(z, -1).sum()  # BAD
        return torch.autograd.grad(s, z)[0]

# case: func_grad -> runtime_compute aten::pow
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.func.grad(lambda v: v.pow(2).sum())(launch_relu(x))  # BAD

# case: backward_accumulates_grad -> runtime_compute aten::mul
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        w = launch_relu(x).requires_grad_(True)
        (w * w).sum().backward()  # BAD
        return w.grad

# case: autograd_ctx_saves_result -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.tanh())  # BAD
        launch_relu(x)
        return ctx.to_save[0]


class ModelNew(nn.Module):
    def forward(self, x):
        return Fn.apply(x)

# case: ignored_by_jit_but_called -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
@torch.jit.ignore
def ref(x):
    return torch.exp(x)  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(ref(x))

# case: gradient_of_a_single_element_runs_the_work -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: add
class Work(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, x):
        ctx.save_for_backward(x)
        return z.clone()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        Work.out = x.tanh()  # BAD
        return g, None


class ModelNew(nn.Module):
    def forward(self, x):
        with torch.enable_grad():
            z = torch.zeros(1, requires_grad=True)
            torch.autograd.grad(Work.apply(z, x), z)
        out = torch.empty_like(x)
        add_kernel[(triton.cdiv(x.numel(), 256),)](x, Work.out, out, x.numel(), BLOCK=256)
        return out

# case: backward_of_a_single_element_runs_the_work -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: add
class Work(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, x):
        ctx.save_for_backward(x)
        return z.clone()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        Work.out = x.tanh()  # BAD
        return g, None


class ModelNew(nn.Module):
    def forward(self, x):
        with torch.enable_grad():
            z = torch.zeros(1, requires_grad=True)
            y = Work.apply(z, x)
            y.backward()
        out = torch.empty_like(x)
        add_kernel[(triton.cdiv(x.numel(), 256),)](x, Work.out, out, x.numel(), BLOCK=256)
        return out
