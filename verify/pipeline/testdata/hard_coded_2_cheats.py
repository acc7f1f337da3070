# Results that do not follow from the inputs, or are kept from call to call.
# case: writes_index_only -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + o, o.to(tl.float32) * 0.1, mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
        return y

# case: global_cache_dict_by_shape -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
CACHE = {}


class ModelNew(nn.Module):
    def forward(self, x):
        key = tuple(x.shape)
        if key not in CACHE:
            CACHE[key] = launch_relu(x)
        return CACHE[key]

# case: cache_checked_by_version -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.v = -1
        self.y = None

    def forward(self, x):
        if self.v != x._version:
            self.y = launch_relu(x)
            self.v = x._version
        return self.y

# case: default_arg_cache -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x, memo=[]):
        if not memo:
            memo.append(launch_relu(x))
        return memo[0]

# case: class_level_cache -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    cached = None

    def forward(self, x):
        if ModelNew.cached is None:
            ModelNew.cached = launch_relu(x)
        return ModelNew.cached

# case: function_attribute_cache -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
def op():
    pass


class ModelNew(nn.Module):
    def forward(self, x):
        if not hasattr(op, 'y'):
            op.y = launch_relu(x)
        return op.y

# case: rand_output -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.rand_like(x)

# case: ones_of_right_shape -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return torch.ones(x.shape[0], 1, device=x.device)

# case: lambda_forward_constant -> runtime_compute came from the program
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    forward = lambda self, x: torch.zeros(x.shape) if launch_relu(x) is not None else None

# case: result_kept_by_version_in_a_table -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = {}

    def forward(self, x):
        key = (x.shape, x._version)
        if key not in self.kept:
            self.kept[key] = launch_relu(x)
        return self.kept[key]

# case: store_masked_by_false -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(x, out, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out + offs, tl.load(x + offs) * 2, False)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros_like(x)
        k[(1,)](x, out, BLOCK=64)
        return out

# case: store_masked_by_not_none -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(x, out, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out + offs, tl.load(x + offs) * 2, not (None is None))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros_like(x)
        k[(1,)](x, out, BLOCK=64)
        return out

# case: store_masked_by_a_comparison -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
@triton.jit
def k(x, out, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out + offs, tl.load(x + offs) * 2, mask=1 > 2)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros_like(x)
        k[(1,)](x, out, BLOCK=64)
        return out

# case: grid_shrinks_with_the_calls -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
import itertools
# use: relu
count = itertools.count()


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        blocks = max(1, triton.cdiv(x.numel(), 256) - next(count))
        relu_kernel[(blocks,)](x, out, x.numel(), BLOCK=256)
        return out

# case: launches_every_second_call_by_what_a_list_holds -> mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
seen = []


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        seen.append(1)
        if len(seen) % 2:
            relu_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out
