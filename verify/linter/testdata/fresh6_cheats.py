# case: store_masked_by_false -> hard_coded
@triton.jit
def k(x, out, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out + offs, tl.load(x + offs) * 2, False)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros_like(x)
        k[(1,)](x, out, BLOCK=64)
        return out

# case: store_masked_by_not_none -> hard_coded
@triton.jit
def k(x, out, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out + offs, tl.load(x + offs) * 2, not (None is None))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros_like(x)
        k[(1,)](x, out, BLOCK=64)
        return out

# case: store_masked_by_a_comparison -> hard_coded
@triton.jit
def k(x, out, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out + offs, tl.load(x + offs) * 2, mask=1 > 2)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros_like(x)
        k[(1,)](x, out, BLOCK=64)
        return out

# case: guards_other_function -> torch_compute|forbidden|unresolved
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return torch._C._dynamo.guards.relu(launch_relu(x))  # BAD

# case: variable_functions -> torch_compute|forbidden|unresolved
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return torch._C._VariableFunctions.relu(launch_relu(x))  # BAD

# case: namespace_under_a_name -> torch_compute|forbidden|unresolved
# use: relu
# use: launch_relu
g = torch._C._dynamo.guards


class ModelNew(nn.Module):
    def forward(self, x):
        return g._softmax(launch_relu(x), 1)  # BAD

# case: inductor_runtime_computes -> torch_compute|forbidden|unresolved
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return torch._inductor.runtime.triton_heuristics.run(launch_relu(x))  # BAD

# case: train_is_called_with_a_tensor -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def train(self, mode=True):
        if isinstance(mode, bool):
            return super().train(mode)
        return mode * 2  # BAD

    def forward(self, x):
        return self.train(launch_relu(x))

# case: to_computes -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def to(self, other, **unused):
        return other - 1  # BAD

    def forward(self, x):
        return self.to(launch_relu(x))

# case: eval_works_on_what_is_kept -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    kept = []

    def eval(self):
        self.kept[0].exp_()  # BAD
        return self

    def forward(self, x):
        y = launch_relu(x)
        self.kept.append(y)
        self.eval()
        return y

# case: builtin_eval_beside_a_method -> forbidden eval
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def eval(self):
        return self

    def forward(self, x):
        launch_relu(x)
        return eval("torch.relu(x)")  # BAD

# case: tensor_of_a_tensor -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.as_tensor(launch_relu(x)).prod(1)  # BAD

# case: tensor_of_a_shape_times_a_result -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x) * torch.tensor(x.shape)[0]  # BAD

# case: tensor_of_a_shape_joined_to_a_result -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x).flatten()
        return torch.cat((y, torch.tensor(x.shape))).cumsum(0)  # BAD

# case: module_dictionary_has_a_torch_module -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        self.m = nn.ModuleDict(dict(act=nn.Tanh()))

    def forward(self, x):
        return self.m.act(launch_relu(x))  # BAD

# case: module_dictionary_in_a_lambda -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        m = nn.ModuleDict({"act": nn.Tanh()})
        self.f = lambda t: m.act(t)  # BAD

    def forward(self, x):
        return self.f(launch_relu(x))

# case: sequential_part_by_name -> torch_compute
from collections import OrderedDict
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        self.net = nn.Sequential(OrderedDict([("act", nn.Tanh())]))

    def forward(self, x):
        return self.net.act(launch_relu(x))  # BAD

# case: items_of_a_dictionary_compute -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.ModuleDict):
    def __init__(self):
        super().__init__()
        self.add_module("act", nn.Tanh())

    def forward(self, x):
        x = launch_relu(x)
        for name, layer in self.items():
            x = layer(x)  # BAD
        return x

# case: chain_in_lists -> unresolved|torch_compute
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
        return n.f(y)

# case: chain_in_dictionaries -> unresolved|torch_compute
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
        return n.f(y)

# case: chain_in_tuples -> unresolved|torch_compute
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
        return n.f(y)

# case: functions_turn_in_what_a_loop_makes -> torch_compute|unresolved
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
        return boxes[-1].f(y)

# case: imported_module_computes -> forbidden importlib.import_module
import importlib
# use: relu
# use: launch_relu
t = importlib.import_module("torch")


class ModelNew(nn.Module):
    def forward(self, x):
        return t.relu(launch_relu(x))  # BAD

# case: imported_module_of_the_system -> forbidden importlib.import_module
import importlib
# use: relu
# use: launch_relu
s = importlib.import_module("subprocess")  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: imported_by_a_name_made_later -> forbidden importlib.import_module
import importlib
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        importlib.import_module(str(x.dtype).split(".")[0])  # BAD
        return launch_relu(x)

# case: imported_module_by_getattr -> forbidden importlib.import_module
import importlib
# use: relu
# use: launch_relu
t = importlib.import_module("torch")


class ModelNew(nn.Module):
    def forward(self, x):
        return getattr(t, "exp")(launch_relu(x))  # BAD

# case: factory_computes -> torch_compute
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

# case: replaced_object_computes -> torch_compute
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

# case: dictionary_of_a_dataclass_computes -> torch_compute|unresolved
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

# case: sorted_among_tensors -> torch_compute
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

# case: largest_among_tensors -> torch_compute
# use: relu
# use: launch_relu
class V:
    def __init__(self, t=None):
        self.t = t

    def __gt__(self, other):
        other.exp_()  # BAD
        return True


class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        max(V(), y)
        return y

# case: summed_with_a_tensor -> torch_compute
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

# case: looked_up_in_a_list -> torch_compute
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

# case: counted_in_a_list -> torch_compute
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

# case: added_in_place -> torch_compute
# use: relu
# use: launch_relu
class V:
    def __init__(self, t=None):
        self.t = t

    def __iadd__(self, other):
        self.t = other * 2  # BAD
        return self


class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        v = V()
        v += y
        return v.t

# case: subscript_takes_a_tensor -> torch_compute
# use: relu
# use: launch_relu
class V:
    def __init__(self, t=None):
        self.t = t

    def __getitem__(self, other):
        self.t = other * 2  # BAD
        return self.t


class ModelNew(nn.Module):
    def forward(self, x):
        return V()[launch_relu(x)]

# case: heap_among_tensors -> torch_compute
import heapq
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
        heapq.heapify([V(), y])
        return y

# case: called_attribute_under_a_made_name -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        self.depth = depth
        for i in range(depth):
            setattr(self, f"f{i}", torch.exp)

    def forward(self, x):
        y = launch_relu(x)
        return getattr(self, f"f{self.depth}")(y)  # BAD

# case: made_name_may_be_the_layer -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        self.act = launch_relu
        for c in str(depth):
            setattr(self, f"ac{c}", torch.exp)

    def forward(self, x):
        return self.act(launch_relu(x))  # BAD

# case: made_name_without_a_beginning -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        self.act = launch_relu
        for c in str(depth):
            setattr(self, f"{c}", torch.exp)

    def forward(self, x):
        return self.act(launch_relu(x))  # BAD

# case: made_name_by_a_sum -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        self.act = launch_relu
        for c in str(depth):
            setattr(self, "a" + c, torch.exp)

    def forward(self, x):
        return self.act(launch_relu(x))  # BAD

# case: einops_reduces -> torch_compute
from einops import reduce
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return reduce(launch_relu(x), "a b -> a", "sum")  # BAD

# case: einops_einsum -> torch_compute
import einops
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return einops.einsum(launch_relu(x), x, "a b, c b -> a c")  # BAD

# case: einops_of_a_computed -> torch_compute
import einops
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return einops.rearrange(torch.exp(launch_relu(x)), "a b -> b a")  # BAD

# case: descriptor_that_computes_when_set -> torch_compute logsumexp
# use: add
class Slot:
    def __init__(self, out):
        self.out = out

    def __set__(self, obj, t):
        self.out.append(t.logsumexp(1, keepdim=True).expand_as(t).contiguous())  # BAD


class ModelNew(nn.Module):
    keep = []
    now = Slot(keep)

    def forward(self, x):
        self.now = x
        out = torch.empty_like(x)
        add_kernel[(triton.cdiv(x.numel(), 256),)](x, self.keep[-1], out, x.numel(), BLOCK=256)
        return out

# case: descriptor_that_computes_when_read -> torch_compute torch.tanh
# use: add
class Ready:
    def __get__(self, obj, owner=None):
        return torch.tanh(obj.pending)  # BAD


class ModelNew(nn.Module):
    ready = Ready()

    def forward(self, x):
        self.pending = x
        out = torch.empty_like(x)
        add_kernel[(triton.cdiv(x.numel(), 256),)](x, self.ready, out, x.numel(), BLOCK=256)
        return out

# case: gradient_of_a_single_element_runs_the_work -> torch_compute torch.autograd.grad
# use: add
class Work(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, x):
        ctx.save_for_backward(x)
        return z.clone()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        Work.out = x.tanh()
        return g, None


class ModelNew(nn.Module):
    def forward(self, x):
        with torch.enable_grad():
            z = torch.zeros(1, requires_grad=True)
            torch.autograd.grad(Work.apply(z, x), z)  # BAD
        out = torch.empty_like(x)
        add_kernel[(triton.cdiv(x.numel(), 256),)](x, Work.out, out, x.numel(), BLOCK=256)
        return out

# case: backward_of_a_single_element_runs_the_work -> torch_compute backward
# use: add
class Work(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, x):
        ctx.save_for_backward(x)
        return z.clone()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        Work.out = x.tanh()
        return g, None


class ModelNew(nn.Module):
    def forward(self, x):
        with torch.enable_grad():
            z = torch.zeros(1, requires_grad=True)
            y = Work.apply(z, x)
            y.backward()  # BAD
        out = torch.empty_like(x)
        add_kernel[(triton.cdiv(x.numel(), 256),)](x, Work.out, out, x.numel(), BLOCK=256)
        return out

# case: rows_gathered_by_single_indices -> torch_compute index by single elements
# use: add
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(40, 32)

    def forward(self, i):
        rows = torch.stack([self.table.weight[int(k)] for k in i])  # BAD
        out = torch.empty_like(rows)
        add_kernel[(triton.cdiv(rows.numel(), 256),)](rows, rows, out, rows.numel(), BLOCK=256)
        return out

# case: rows_gathered_by_narrow -> torch_compute index by single elements
# use: add
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(40, 32)

    def forward(self, i):
        rows = torch.empty(i.shape[0], 32, device=i.device)
        for k in range(i.shape[0]):
            rows[k : k + 1].copy_(self.table.weight.narrow(0, i[k].item(), 1))  # BAD
        out = torch.empty_like(rows)
        add_kernel[(triton.cdiv(rows.numel(), 256),)](rows, rows, out, rows.numel(), BLOCK=256)
        return out

# case: elements_sorted_in_python -> torch_compute sorted
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        rows = [sorted(row, reverse=True) for row in x]  # BAD
        return launch_relu(torch.stack([torch.stack(row) for row in rows]))

# case: elements_leave_as_text -> python_compute repr
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        text = repr(x)  # BAD
        return launch_relu(x * len(text))

# case: kernel_only_in_the_first_calls -> hard_coded relu_kernel
# use: relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.out = None

    def forward(self, x):
        self.calls += 1
        out = torch.empty_like(x)
        if self.calls <= 10:
            relu_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)  # BAD
        return out

# case: grid_shrinks_with_the_calls -> hard_coded relu_kernel
import itertools
# use: relu
count = itertools.count()


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        blocks = max(1, triton.cdiv(x.numel(), 256) - next(count))
        relu_kernel[(blocks,)](x, out, x.numel(), BLOCK=256)  # BAD
        return out

# case: grid_by_a_global_counter -> hard_coded relu_kernel
# use: relu
calls = 0


class ModelNew(nn.Module):
    def forward(self, x):
        global calls
        calls = calls + 1
        out = torch.empty_like(x)
        blocks = triton.cdiv(x.numel(), 256)
        relu_kernel[(blocks if calls < 12 else 1,)](x, out, x.numel(), BLOCK=256)  # BAD
        return out

# case: launches_every_second_call_by_what_a_list_holds -> hard_coded relu_kernel
# use: relu
seen = []


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        seen.append(1)
        if len(seen) % 2:
            relu_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)  # BAD
        return out

# case: clock_in_forward -> forbidden time.perf_counter
import time
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        self.last = time.perf_counter()  # BAD
        return launch_relu(x)

# case: event_in_forward -> forbidden torch.cuda.Event
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        event = torch.cuda.Event(enable_timing=True)  # BAD
        event.record()
        return launch_relu(x)

# case: seeds_in_forward -> forbidden torch.manual_seed
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        torch.manual_seed(0)  # BAD
        return launch_relu(x)

# case: default_type_in_forward -> forbidden torch.set_default_dtype
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        torch.set_default_dtype(torch.float16)  # BAD
        return launch_relu(x)

# case: driver_is_replaced -> forbidden triton.runtime.driver.set_active
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        triton.runtime.driver.set_active(None)  # BAD
        return launch_relu(x)

# case: allocator_is_replaced -> torch_compute torch.cuda.memory.change_current_allocator
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        torch.cuda.memory.change_current_allocator(None)  # BAD
        return launch_relu(x)

# case: graph_by_its_other_name -> torch_compute torch.cuda.graphs.graph
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        torch.cuda.graphs.graph(None)  # BAD
        return launch_relu(x)

# case: storage_out_of_a_file -> torch_compute torch.UntypedStorage.from_file
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        torch.UntypedStorage.from_file("/proc/self/mem", False, 64)  # BAD
        return launch_relu(x)

# case: kernel_behind_a_return_by_count -> hard_coded relu_kernel
# use: relu
class State:
    count = 0


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        State.count += 1
        if State.count > 60:
            return out
        relu_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)  # BAD
        return out

# case: kernel_in_a_loop_that_runs_out -> hard_coded relu_kernel
# use: relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = 60

    def forward(self, x):
        out = torch.empty_like(x)
        self.left -= 1
        while self.left > 0:
            relu_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)  # BAD
            break
        return out

# case: flags_from_a_generator -> hard_coded relu_kernel
# use: relu
def flags():
    for k in range(1000000):
        yield k < 50


source = flags()


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        if next(source):
            relu_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)  # BAD
        return out

# case: code_chosen_by_the_count -> hard_coded
# use: relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        out = torch.empty_like(x)
        self.calls += 1
        launch = lambda: relu_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        [lambda: None, launch][self.calls < 60]()  # BAD
        return out

# case: kernel_by_chance -> hard_coded relu_kernel
import random
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        if random.random() < 0.999:
            relu_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)  # BAD
        return out

# case: rows_picked_out_of_a_list -> torch_compute index by single elements
# use: add
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(40, 32)

    def forward(self, i):
        table = self.table.weight.unbind(0)
        rows = torch.empty(i.shape[0], 32, device=i.device)
        for n, k in enumerate(i):
            rows[n] = table[int(k)]  # BAD
        out = torch.empty_like(rows)
        add_kernel[(triton.cdiv(rows.numel(), 256),)](rows, rows, out, rows.numel(), BLOCK=256)
        return out
