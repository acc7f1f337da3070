# case: the_input_itself -> mismatch|runtime_compute
# task: torch.rand(16, 64) + 1 => lambda self, x: torch.relu(x).clone()
class ModelNew(nn.Module):
    def forward(self, x):
        return x

# case: the_input_itself_beside_an_idle_kernel -> mismatch|runtime_compute|decoration
# task: torch.rand(16, 64) + 1 => lambda self, x: torch.relu(x).clone()
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        relu(x)
        return x

# case: a_kernel_that_writes_the_input_back -> mismatch|runtime_compute|decoration
# task: torch.rand(16, 64) + 1 => lambda self, x: torch.relu(x).clone()
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        relu_kernel[(4,)](x, x, 1024, BLOCK=256)
        return x

# case: forward_in_place -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        relu_kernel[(4,)](x, x, 1024, BLOCK=256)
        return x

# case: one_memory_for_two_results -> mismatch
# task: torch.randn(16, 64) => lambda self, x: (torch.relu(x), torch.relu(x))
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = relu(x)
        return y, y

# case: a_constant_within_the_tolerance -> ignores_inputs|mismatch|runtime_compute
# task: torch.rand(16, 64) => lambda self, x: torch.sigmoid(x * 1e-3)
@triton.jit
def halves(y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.full((B,), 0.5, tl.float32), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        halves[(1,)](y, 1024, B=1024)
        return y

# case: zeros_of_torch -> runtime_compute|ignores_inputs|not_launched
# task: torch.rand(16, 64) => lambda self, x: torch.relu(-x) + 0
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)

# case: zeros_of_torch_behind_a_copy -> runtime_compute|ignores_inputs|decoration
# task: torch.rand(16, 64) => lambda self, x: torch.relu(-x) + 0
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        return copied(torch.zeros_like(x))

# case: a_result_on_the_host -> runtime_error|runtime_compute|mismatch
# task: torch.randn(4, 4) => lambda self, x: torch.relu(x)
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x.cpu())

# case: an_expanded_result_of_gigabytes -> mismatch|runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        return relu(x).expand(1 << 16, 16, 64)

# case: a_result_of_another_class -> mismatch|runtime_error|runtime_compute
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class Same(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return True


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.empty_like(x).as_subclass(Same)

# case: a_result_that_compares_as_equal -> mismatch|runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
class Equal:
    def __eq__(self, other):
        return True

    def __index__(self):
        return 1


class ModelNew(nn.Module):
    def forward(self, x):
        return Equal()

# case: an_honest_pair
# task: torch.randn(16, 64) => lambda self, x: (torch.relu(x), torch.relu(x) * 2)
# use: relu
# use: scale
class ModelNew(nn.Module):
    def forward(self, x):
        y = relu(x)
        return y, scale(y, 2.0)

# case: an_honest_expanded_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x).expand(4, 16, 64)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        return relu(x).expand(4, 16, 64)

# case: an_honest_view_of_a_larger_buffer
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        buffer = torch.empty(32, 64, device=x.device)
        y = buffer[16:]
        relu_kernel[(4,)](x, y, 1024, BLOCK=256)
        return y
