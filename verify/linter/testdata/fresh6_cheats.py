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
