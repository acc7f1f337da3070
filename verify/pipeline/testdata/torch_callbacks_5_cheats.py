# torch computes, called by something else.
# case: added_in_place -> runtime_compute aten::mul
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
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

# case: subscript_takes_a_tensor -> runtime_compute aten::mul
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
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

# case: heap_among_tensors -> runtime_compute aten::exp_
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
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

# case: descriptor_that_computes_when_set -> runtime_compute aten::amax
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
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

# case: descriptor_that_computes_when_read -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
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

# case: elements_sorted_in_python -> runtime_compute aten::lt
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        rows = [sorted(row, reverse=True) for row in x]  # BAD
        return launch_relu(torch.stack([torch.stack(row) for row in rows]))

# case: map_of_nothing_is_true -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        if map(len, ()):
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: cached_function_runs_once -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
import functools
class Box:
    n = 0
box = Box()
@functools.cache
def tick():
    box.n = box.n + 1


class ModelNew(nn.Module):
    def forward(self, x):
        box.n = 0
        tick()
        tick()
        if box.n == 1:
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: stack_callback -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
import contextlib


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        with contextlib.ExitStack() as stack:  # BAD
            stack.callback(torch.relu, x)
        relu_kernel[(1,)](x, out, x.numel(), BLOCK=1024)
        return out

# case: sort_by_a_sum -> runtime_compute aten::sum
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        ts = [x, x]
        ts.sort(key=torch.sum)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: largest_by_a_sum -> runtime_compute aten::sum
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = max([x, x], key=torch.sum)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: apply_of_a_module -> runtime_compute aten::mul
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        nn.Identity().apply(lambda m: x * 2)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: method_of_a_tensor_class_as_callback -> runtime_compute aten::relu_
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
import contextlib


class ModelNew(nn.Module):
    def forward(self, x):
        with contextlib.ExitStack() as stack:  # BAD
            stack.callback(torch.Tensor.relu_, x)
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
