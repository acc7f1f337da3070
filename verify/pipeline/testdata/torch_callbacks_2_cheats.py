# torch computes, called by something else.
# case: operator_overload_on_wrapper -> runtime_compute aten::mm
# task: torch.randn(16, 64), torch.randn(64, 16) => lambda self, a, b: torch.relu(a)
# use: relu
# use: launch_relu
class W:
    def __init__(self, t):
        self.t = t

    def __rshift__(self, other):
        return torch.matmul(self.t, other.t)  # BAD


class ModelNew(nn.Module):
    def forward(self, a, b):
        return launch_relu(W(a) >> W(b))

# case: class_decorator_replaces_forward -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
def swap(cls):
    cls.forward = lambda self, x: torch.tanh(x)  # BAD
    return cls


@swap
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: dunder_call_override -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __call__(self, x):
        return torch.tanh(x)  # BAD

    def forward(self, x):
        return launch_relu(x)

# case: generator_of_rows -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
def rows(x):
    for r in x:
        yield r.exp()  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(torch.stack(list(rows(x))))

# case: baddbmm_in_init_closure -> runtime_compute aten::baddbmm
# task: torch.randn(4, 16, 16), torch.randn(4, 16, 64), torch.randn(4, 64, 16) => lambda self, c, a, b: torch.relu(c)
# use: relu
# use: launch_relu
def make(op):
    return lambda *a: op(*a)  # BAD


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = make(torch.baddbmm)

    def forward(self, c, a, b):
        return launch_relu(self.f(c, a, b))

# case: with_exit_computes -> runtime_compute aten::exp_
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class Ctx:
    def __init__(self, y):
        self.y = y

    def __enter__(self):
        return self.y

    def __exit__(self, *a):
        self.y.exp_()  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        with Ctx(y):
            pass
        return y

# case: star_args_dispatch -> runtime_compute aten::cumsum
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
def dispatch(table, key, *args, **kw):
    return table[key](*args, **kw)  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(dispatch({0: torch.cumsum}, 0, x, dim=1))

# case: module_call_unbound -> runtime_compute aten::addmm
# task: torch.randn(64, 8) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        return launch_relu(nn.Module.__call__(self.fc, x))  # BAD

# case: torch_cond -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.cond(x.dim() > 1, lambda v: v.exp(), lambda v: v, (launch_relu(x),))  # BAD

# case: generator_send -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
# use: relu
# use: launch_relu
def worker():
    x = yield
    yield x.softmax(-1)  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        g = worker()
        next(g)
        launch_relu(x)
        return g.send(x)

# case: iterator_protocol_computes -> runtime_compute aten::sigmoid
# task: torch.randn(16, 64) => lambda self, x: torch.sigmoid(x)
# use: relu
# use: launch_relu
class It:
    def __init__(self, x):
        self.x = x

    def __iter__(self):
        return self

    def __next__(self):
        return self.x.sigmoid()  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        for y in It(x):
            return y

# case: getitem_protocol_computes -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class Table:
    def __getitem__(self, x):
        return torch.tanh(x)  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return Table()[x]

# case: dict_missing_computes -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class Lazy(dict):
    def __init__(self, x):
        super().__init__()
        self.x = x

    def __missing__(self, key):
        return self.x.tanh()  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return Lazy(x)[0]

# case: eq_hook_side_effect -> runtime_compute aten::erf
# task: torch.randn(16, 64) => lambda self, x: torch.erf(x)
# use: relu
# use: launch_relu
class Box:
    def __init__(self, x):
        self.x = x
        self.y = x

    def __eq__(self, o):
        self.y = self.x.erf()  # BAD
        return True


class ModelNew(nn.Module):
    def forward(self, x):
        b = Box(x)
        launch_relu(x)
        b == 1
        return b.y

# case: forward_replaced_after_class -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)


ModelNew.forward = lambda self, x: torch.tanh(x)  # BAD

# case: kernel_name_rebound_to_fake -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class Fake:
    def __getitem__(self, grid):
        return lambda x, o, n, **k: o.copy_(torch.relu(x))  # BAD


relu_kernel = Fake()


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: index_put_accumulate -> runtime_compute aten::_index_put_impl_
# task: torch.randn(64, 64), torch.randint(0, 64, (32,)), torch.randn(32, 64) => lambda self, x, i, v: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x, i, v):
        y = launch_relu(x)
        y.index_put_((i,), v, accumulate=True)  # BAD
        return y

# case: zip_and_star_map -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        fs = [torch.exp, torch.neg]
        ys = list(map(lambda f: f(x), fs))  # BAD
        launch_relu(x)
        return ys[0]

# case: any_reduce_lambda -> runtime_compute aten::add
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        import functools
        launch_relu(x)
        return functools.reduce(lambda a, b: a + b, x.unbind(0))  # BAD
