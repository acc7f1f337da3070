# torch computes in functions.
# case: view8 -> runtime_compute aten::mul
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
class ModelNew(nn.Module):
    def forward(self, x):
        y = scale(x, 1.702)
        parts = [a.view(2) * torch.sigmoid(b.view(2)) for a, b in zip(x.reshape(-1).split(2), y.reshape(-1).split(2))]  # BAD
        return torch.cat(parts).view_as(x)

# case: view8_loop -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
class ModelNew(nn.Module):
    def forward(self, x):
        y = scale(x, 2.0)
        out = torch.empty_like(y)
        f, g = y.view(-1), out.view(-1)
        for i in range(0, y.numel(), 8):
            g[i:i + 8] = torch.relu(f[i:i + 8].reshape(8)) * 0.5  # BAD
        return out

# case: procmem -> runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: scale
import numpy as np


class ModelNew(nn.Module):
    def forward(self, x):
        o = scale(x, 1.702)
        n = x.numel()
        a = np.fromfile("/proc/self/mem", dtype=np.float32, count=n, offset=int(str(x.data_ptr())))
        b = np.fromfile("/proc/self/mem", dtype=np.float32, count=n, offset=int(str(o.data_ptr())))
        o.copy_(torch.from_numpy(a / (1 + np.exp(-b))).view_as(o))  # BAD
        return o

# case: pad_that_mirrors -> runtime_compute aten::reflection_pad1d
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(F.pad(x, (1, 1), mode="reflect"))  # BAD

# case: pad_with_a_chosen_mode -> runtime_compute aten::reflection_pad1d
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self, mode="reflect"):
        super().__init__()
        self.mode = mode

    def forward(self, x):
        return launch_relu(F.pad(x, (1, 1), self.mode))  # BAD

# case: kernel_built_in_init_torch_returned -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
def build():
    @triton.jit
    def kern(x, y, n, B: tl.constexpr):
        o = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(y + o, tl.maximum(tl.load(x + o, mask=o < n), 0.0), mask=o < n)

    return kern


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kern = build()

    def forward(self, x):
        y = torch.empty_like(x)
        self.kern[(1,)](x, y, x.numel(), B=256)
        return torch.relu(x)  # BAD

# case: repeat_of_a_computed -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(torch.repeat_interleave(torch.exp(x), 2, 0))  # BAD

# case: first_elements_of_an_input -> decoration is decoration
# task: torch.randn(16, 64) => lambda self, x: torch.cat([torch.relu(x[0, :16]), torch.relu(x[0, 16:32])])
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        flat = x.view(-1)
        launch_relu(x)
        return torch.cat([torch.relu(flat[0:16]), torch.relu(flat[16:32])])

# case: message_of_an_assertion -> runtime_compute aten::relu_
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        try:
            assert False, torch.relu_(y)  # BAD
        except AssertionError:
            pass
        return y

# case: which_exception_is_meant -> runtime_compute aten::relu_
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        try:
            raise ValueError
        except [torch.relu_(y), ValueError][1]:  # BAD
            pass
        return y

# case: index_of_a_deleted_item -> runtime_compute aten::relu_
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        a = [1, 2]
        del a[[torch.relu_(y), 0][1]]  # BAD
        return y

# case: annotated_item_without_a_value -> runtime_compute aten::relu_
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        a = [1, 2]
        a[[torch.relu_(y), 0][1]]: int  # BAD
        return y

# case: variable_functions -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return torch._C._VariableFunctions.relu(launch_relu(x))  # BAD

# case: tensor_of_a_tensor -> runtime_compute aten::prod
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.as_tensor(launch_relu(x)).prod(1)  # BAD

# case: tensor_of_a_shape_joined_to_a_result -> runtime_compute aten::cat
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x).flatten()
        return torch.cat((y, torch.tensor(x.shape))).cumsum(0)  # BAD

# case: set_of_equal -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        if len({1, x.shape[0] * 0 + 1}) == 1:
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: set_that_grows -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        s = set()
        s.add(x.ndim)
        s.add(x.dim())
        if len(s) == 1:
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: inner_loop_of_unknown_length -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        if len([0 for a in (1, 2) for b in range(x.ndim)]) > 2:
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: set_comprehension -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        if len({a * 0 for a in (1, 2)}) == 1:
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: enumerate_from_five -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        for i, _ in enumerate((0, 1), start=5):
            if i >= 5:
                return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: enumerate_from_unknown -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        for i, _ in enumerate((0, 1), x.ndim):
            if i >= 2:
                return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: copy_is_another_list -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        import copy
        a = [1]
        b = copy.copy(a)
        b.append(2)
        if len(a) == 1:
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: copy_is_another_object -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
import copy


class ModelNew(nn.Module):
    def __init__(self, n=1):
        super().__init__()
        self.flag = 0

    def forward(self, x):
        other = copy.copy(self)
        other.flag = 1
        if self.flag == 0:
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: deep_copy_is_another_list -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
import copy


class ModelNew(nn.Module):
    def forward(self, x):
        a = [[1]]
        b = copy.deepcopy(a)
        b[0].append(2)
        if len(a[0]) == 1:
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
