# case: set_of_equal -> torch_compute
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        if len({1, x.shape[0] * 0 + 1}) == 1:
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: set_that_grows -> torch_compute
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

# case: inner_loop_of_unknown_length -> torch_compute
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        if len([0 for a in (1, 2) for b in range(x.ndim)]) > 2:
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: set_comprehension -> torch_compute
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        if len({a * 0 for a in (1, 2)}) == 1:
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: enumerate_from_five -> torch_compute
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        for i, _ in enumerate((0, 1), start=5):
            if i >= 5:
                return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: enumerate_from_unknown -> torch_compute
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        for i, _ in enumerate((0, 1), x.ndim):
            if i >= 2:
                return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: copy_is_another_list -> torch_compute
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

# case: copy_is_another_object -> torch_compute
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

# case: deep_copy_is_another_list -> torch_compute
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

# case: view_of_dictionary_grows -> torch_compute
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

# case: view_of_functions -> torch_compute|unresolved
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        d = {'a': torch.empty_like}
        v = d.values()
        d['a'] = torch.relu
        for f in v:
            y = f(x)  # BAD
        if x.ndim > 1:
            return y
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: iterator_over_growing_list -> torch_compute|unresolved
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        fs = []
        it = iter(fs)
        fs.append(torch.relu)
        for f in it:
            return f(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: zip_is_always_true -> torch_compute
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        if zip():
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: iter_is_always_true -> torch_compute
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        if iter(()):
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: map_of_nothing_is_true -> torch_compute
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        if map(len, ()):
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: iterator_used_up -> torch_compute
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

# case: zip_used_up -> torch_compute
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

# case: rows_of_unknown_length -> torch_compute
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        for row in zip(*[(1, 2)] * x.ndim):
            if len(row) > 1:
                return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: cached_function_keeps_its_first_answer -> torch_compute
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

# case: cached_function_runs_once -> torch_compute
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

# case: suppressed_before_the_end -> torch_compute
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

# case: suppressed_assignment -> torch_compute
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

# case: caught_before_the_end -> torch_compute
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

# case: finally_after_half -> torch_compute
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

# case: setdefault_keeps -> torch_compute
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

# case: extended_perhaps -> torch_compute
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

# case: added_perhaps -> torch_compute
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

# case: multiplied_in_place -> torch_compute
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

# case: updated_keyword -> torch_compute
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

# case: keyword_perhaps -> torch_compute
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

# case: attribute_perhaps -> torch_compute
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

# case: early_return_before_a_store -> torch_compute
# use: relu
class Base(nn.Module):
    def mark(self, x):
        if x.ndim > 1:
            return
        self.flag = 1


class ModelNew(Base):
    def forward(self, x):
        self.flag = 0
        self.mark(x)
        if self.flag == 0:
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: early_return_in_a_loop -> torch_compute
# use: relu
class Base(nn.Module):
    def mark(self, x):
        for i in (0, 1):
            if x.ndim > 1:
                return
        self.flag = 1


class ModelNew(Base):
    def forward(self, x):
        self.flag = 0
        self.mark(x)
        if self.flag == 0:
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: break_before_an_assignment -> torch_compute
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        flag = 0
        for _ in (0,):
            if x.ndim > 1:
                break
            flag = 1
        if flag == 0:
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: continue_before_an_assignment -> torch_compute
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        flag = 0
        for _ in (0,):
            if x.ndim > 1:
                continue
            flag = 1
        if flag == 0:
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: break_between_assignments -> torch_compute
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        flag = 0
        while x.ndim > 0:
            flag = 1
            if x.ndim > 1:
                break
            flag = 0
        if flag == 1:
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: name_shadowed_perhaps -> torch_compute
# use: relu
if torch.cuda.device_count() > 99:
    def abs(x):
        out = torch.empty_like(x)
        relu_kernel[(1,)](x, out, x.numel(), BLOCK=1024)
        return out


class ModelNew(nn.Module):
    def forward(self, x):
        return abs(x)  # BAD

# case: list_of_modules_of_unknown_length -> torch_compute
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

# case: counter_counts -> torch_compute
# use: relu
import collections


class ModelNew(nn.Module):
    def forward(self, x):
        c = collections.Counter({'a': 1})
        c.update({'a': 1})
        if c['a'] == 2:
            return torch.relu(x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: chain_map_is_alive -> unresolved
# use: relu
import collections


class ModelNew(nn.Module):
    def forward(self, x):
        d = {'f': torch.empty_like}
        chain = collections.ChainMap(d)
        d['f'] = torch.relu
        return chain['f'](x)  # BAD

# case: stack_callback -> torch_compute
# use: relu
import contextlib


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        with contextlib.ExitStack() as stack:
            stack.callback(torch.relu, x)  # BAD
        relu_kernel[(1,)](x, out, x.numel(), BLOCK=1024)
        return out

# case: stack_callback_without_tensors -> torch_compute
# use: relu
import contextlib


class ModelNew(nn.Module):
    def forward(self, x):
        with contextlib.ExitStack() as stack:
            stack.callback(torch.relu)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: attribute_of_a_library_object -> torch_compute
# use: relu
import contextlib


class ModelNew(nn.Module):
    def forward(self, x):
        s = contextlib.ExitStack()
        s.f = torch.relu  # BAD
        return s.f(x)

# case: finalizer -> torch_compute
# use: relu
import weakref
class Box:
    pass


class ModelNew(nn.Module):
    def forward(self, x):
        weakref.finalize(Box(), torch.relu)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: finalizer_in_init -> torch_compute
# use: relu
import weakref
class Box:
    pass


class ModelNew(nn.Module):
    def __init__(self, n=1):
        super().__init__()
        weakref.finalize(Box(), torch.relu)  # BAD

    def forward(self, x):
        pass
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: sort_by_a_sum -> torch_compute
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        ts = [x, x]
        ts.sort(key=torch.sum)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: largest_by_a_sum -> torch_compute
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = max([x, x], key=torch.sum)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: heap_by_a_sum -> torch_compute
# use: relu
import heapq
boxes = []


class ModelNew(nn.Module):
    def forward(self, x):
        heapq.nlargest(1, boxes, key=torch.sum)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: filter_by_any -> torch_compute
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        list(filter(torch.any, [x]))  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: lazy_map_of_init -> kernel_not_used
# use: relu
class ModelNew(nn.Module):
    def __init__(self, n=1):
        super().__init__()
        self.box = []
        self.m = map(torch.relu, self.box)

    def forward(self, x):
        self.box.append(x)
        for y in self.m:
            return y
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: module_as_callback -> torch_compute
# use: relu
import contextlib


class ModelNew(nn.Module):
    def __init__(self, n=1):
        super().__init__()
        self.act = nn.Linear(3, 3)

    def forward(self, x):
        with contextlib.ExitStack() as stack:
            stack.callback(self.act)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: apply_of_a_module -> torch_compute
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        nn.Identity().apply(lambda m: x * 2)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: numpy_as_callback -> torch_compute
# use: relu
import contextlib
import numpy as np


class ModelNew(nn.Module):
    def forward(self, x):
        with contextlib.ExitStack() as stack:
            stack.callback(np.matmul)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: partial_as_callback -> torch_compute
# use: relu
import functools
import contextlib


class ModelNew(nn.Module):
    def forward(self, x):
        with contextlib.ExitStack() as stack:
            stack.callback(functools.partial(torch.relu))  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: method_of_a_tensor_class_as_callback -> torch_compute
# use: relu
import contextlib


class ModelNew(nn.Module):
    def forward(self, x):
        with contextlib.ExitStack() as stack:
            stack.callback(torch.Tensor.relu_, x)  # BAD
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

# case: pieces_by_recursion -> torch_compute
# use: relu
class Base(nn.Module):
    def pieces(self, y):
        head = y[:16] * 2  # BAD
        return torch.cat((head, self.pieces(y[16:]))) if y.numel() > 16 else head


class ModelNew(Base):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(1,)](x, out, x.numel(), BLOCK=1024)
        return self.pieces(out.view(-1))

# case: pieces_one_by_one -> torch_compute
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(1,)](x, out, x.numel(), BLOCK=1024)
        flat = out.view(-1)
        return torch.cat((flat[0:16] * 2, flat[16:32] * 2, flat[32:48] * 2, flat[48:64] * 2, flat[64:80] * 2, flat[80:96] * 2, flat[96:112] * 2, flat[112:128] * 2, flat[128:144] * 2, flat[144:160] * 2, flat[160:176] * 2, flat[176:192] * 2, flat[192:208] * 2, flat[208:224] * 2, flat[224:240] * 2, flat[240:256] * 2, flat[256:272] * 2, flat[272:288] * 2, flat[288:304] * 2, flat[304:320] * 2))  # BAD
