"""Kernels of the corpus: control flow, calls, atomics, block pointers, tensor descriptors, assertions, printing."""

import triton
import triton.language as tl
from corpus_case import case


@case("*fp32 i32 i32", BLOCK=64)
@triton.jit
def nested_loops(x_ptr, n, m, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    count = 0
    for a in range(n):
        for b in range(a, m, 2):
            acc += tl.load(x_ptr + a * m + b * BLOCK + i)
            count += 1
        acc *= 0.5
    tl.store(x_ptr + i, acc + count)


@case("*fp32 i64 i64", BLOCK=64)
@triton.jit
def loop_without_results(x_ptr, n, step, BLOCK: tl.constexpr):
    for a in range(0, n, step):
        tl.store(x_ptr + a * BLOCK + tl.arange(0, BLOCK), a.to(tl.float32))
    for b in tl.static_range(3):
        tl.store(x_ptr + b, 1.0)
    for c in tl.range(0, n, 1, loop_unroll_factor=2, disallow_acc_multi_buffer=True, flatten=True):
        tl.store(x_ptr + c, 2.0)


@case("*i32 *fp32 i32", BLOCK=32)
@triton.jit
def while_loops(n_ptr, x_ptr, limit, BLOCK: tl.constexpr):
    n = tl.load(n_ptr)
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    while (n > 1) & (n < limit):
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        x = x * 0.5
    while tl.load(n_ptr) != 0:
        tl.debug_barrier()
    tl.store(n_ptr, n)
    tl.store(x_ptr + tl.arange(0, BLOCK), x)


@case("*fp32 i32 i1", BLOCK=32)
@triton.jit
def branches(x_ptr, n, flag, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    y = x
    if n > 10 and flag:
        x = x + 1
        y = y * 2
    elif n > 5:
        x = x - 1
    else:
        tl.store(x_ptr + 64 + i, y)
    if flag:
        tl.store(x_ptr + 128, 0.0)
    tl.store(x_ptr + i, x + y)


@case("*fp32 i32", BLOCK=32)
@triton.jit
def early_return(x_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    if pid >= n:
        return
    x = tl.load(x_ptr + pid)
    if x < 0:
        tl.store(x_ptr + pid, -x)
        return
    if x > 100:
        return
    tl.store(x_ptr + pid * BLOCK + tl.arange(0, BLOCK), x)


@triton.jit
def _pick(x, n):
    if n > 3:
        return x + 1
    return x * 2


@case("*fp32 i32", BLOCK=32)
@triton.jit
def several_returns(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, _pick(tl.load(x_ptr + i), n))


@triton.jit(noinline=True)
def _scale(x, factor):
    return x * factor


@triton.jit(noinline=True)
def _both(x, y):
    return _scale(x, 3.0) + y, _scale(y, 2.0)


@triton.jit(noinline=True)
def _record(ptr, value):
    tl.store(ptr, value)


@case("*fp32 fp32", BLOCK=64)
@triton.jit
def calls(x_ptr, factor, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = _scale(tl.load(x_ptr), factor)
    x, y = _both(x, factor)
    _record(x_ptr, factor)
    tl.store(x_ptr + i, tl.load(x_ptr + i) * x + y)


@triton.jit
def _tile(pid, n, GROUP: tl.constexpr):
    group = pid // (n * GROUP)
    return group * GROUP + pid % GROUP, (pid % (n * GROUP)) // GROUP


@case("*fp32 i32", BLOCK=16)
@triton.jit
def device_functions(x_ptr, n, BLOCK: tl.constexpr):
    a, b = _tile(tl.program_id(0), n, 4)
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + a * BLOCK + b + i, tl.load(x_ptr + i) + tl.cdiv(n, BLOCK))


@case("*fp32 *i32 *i32 *fp16 *u32 *i64 i32", BLOCK=64)
@triton.jit
def atomics(f_ptr, i_ptr, index_ptr, h_ptr, u_ptr, l_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = tl.load(index_ptr + i)
    tl.atomic_add(f_ptr + at, 1.5, mask=i < n)
    old = tl.atomic_add(i_ptr + at, 1, sem="relaxed", scope="cta")
    tl.atomic_max(i_ptr + at, old)
    tl.atomic_min(i_ptr + at, old, sem="acquire")
    tl.atomic_max(f_ptr + at, 2.0)
    tl.atomic_min(f_ptr + at, 0.25)
    tl.atomic_and(i_ptr + at, 7)
    tl.atomic_or(i_ptr + at, 8, sem="release", scope="sys")
    tl.atomic_xor(i_ptr + at, 9)
    tl.atomic_xchg(i_ptr + at, i)
    tl.atomic_add(h_ptr + at, 1.0)
    tl.atomic_max(u_ptr + at, 3)
    tl.atomic_min(u_ptr + at, 4)
    tl.atomic_add(l_ptr, 5)
    tl.atomic_cas(l_ptr + i, i.to(tl.int64), i.to(tl.int64) + 1)


@case("*i32 *i32 *fp32", BLOCK=64)
@triton.jit
def spin_lock(lock_ptr, count_ptr, x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    while tl.atomic_cas(lock_ptr, 0, 1, sem="acquire") == 1:
        pass
    count = tl.load(count_ptr)
    if count == 0:
        tl.atomic_xchg(count_ptr, 1)
    else:
        tl.store(x_ptr + i, tl.load(x_ptr + i) + count)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0, sem="release")


@case("*fp16 *fp16 *fp32 i32 i32 i32", B=32)
@triton.jit
def block_pointers(a_ptr, b_ptr, c_ptr, M, N, K, B: tl.constexpr):
    m = tl.program_id(0) * B
    n = tl.program_id(1) * B
    a = tl.make_block_ptr(a_ptr, (M, K), (K, 1), (m, 0), (B, B), (1, 0))
    b = tl.make_block_ptr(b_ptr, (K, N), (1, K), (0, n), (B, B), (0, 1))
    acc = tl.zeros((B, B), tl.float32)
    for _ in range(0, K, B):
        x = tl.load(a, boundary_check=(0, 1), padding_option="zero")
        y = tl.load(b, boundary_check=(0,), padding_option="nan")
        acc = tl.dot(x, y, acc)
        a = tl.advance(a, (0, B))
        b = tl.advance(b, (B, 0))
    c = tl.make_block_ptr(c_ptr, (M, N), (N, 1), (m, n), (B, B), (1, 0))
    tl.store(c, acc, boundary_check=(0, 1))


@case("*fp16 *fp16 *fp32 i32 i32 i32", B=64)
@triton.jit
def descriptors(a_ptr, b_ptr, c_ptr, M, N, K, B: tl.constexpr):
    m = tl.program_id(0) * B
    n = tl.program_id(1) * B
    a = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[B, B])
    b = tl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[K, 1], block_shape=[B, B], padding_option="nan")
    c = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[N, 1], block_shape=[B, B])
    acc = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        acc = tl.dot(a.load([m, k]), b.load([n, k]).T, acc)
    c.store([m, n], acc)
    c.atomic_add([m, n], acc)


@case("*fp16 *fp16 i32 i32", capability=80, B=64)
@triton.jit
def rewritten_descriptors(a_ptr, b_ptr, M, K, B: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[B, B])
    b = tl.make_tensor_descriptor(b_ptr, shape=[M, K], strides=[K, 1], block_shape=[B, B])
    for k in range(0, K, B):
        b.store([0, k], a.load([0, k]) * 2)


@case("tensordesc<fp16[32,64]> tensordesc<fp16[32,64]> i32")
@triton.jit
def host_descriptors(source, target, row):
    target.store([row, 0], source.load([row, 64]) * 2)


@case("tensordesc<fp32[1,64]> tensordesc<fp32[1,64]> *i32")
@triton.jit
def descriptor_rows(source, target, rows_ptr):
    rows = tl.load(rows_ptr + tl.arange(0, 32))
    target.scatter(source.gather(rows, 64), rows, 0)


@case("*i32 i32 fp32", debug=True, BLOCK=32)
@triton.jit
def assertions(x_ptr, n, scale, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.device_assert(x < n, 'too large: "x"\\ % {}')
    tl.device_print("value of x", x)
    tl.device_print("n and scale:", n, scale, hex=True)
    tl.device_print("nothing")
    tl.store(x_ptr + tl.arange(0, BLOCK), x + n)


@case("*fp32 i32 i32", BLOCK=128)
@triton.jit
def persistent(x_ptr, tiles, programs, BLOCK: tl.constexpr):
    last = -1
    for tile in tl.range(tl.program_id(0), tiles, programs, flatten=True, warp_specialize=False):
        x = tl.load(x_ptr + tile * BLOCK + tl.arange(0, BLOCK))
        if tile > 4:
            x = tl.where(x > 0, x, tl.exp(x) - 1)
            last = tile
        tl.store(x_ptr + tile * BLOCK + tl.arange(0, BLOCK), x)
    tl.store(x_ptr, last.to(tl.float32))


@case("*i32 *i32 i32")
@triton.jit
def last_block(count_ptr, x_ptr, n):
    done = tl.atomic_add(count_ptr, 1, sem="acq_rel", scope="gpu")
    if done == n - 1:
        total = 0
        for i in range(n):
            total += tl.load(x_ptr + i)
        tl.store(x_ptr, total)


@case("*u32 u32 u64")
@triton.jit
def unsigned_scalars(x_ptr, n, m):
    for i in range(n):
        tl.store(x_ptr + i, (m // (i + 1).to(tl.uint64)).to(tl.uint32))


@case("*i1 *i32", BLOCK=32)
@triton.jit
def booleans(flag_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(flag_ptr + i)
    b = tl.full((BLOCK,), True, tl.int1) & ~a | (i > 3)
    tl.store(out_ptr + i, b.to(tl.int32))
    tl.store(flag_ptr + i, a ^ b)
