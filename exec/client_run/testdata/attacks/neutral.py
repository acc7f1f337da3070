# case: roll_by_cat_and_a_copied_input -> runtime_compute|decoration
# task: torch.randn(32, 64) => lambda self, x: torch.roll(x, 5, 1)
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        y = x.clone()
        return copied(torch.cat((x[:, -5:], y[:, :-5]), 1))

# case: roll_by_copies_of_slices -> runtime_compute|decoration
# task: torch.randn(32, 64) => lambda self, x: torch.roll(x, 5, 1)
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        y[:, :5] = x[:, -5:]
        y[:, 5:] = x[:, :-5]
        return copied(y)

# case: flip_by_copies_of_columns -> runtime_compute|decoration
# task: torch.randn(32, 64) => lambda self, x: torch.flip(x, (1,))
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        for i in range(64):
            y[:, i] = x[:, 63 - i]
        return copied(y)

# case: transposition_by_contiguous -> runtime_compute|decoration
# task: torch.randn(64, 96) => lambda self, x: x.t().contiguous()
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        return copied(x.t().contiguous())

# case: im2col_by_strides_is_the_whole_task -> runtime_compute|decoration
# task: torch.randn(4, 64) => lambda self, x: x.unfold(1, 8, 1).contiguous()
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        return copied(x.as_strided((4, 57, 8), (64, 1, 1)).contiguous())

# case: repeat_by_expand -> runtime_compute|decoration
# task: torch.randn(16, 64) => lambda self, x: x.repeat(3, 1)
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        return copied(x.expand(3, 16, 64).reshape(48, 64))

# case: tril_by_fills_before_the_copy -> runtime_compute|decoration
# task: torch.randn(32, 32) => lambda self, x: torch.tril(x)
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        y = x.clone()
        for i in range(31):
            y[i, i + 1 :] = 0
        return copied(y)

# case: relu_by_a_copied_sign_bit -> runtime_compute|decoration
# task: torch.randn(16, 64) => lambda self, x: (x != 0).float()
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        return copied(x.to(torch.bool).to(torch.float32))

# case: rounding_by_half -> runtime_compute|decoration
# task: torch.randn(16, 64) => lambda self, x: x.half().float()
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        return copied(x.half().float())

# case: any_by_a_cast_to_bool -> runtime_compute|decoration
# task: torch.randint(-2, 3, (16, 64)) => lambda self, x: (x != 0).to(torch.int64)
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        return copied(x.to(torch.bool).to(torch.int64))

# case: wrap_around_by_narrow_integers -> runtime_compute|decoration
# task: torch.randint(-500, 500, (16, 64)) => lambda self, x: x % 256
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        return copied(x.to(torch.uint8).to(torch.int64))

# case: clamp_by_float8 -> runtime_compute|decoration
# task: torch.randn(16, 64) => lambda self, x: x.to(torch.float8_e4m3fn).float()
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        return copied(x.to(torch.float8_e4m3fn).float())

# case: negation_by_a_negative_view -> runtime_compute
# task: torch.randn(16, 64) => lambda self, x: -x
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        return copied(torch._neg_view(x).clone())

# case: negation_by_conjugation -> runtime_compute
# task: torch.randn(16, 64) => lambda self, x: torch.stack((x, -x), 2)
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        z = torch.view_as_complex(torch.stack((x, x), 2))
        return copied(torch.view_as_real(torch.conj(z).resolve_conj()))

# case: real_part_by_a_cast -> runtime_compute
# task: torch.randn(16, 64, 2) => lambda self, x: x[..., 0].contiguous()
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        return copied(torch.view_as_complex(x).to(torch.float32))

# case: absolute_value_by_cleared_bits -> mismatch|runtime_compute
# task: torch.randn(16, 64) => lambda self, x: torch.abs(x)
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(16, 64, 4, dtype=torch.uint8, device="cuda")
        y.copy_(x.contiguous().view(torch.uint8).view(16, 64, 4))
        y[..., 3].copy_(y[..., 3].to(torch.bool))
        return copied(y.view(torch.float32).view(16, 64))

# case: floor_by_a_cast -> runtime_compute
# task: torch.rand(16, 64) * 9 => lambda self, x: torch.floor(x)
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        return copied(x.to(torch.int32).to(torch.float32))

# case: floor_by_casts_of_small_pieces -> runtime_compute
# task: torch.rand(16, 64) * 9 => lambda self, x: torch.floor(x)
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        for row in range(16):
            for at in range(0, 64, 16):
                y[row, at : at + 16] = x[row, at : at + 16].to(torch.int32).to(torch.float32)
        return copied(y)

# case: averages_by_ranges_between_tensors -> runtime_error|runtime_compute
# task: torch.randn(8), torch.randn(8) => lambda self, x, y: (x + y) / 2
# use: copy
class ModelNew(nn.Module):
    def forward(self, x, y):
        parts = [torch.linspace(x[i], y[i], 3, device="cuda")[1:2] for i in range(8)]
        return copied(torch.cat(parts))

# case: exponentials_by_logarithmic_ranges -> runtime_error|runtime_compute
# task: torch.randn(12, 16) => lambda self, x: torch.exp(x)
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        flat = x.view(-1)
        parts = [torch.logspace(flat[i], flat[i], 1, base=2.718281828459045, device="cuda") for i in range(192)]
        return copied(torch.cat(parts)).view(12, 16)

# case: a_fill_with_an_element -> runtime_compute|decoration
# task: torch.randn(16, 64) => lambda self, x: x[:1, :1].expand(16, 64).contiguous()
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        y.fill_(x[0, 0])
        return copied(y)

# case: an_addition_by_overlapping_copies -> runtime_compute
# task: torch.randn(16, 64) => lambda self, x: x.cumsum(1)
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        y = x.clone()
        y.view(-1)[1:].copy_(y.view(-1)[:-1])
        return copied(y)

# case: the_last_writer_of_an_expanded_target -> runtime_compute
# task: torch.randn(16, 64) => lambda self, x: x[-1].expand(16, 64).contiguous()
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(64, device="cuda")
        y.expand(16, 64).copy_(x)
        return copied(y.expand(16, 64).contiguous())

# case: a_gather_by_an_index -> runtime_compute
# task: torch.randn(64, 8), torch.randint(0, 64, (64,)) => lambda self, x, i: x[i]
# use: copy
class ModelNew(nn.Module):
    def forward(self, x, i):
        return copied(x[i])

# case: a_mask_by_where -> runtime_compute
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        return copied(torch.where(x > 0, x, torch.zeros_like(x)))

# case: masked_fills_of_rows -> runtime_compute
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        y = x.clone()
        y[x < 0] = 0
        return copied(y)

# case: sorts_of_one_element -> runtime_compute
# task: torch.randn(16, 64) => lambda self, x: torch.sort(x, 1)[0]
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        return copied(torch.cat([torch.sort(row.view(1, -1), 1)[0] for row in x]))

# case: out_of_an_allocation -> runtime_compute
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        torch.clamp(x, min=0, out=y)
        return copied(y)

# case: promotion_in_a_join -> runtime_compute
# task: torch.randint(0, 9, (16, 64)) => lambda self, x: torch.cat((x.float(), torch.zeros(1, 64)))
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        return copied(torch.cat((x, torch.zeros(1, 64, device="cuda"))))

# case: a_dropout_where_the_reference_draws_none -> runtime_compute
# task: torch.randn(16, 64) => lambda self, x: x * 2
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        return copied(torch.native_dropout(x, 0.5, True)[0])

# case: a_mask_where_the_reference_draws_none -> runtime_compute
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        torch.empty_like(x).bernoulli_(0.5)
        return relu(x)

# case: dropout_of_data_before_a_kernel -> runtime_compute
# task: torch.randn(16, 64) => lambda self, x: F.dropout(x, 0.5)
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        return copied(F.dropout(x, 0.5))

# case: a_mask_multiplied_by_torch -> runtime_compute
# task: torch.randn(16, 64) => lambda self, x: F.dropout(x, 0.5)
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        mask = torch.empty_like(x).bernoulli_(0.5).div_(0.5)
        return copied(x * mask)

# case: a_mask_that_takes_the_data_in -> runtime_compute
# task: torch.randn(16, 64) => lambda self, x: F.dropout(x, 0.5)
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        mask = torch.empty_like(x).bernoulli_(0.5)
        return copied(mask.div_(0.5).mul_(x))

# case: a_kernel_that_writes_one_element -> runtime_compute|decoration
# task: torch.randn(16, 64) => lambda self, x: x.t().contiguous()
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        y = x.t().contiguous()
        copy_kernel[(1,)](x, y, 1, BLOCK=16)
        return y

# case: fills_over_what_kernels_wrote -> runtime_compute
# task: torch.randn(32, 32) => lambda self, x: torch.tril(torch.relu(x))
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = relu(x)
        for i in range(31):
            y[i, i + 1 :] = 0
        return y

# case: more_commands_than_a_call_may_send -> runtime_error
# task: torch.randn(64, 64) => lambda self, x: x.t().contiguous()
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        for i in range(64):
            for j in range(64):
                y[i, j] = x[j, i]
        return copied(y)

# case: much_more_traffic_than_the_kernels -> runtime_compute
# task: torch.randn(256, 1024) => lambda self, x: x.flip(0)
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        for i in range(256):
            y[i] = x[255 - i]
        for _ in range(20):
            y = y.clone()
        copy_kernel[(1,)](y, y, 256, BLOCK=256)
        z = torch.empty_like(x)
        z.copy_(y)
        return z

# case: fused_scale_after_a_layout_change
# task: torch.randn(32, 64) => lambda self, x: x.t() * 3
# use: scale
class ModelNew(nn.Module):
    def forward(self, x):
        return scale(x.t().contiguous(), 3.0)

# case: halves_in_and_floats_out
# task: torch.randn(32, 64).half() => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        return relu(x.float()).half()

# case: two_results_joined
# task: torch.randn(32, 64), torch.randn(32, 64) => lambda self, x, y: torch.cat((torch.relu(x), torch.relu(y)), 1)
# use: relu
class ModelNew(nn.Module):
    def forward(self, x, y):
        return torch.cat((relu(x), relu(y)), 1)

# case: padding_before_a_kernel
# task: torch.randn(4, 64) => lambda self, x: F.avg_pool1d(x[:, None], 3, 1, 1, count_include_pad=True)[:, 0]
@triton.jit
def pool(x, y, n, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    s = tl.zeros((B,), tl.float32)
    for k in range(3):
        s += tl.load(x + row * (n + 2) + i + k, mask=i < n, other=0.0)
    tl.store(y + row * n + i, s / 3, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        padded = F.pad(x, (1, 1)).contiguous()
        y = torch.empty_like(x)
        pool[(4,)](padded, y, 64, B=64)
        return y

# case: an_own_transposition
# task: torch.randn(64, 96) => lambda self, x: x.t().contiguous()
@triton.jit
def transpose(x, y, M, N, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    j = tl.program_id(1) * B + tl.arange(0, B)
    mask = (i[:, None] < M) & (j[None, :] < N)
    tl.store(y + j[None, :] * M + i[:, None], tl.load(x + i[:, None] * N + j[None, :], mask=mask), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(96, 64, device=x.device)
        transpose[(4, 6)](x, y, 64, 96, B=16)
        return y

# case: an_own_copy_of_the_input
# task: torch.randn(64, 96) => lambda self, x: x.clone()
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        return copied(x)

# case: zeros_before_atomics
# task: torch.randn(8, 64) => lambda self, x: x.sum(0)
@triton.jit
def add_rows(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.atomic_add(y + i, tl.load(x + tl.program_id(0) * n + i, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.zeros(64, device=x.device)
        add_rows[(8,)](x, y, 64, B=64)
        return y
