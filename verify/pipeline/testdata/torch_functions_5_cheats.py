# torch computes in functions.
# case: early_return_before_a_store -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
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

# case: early_return_in_a_loop -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
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

# case: break_before_an_assignment -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
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

# case: continue_before_an_assignment -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
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

# case: break_between_assignments -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
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

# case: name_shadowed_perhaps -> runtime_compute aten::abs
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
if torch.cuda.device_count() > 99:
    def abs(x):
        out = torch.empty_like(x)
        relu_kernel[(1,)](x, out, x.numel(), BLOCK=1024)
        return out


class ModelNew(nn.Module):
    def forward(self, x):
        return abs(x)  # BAD

# case: counter_counts -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
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

# case: pieces_by_recursion -> runtime_compute aten::mul
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
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

# case: pieces_one_by_one -> runtime_compute aten::mul
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(1,)](x, out, x.numel(), BLOCK=1024)
        flat = out.view(-1)
        return torch.cat((flat[0:16] * 2, flat[16:32] * 2, flat[32:48] * 2, flat[48:64] * 2, flat[64:80] * 2, flat[80:96] * 2, flat[96:112] * 2, flat[112:128] * 2, flat[128:144] * 2, flat[144:160] * 2, flat[160:176] * 2, flat[176:192] * 2, flat[192:208] * 2, flat[208:224] * 2, flat[224:240] * 2, flat[240:256] * 2, flat[256:272] * 2, flat[272:288] * 2, flat[288:304] * 2, flat[304:320] * 2))  # BAD

# case: tail_beyond_the_end -> runtime_compute no kernel wrote any of the
# task: torch.randn(6, 32), torch.randn(6, 32) => lambda self, x, y: torch.cat((x, y), dim=1)
@triton.jit
def k(out_ptr, start, n, BLOCK: tl.constexpr):
    offs = start + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(out_ptr + offs, mask=offs < n, other=0.0)
    tl.store(out_ptr + offs, tl.exp(v) - 1.0, mask=offs < n)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.cat((x, y), dim=1)
        k[(2,)](out, out.numel(), out.numel(), BLOCK=128)
        return out

# case: scratch_beside_a_copy -> runtime_compute no kernel wrote any of the
# task: torch.randn(16, 24) => lambda self, x: x.t().contiguous()
@triton.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, tl.exp(x), mask=offs < n)


class ModelNew(nn.Module):
    def forward(self, x):
        scratch = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 256),)](x, scratch, x.numel(), BLOCK=256)
        both = torch.stack((scratch, x))
        return both[1].t().contiguous()

# case: scratch_beside_a_cast -> runtime_compute no kernel wrote any of the
# task: torch.randn(5, 70) => lambda self, x: x.to(torch.float64)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.cat((torch.empty_like(x), x))
        relu_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out[x.shape[0]:].double()
