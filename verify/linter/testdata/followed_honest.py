# case: activation_defaults_in_a_list
# task: torch.randn(4, 100) => lambda self, x: torch.tanh(torch.sigmoid(torch.relu(x)))
@triton.jit
def act_kernel(x_ptr, out_ptr, n, ACT: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    if ACT == 0:
        y = tl.maximum(x, 0.0)
    elif ACT == 1:
        y = tl.sigmoid(x)
    else:
        y = 2 * tl.sigmoid(2 * x) - 1
    tl.store(out_ptr + offs, y, mask=mask)


def act(x, kind):
    out = torch.empty_like(x)
    n = x.numel()
    act_kernel[(triton.cdiv(n, 1024),)](x, out, n, ACT=kind, BLOCK=1024)
    return out


KINDS = {nn.ReLU: 0, nn.Sigmoid: 1, nn.Tanh: 2}


class ModelNew(nn.Module):
    def __init__(self, first=nn.ReLU(), second=nn.Sigmoid(), third=nn.Tanh()):
        super().__init__()
        self.activations = [first, second, third]

    def forward(self, x):
        for activation in self.activations:
            x = act(x, KINDS[type(activation)])
        return x

# case: activation_functions_in_a_list
# task: torch.randn(4, 100) => lambda self, x: torch.tanh(torch.sigmoid(torch.relu(x)))
@triton.jit
def act_kernel(x_ptr, out_ptr, n, ACT: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    if ACT == 0:
        y = tl.maximum(x, 0.0)
    elif ACT == 1:
        y = tl.sigmoid(x)
    else:
        y = 2 * tl.sigmoid(2 * x) - 1
    tl.store(out_ptr + offs, y, mask=mask)


def act(x, kind):
    out = torch.empty_like(x)
    n = x.numel()
    act_kernel[(triton.cdiv(n, 1024),)](x, out, n, ACT=kind, BLOCK=1024)
    return out


KINDS = {"relu": 0, "sigmoid": 1, "tanh": 2}


class ModelNew(nn.Module):
    def __init__(self, activations=(torch.relu, torch.sigmoid, torch.tanh)):
        super().__init__()
        self.kinds = [KINDS[f.__name__] for f in activations]

    def forward(self, x):
        for kind in self.kinds:
            x = act(x, kind)
        return x

# case: activation_function_defaults_kept
# task: torch.randn(4, 100) => lambda self, x: torch.sigmoid(torch.relu(x))
@triton.jit
def act_kernel(x_ptr, out_ptr, n, ACT: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    if ACT == 0:
        y = tl.maximum(x, 0.0)
    elif ACT == 1:
        y = tl.sigmoid(x)
    else:
        y = 2 * tl.sigmoid(2 * x) - 1
    tl.store(out_ptr + offs, y, mask=mask)


def act(x, kind):
    out = torch.empty_like(x)
    n = x.numel()
    act_kernel[(triton.cdiv(n, 1024),)](x, out, n, ACT=kind, BLOCK=1024)
    return out


class ModelNew(nn.Module):
    def __init__(self, first=F.relu, second=torch.sigmoid):
        super().__init__()
        self.activations = [first, second]

    def forward(self, x):
        for activation in self.activations:
            kind = 0 if activation is F.relu else 1 if activation is torch.sigmoid else 2
            x = act(x, kind)
        return x

# case: activation_names_of_classes
# task: torch.randn(4, 100) => lambda self, x: torch.sigmoid(torch.relu(x))
@triton.jit
def act_kernel(x_ptr, out_ptr, n, ACT: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    if ACT == 0:
        y = tl.maximum(x, 0.0)
    elif ACT == 1:
        y = tl.sigmoid(x)
    else:
        y = 2 * tl.sigmoid(2 * x) - 1
    tl.store(out_ptr + offs, y, mask=mask)


def act(x, kind):
    out = torch.empty_like(x)
    n = x.numel()
    act_kernel[(triton.cdiv(n, 1024),)](x, out, n, ACT=kind, BLOCK=1024)
    return out


KINDS = {"ReLU": 0, "Sigmoid": 1, "Tanh": 2}


class ModelNew(nn.Module):
    def __init__(self, activations=None):
        super().__init__()
        activations = [nn.ReLU(), nn.Sigmoid()] if activations is None else activations
        self.activations = nn.ModuleList(activations)

    def forward(self, x):
        for activation in self.activations:
            x = act(x, KINDS[activation.__class__.__name__])
        return x

# case: activation_layers_by_isinstance
# task: torch.randn(4, 100) => lambda self, x: torch.sigmoid(torch.relu(x))
@triton.jit
def act_kernel(x_ptr, out_ptr, n, ACT: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    if ACT == 0:
        y = tl.maximum(x, 0.0)
    elif ACT == 1:
        y = tl.sigmoid(x)
    else:
        y = 2 * tl.sigmoid(2 * x) - 1
    tl.store(out_ptr + offs, y, mask=mask)


def act(x, kind):
    out = torch.empty_like(x)
    n = x.numel()
    act_kernel[(triton.cdiv(n, 1024),)](x, out, n, ACT=kind, BLOCK=1024)
    return out


class ModelNew(nn.Module):
    def __init__(self, layers=[nn.ReLU(), nn.Sigmoid()]):
        super().__init__()
        self.layers = layers

    def forward(self, x):
        for layer in self.layers:
            x = act(x, 0 if isinstance(layer, nn.ReLU) else 1)
        return x

# case: activation_by_callable_default
# task: torch.randn(4, 100) => lambda self, x: torch.sigmoid(torch.relu(x))
@triton.jit
def act_kernel(x_ptr, out_ptr, n, ACT: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    if ACT == 0:
        y = tl.maximum(x, 0.0)
    elif ACT == 1:
        y = tl.sigmoid(x)
    else:
        y = 2 * tl.sigmoid(2 * x) - 1
    tl.store(out_ptr + offs, y, mask=mask)


def act(x, kind):
    out = torch.empty_like(x)
    n = x.numel()
    act_kernel[(triton.cdiv(n, 1024),)](x, out, n, ACT=kind, BLOCK=1024)
    return out


def relu(x):
    return act(x, 0)


def sigmoid(x):
    return act(x, 1)


class ModelNew(nn.Module):
    def __init__(self, first=relu, second=sigmoid):
        super().__init__()
        self.steps = [first, second]

    def forward(self, x):
        for step in self.steps:
            x = step(x)
        return x

# case: early_returns_and_lists
# task: torch.randn(4, 100) => lambda self, x: torch.cat([torch.relu(x), torch.sigmoid(x)])
@triton.jit
def act_kernel(x_ptr, out_ptr, n, ACT: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    if ACT == 0:
        y = tl.maximum(x, 0.0)
    elif ACT == 1:
        y = tl.sigmoid(x)
    else:
        y = 2 * tl.sigmoid(2 * x) - 1
    tl.store(out_ptr + offs, y, mask=mask)


def act(x, kind):
    out = torch.empty_like(x)
    n = x.numel()
    act_kernel[(triton.cdiv(n, 1024),)](x, out, n, ACT=kind, BLOCK=1024)
    return out


class ModelNew(nn.Module):
    def forward(self, x):
        if x.numel() == 0:
            return torch.cat([x, x])
        outs = []
        for kind in (0, 1):
            if kind > 1:
                continue
            outs.append(act(x.contiguous(), kind))
        shape = list(x.shape)
        shape[0] *= len(outs)
        return torch.cat(outs).view(shape)

# case: iterators_and_views
# task: torch.randn(4, 100) => lambda self, x: torch.tanh(torch.sigmoid(torch.relu(x)))
@triton.jit
def act_kernel(x_ptr, out_ptr, n, ACT: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    if ACT == 0:
        y = tl.maximum(x, 0.0)
    elif ACT == 1:
        y = tl.sigmoid(x)
    else:
        y = 2 * tl.sigmoid(2 * x) - 1
    tl.store(out_ptr + offs, y, mask=mask)


def act(x, kind):
    out = torch.empty_like(x)
    n = x.numel()
    act_kernel[(triton.cdiv(n, 1024),)](x, out, n, ACT=kind, BLOCK=1024)
    return out


import contextlib
import functools
import itertools

KINDS = {"relu": 0, "sigmoid": 1}


@functools.lru_cache(maxsize=None)
def block_of(n):
    return min(1024, triton.next_power_of_2(n))


class ModelNew(nn.Module):
    def forward(self, x):
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            for name, kind in KINDS.items():
                x = act(x, kind)
            for index, size in enumerate(x.shape, start=1):
                assert index > 0 and size > 0
            out = torch.empty_like(x)
            n = x.numel()
            for source, target in zip([x], [out]):
                act_kernel[(triton.cdiv(n, block_of(n)),)](source, target, n, ACT=2, BLOCK=block_of(n))
        return out
