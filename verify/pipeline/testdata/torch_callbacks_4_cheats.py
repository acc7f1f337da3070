# torch computes, called by something else.
# case: truth_of_an_object_computes -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class Box:
    def __init__(self, x):
        self.x = x

    def __bool__(self):
        self.x = torch.relu(self.x)  # BAD
        return True


class ModelNew(nn.Module):
    def forward(self, x):
        box = Box(x)
        launch_relu(x)
        if not box:
            return x
        return box.x

# case: many_partial_results_in_torch -> runtime_compute aten::sum
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def partials(x, out, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + tl.program_id(0), tl.sum(tl.load(x + o, mask=o < n, other=0.0)))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(64, device=x.device)
        partials[(64,)](x, out, x.numel(), B=1024)
        return out[:32].sum()  # BAD

# case: module_dictionary_in_a_lambda -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        m = nn.ModuleDict({"act": nn.Tanh()})
        self.f = lambda t: m.act(t)  # BAD

    def forward(self, x):
        return self.f(launch_relu(x))

# case: chain_in_lists -> runtime_compute aten::exp_
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class N:
    def __init__(self, f, n):
        self.f = f
        self.n = [n]


def build(count, f):
    n = N(f, None)
    for _ in range(count):
        n = N(int, n)
    return n


class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        n = build(20, torch.exp_)
        for _ in range(20):
            n = n.n[0]
        return n.f(y)  # BAD

# case: chain_in_dictionaries -> runtime_compute aten::exp_
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class N:
    def __init__(self, f, n):
        self.f = f
        self.n = {"n": n}


def build(count, f):
    n = N(f, None)
    for _ in range(count):
        n = N(int, n)
    return n


class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        n = build(20, torch.exp_)
        for _ in range(20):
            n = n.n["n"]
        return n.f(y)  # BAD

# case: chain_in_tuples -> runtime_compute aten::exp_
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class N:
    def __init__(self, f, n):
        self.f = f
        self.n = (1, (n,))


def build(count, f):
    n = N(f, None)
    for _ in range(count):
        n = N(int, n)
    return n


class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        n = build(20, torch.exp_)
        for _ in range(20):
            n = n.n[1][0]
        return n.f(y)  # BAD

# case: functions_turn_in_what_a_loop_makes -> runtime_compute aten::exp
# task: torch.randn(3, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class Box:
    def __init__(self, f):
        self.f = f


class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        fs = [int, float, str, torch.exp]
        boxes = []
        for _ in range(x.shape[0]):
            fs.append(fs.pop(0))
            boxes.append(Box(fs[0]))
        return boxes[-1].f(y)  # BAD

# case: factory_computes -> runtime_compute aten::exp_
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
import dataclasses
# use: relu
# use: launch_relu
KEPT = []


def work():
    return [t.exp_() for t in KEPT]  # BAD


@dataclasses.dataclass
class V:
    a: list = dataclasses.field(default_factory=work)


class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        KEPT.append(y)
        V()
        return y

# case: replaced_object_computes -> runtime_compute aten::exp_
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
import dataclasses
# use: relu
# use: launch_relu
@dataclasses.dataclass
class V:
    t: torch.Tensor = None

    def __post_init__(self):
        if self.t is not None:
            self.t.exp_()  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        dataclasses.replace(V(), t=y)
        return y

# case: dictionary_of_a_dataclass_computes -> runtime_compute aten::exp_
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
import dataclasses
# use: relu
# use: launch_relu
@dataclasses.dataclass
class V:
    t: torch.Tensor = None


class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        dataclasses.asdict(V(y), dict_factory=lambda p: [v.exp_() for _, v in p])  # BAD
        return y

# case: sorted_among_tensors -> runtime_compute aten::exp_
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class V:
    def __init__(self, t=None):
        self.t = t

    def __lt__(self, other):
        other.exp_()  # BAD
        return True


class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        sorted([y, V()])
        return y

# case: summed_with_a_tensor -> runtime_compute aten::mul
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class V:
    def __init__(self, t=None):
        self.t = t

    def __radd__(self, other):
        self.t = other * 2  # BAD
        return self


class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        return sum([V()], y).t

# case: looked_up_in_a_list -> runtime_compute aten::exp_
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class V:
    def __init__(self, t=None):
        self.t = t

    def __eq__(self, other):
        other.exp_()  # BAD
        return True


class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        y in [V()]
        return y

# case: counted_in_a_list -> runtime_compute aten::exp_
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class V:
    def __init__(self, t=None):
        self.t = t

    def __eq__(self, other):
        other.exp_()  # BAD
        return True


class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        [V()].count(y)
        return y
