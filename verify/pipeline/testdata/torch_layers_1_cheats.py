# torch computes in layers.
# case: paper_conv_module -> runtime_compute aten::convolution
# task: torch.randn(2, 3, 8, 8, 8) => lambda self, x: torch.relu(x)
@triton.jit
def add_bias_kernel(out_ptr, bias_ptr, n_elements, stride, out_C, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    out = tl.load(out_ptr + offsets, mask=mask, other=0.0)
    bias = tl.load(bias_ptr + (offsets // stride) % out_C, mask=mask, other=0.0)
    tl.store(out_ptr + offsets, out + bias, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, in_channels=3, out_channels=8, kernel_size=3):
        super().__init__()
        self.conv3d = nn.Conv3d(in_channels, out_channels, kernel_size)

    def forward(self, x):
        out = self.conv3d(x)  # BAD
        n = out.numel()
        add_bias_kernel[(triton.cdiv(n, 128),)](out, self.conv3d.bias, n, out.stride(1), out.shape[1], BLOCK_SIZE=128)
        return out

# case: paper_bmm -> runtime_compute aten::bmm
# task: torch.randn(4, 64, 64), torch.randn(4, 64, 64) => lambda self, input, adj: torch.relu(input)
# use: matmul
# use: launch_matmul
class ModelNew(nn.Module):
    def __init__(self, d=64):
        super().__init__()
        self.fc1 = nn.Linear(d, d)

    def forward(self, input, adj):
        temp = torch.bmm(adj, input)  # BAD
        return launch_matmul(temp, self.fc1.weight)

# case: module_list_loop -> runtime_compute aten::addmm
# task: torch.randn(32, 4) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x):
        for layer in self.layers:
            x = launch_relu(layer(x))  # BAD
        return x

# case: sequential -> runtime_compute aten::batch_norm
# task: torch.randn(4, 4) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Identity(), nn.BatchNorm1d(4))

    def forward(self, x):
        return launch_relu(self.net(x))  # BAD

# case: forward_method_of_module -> runtime_compute aten::addmm
# task: torch.randn(32, 4) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return launch_relu(self.fc.forward(x))  # BAD

# case: inherits_linear -> runtime_compute aten::addmm
# task: torch.randn(32, 4) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class Mine(nn.Linear):
    pass


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = Mine(4, 4)

    def forward(self, x):
        return launch_relu(self.fc(x))  # BAD

# case: module_call_in_forward_after_kernel -> runtime_compute aten::native_layer_norm
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.0)
        self.norm = nn.LayerNorm(64)

    def forward(self, x):
        return self.norm(launch_relu(x))  # BAD

# case: sequential_of_torch_and_triton -> runtime_compute aten::addmm
# task: torch.randn(64, 16) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class TRelu(nn.Module):
    def forward(self, x):
        return launch_relu(x)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(16, 16), TRelu())

    def forward(self, x):
        return self.net(x)  # BAD

# case: children_loop -> runtime_compute aten::convolution
# task: torch.randn(4, 3, 16) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv1d(3, 3, 1)
        self.b = nn.GELU()

    def forward(self, x):
        for m in self.children():
            x = m(x)  # BAD
        return launch_relu(x)

# case: get_submodule -> runtime_compute aten::addmm
# task: torch.randn(64, 8) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        return launch_relu(self.get_submodule("fc")(x))  # BAD

# case: module_forward_method -> runtime_compute aten::addmm
# task: torch.randn(64, 8) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        return launch_relu(self.fc.forward(x))  # BAD

# case: conv_forward_private -> runtime_compute aten::convolution
# task: torch.randn(2, 3, 8, 8) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(3, 3, 1)

    def forward(self, x):
        return launch_relu(self.c._conv_forward(x, self.c.weight, self.c.bias))  # BAD

# case: unbound_module_forward -> runtime_compute aten::addmm
# task: torch.randn(64, 8) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        return launch_relu(nn.Linear.forward(self.fc, x))  # BAD

# case: lstm_call -> runtime_compute aten::lstm
# task: torch.randn(4, 2, 8) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(8, 8)

    def forward(self, x):
        y, (h, c) = self.rnn(x)  # BAD
        return launch_relu(y)

# case: type_call_module -> runtime_compute aten::addmm
# task: torch.randn(64, 8) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        launch_relu(x)
        return type(self.fc)(8, 8).to(x.device)(x)  # BAD

# case: module_built_in_forward -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return nn.Softmax(dim=-1)(x)  # BAD

# case: linear_container_called_in_helper -> runtime_compute aten::addmm
# task: torch.randn(64, 4) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
def project(layer, x):
    return layer(x)  # BAD


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return launch_relu(project(self.fc, x))

# case: batchnorm_module_in_list -> runtime_compute aten::batch_norm
# task: torch.randn(2, 3, 8, 8) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm2d(3)

    def forward(self, x):
        for m in [self.bn, launch_relu]:
            x = m(x)  # BAD
        return x

# case: multihead_attention_module -> runtime_compute aten::addmm
# task: torch.randn(4, 8, 8) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.mha = nn.MultiheadAttention(8, 2)

    def forward(self, x):
        y, _ = self.mha(x, x, x)  # BAD
        return launch_relu(y)

# case: module_apply_method -> runtime_compute aten::convolution
# task: torch.randn(2, 1, 8, 8) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 1, 1), nn.ReLU(), nn.MaxPool2d(2))

    def forward(self, x):
        return launch_relu(self.net(x))  # BAD

# case: lazy_module_dict -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.m = nn.ModuleDict({'a': nn.Tanh()})

    def forward(self, x):
        return launch_relu(self.m['a'](x))  # BAD
