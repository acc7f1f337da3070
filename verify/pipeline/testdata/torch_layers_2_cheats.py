# torch computes in layers.
# case: counter_named_like_a_library_buffer -> runtime_compute aten::add
# task: torch.randn(64, 8) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(8)

    def forward(self, x):
        launch_relu(x)
        self.bn.num_batches_tracked = x
        return self.bn.num_batches_tracked + x  # BAD

# case: module_dictionary_has_a_torch_module -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        self.m = nn.ModuleDict(dict(act=nn.Tanh()))

    def forward(self, x):
        return self.m.act(launch_relu(x))  # BAD

# case: sequential_part_by_name -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
from collections import OrderedDict
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        self.net = nn.Sequential(OrderedDict([("act", nn.Tanh())]))

    def forward(self, x):
        return self.net.act(launch_relu(x))  # BAD

# case: items_of_a_dictionary_compute -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
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

# case: rows_gathered_by_single_indices -> runtime_compute forward reads 5 elements back
# task: torch.randint(0, 40, (12,)) => lambda self, i: self.table(i) * 2
# layers: self.table = nn.Embedding(40, 32)
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

# case: rows_gathered_by_narrow -> runtime_compute forward reads 5 elements back
# task: torch.randint(0, 40, (12,)) => lambda self, i: self.table(i) * 2
# layers: self.table = nn.Embedding(40, 32)
# use: add
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(40, 32)

    def forward(self, i):
        rows = torch.empty(i.shape[0], 32, device=i.device)
        for k in range(i.shape[0]):
            rows[k : k + 1].copy_(self.table.weight.narrow(0, i[k].item(), 1))
        out = torch.empty_like(rows)
        add_kernel[(triton.cdiv(rows.numel(), 256),)](rows, rows, out, rows.numel(), BLOCK=256)
        return out

# case: rows_picked_out_of_a_list -> runtime_compute forward reads 5 elements back
# task: torch.randint(0, 40, (12,)) => lambda self, i: self.table(i) * 2
# layers: self.table = nn.Embedding(40, 32)
# use: add
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(40, 32)

    def forward(self, i):
        table = self.table.weight.unbind(0)
        rows = torch.empty(i.shape[0], 32, device=i.device)
        for n, k in enumerate(i):
            rows[n] = table[int(k)]
        out = torch.empty_like(rows)
        add_kernel[(triton.cdiv(rows.numel(), 256),)](rows, rows, out, rows.numel(), BLOCK=256)
        return out

# case: list_of_modules_of_unknown_length -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def __init__(self, n=1):
        super().__init__()
        self.ms = nn.ModuleList([nn.Identity() for _ in range(0 * int(n))])

    def forward(self, x):
        for m in self.ms:
            break
        else:
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
