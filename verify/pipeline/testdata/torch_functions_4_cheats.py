# torch computes in functions.
# case: view_of_dictionary_grows -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        d = {'a': 1}
        v = d.values()
        d['b'] = 2
        if len(v) == 2:
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: zip_is_always_true -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        if zip():
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: iter_is_always_true -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        if iter(()):
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: iterator_used_up -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        it = iter((1,))
        next(it)
        for _ in it:
            break
        else:
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: zip_used_up -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        z = zip((1,), (2,))
        list(z)
        for _ in z:
            break
        else:
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: rows_of_unknown_length -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        for row in zip(*[(1, 2)] * x.ndim):
            if len(row) > 1:
                return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: cached_function_keeps_its_first_answer -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
import functools
state = []
@functools.lru_cache(None)
def size():
    return len(state)


class ModelNew(nn.Module):
    def forward(self, x):
        size()
        state.append(1)
        if size() == 0:
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: suppressed_before_the_end -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
import contextlib


class ModelNew(nn.Module):
    def forward(self, x):
        flag = 0
        with contextlib.suppress(Exception):
            flag = 1
            int('x')
            flag = 0
        if flag == 1:
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: suppressed_assignment -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
import contextlib


class ModelNew(nn.Module):
    def forward(self, x):
        flag = 0
        with contextlib.suppress(ValueError):
            int('x')
            flag = 1
        if flag == 0:
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: caught_before_the_end -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        flag = 0
        try:
            flag = 1
            int('x')
            flag = 0
        except ValueError:
            pass
        if flag == 1:
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: finally_after_half -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        flag = 0
        try:
            flag = 1
            int('x')
            flag = 0
        except ValueError:
            if flag == 1:
                return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: setdefault_keeps -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        d = {'a': 1}
        d.setdefault('a', 2)
        if d['a'] == 1:
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: extended_perhaps -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        l = []
        if x.ndim > 5:
            l.extend([1])
        if len(l) == 0:
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: added_perhaps -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        l = []
        if x.ndim > 5:
            l += [1]
        if len(l) == 0:
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: multiplied_in_place -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        l = [1]
        m = l
        l *= 2
        if len(m) == 2:
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: updated_keyword -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
def pick(flag):
    return flag


class ModelNew(nn.Module):
    def forward(self, x):
        d = {'flag': 0}
        d.update(flag=1)
        if pick(**d) == 1:
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: keyword_perhaps -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
def pick(flag=0):
    return flag


class ModelNew(nn.Module):
    def forward(self, x):
        d = {}
        if x.ndim > 5:
            d['flag'] = 1
        if pick(**d) == 0:
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: attribute_perhaps -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class Base(nn.Module):
    flag = 0


class ModelNew(Base):
    def forward(self, x):
        if x.ndim > 5:
            self.flag = 1
        if self.flag == 0:
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
