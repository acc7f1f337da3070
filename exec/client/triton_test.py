"""Triton in a process without a device: launches, autotuning, benchmarks, descriptors, compilation errors."""

import os
import sys
import unittest

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")]

from client.testing.client_case import ClientTest
from client.testing.programs import line_of, program

import torch

TUNED = """
used = []
def pruned(configs, named_args, **kwargs):
    assert named_args["n"] == 1024
    return [c for c in configs if c.kwargs["BLOCK"] < 1024]
@triton.autotune(
    [triton.Config({"BLOCK": b}, num_warps=w) for b, w in ((64, 2), (128, 4), (2048, 8))], key=["n"], OPTIONS
)
@triton.jit
def tuned(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)
"""
USE_TUNED = """
y = x.clone()
tuned[lambda meta: (triton.cdiv(1024, meta["BLOCK"]),)](y, 1024)
assert tuned.best_config.kwargs["BLOCK"] in (64, 128)
return y
"""


class LaunchTest(ClientTest):
    def test_a_kernel_is_sent_once_and_its_launches_have_lines(self):
        source = program("y = twice(x)\ny = twice(x, y)\nreturn twice(x, y)  # third")
        executor = self.check_twice(source, calls=None)
        self.assertEqual(len(self.commands(executor, "kernel")), 1)
        kernel, launches = self.commands(executor, "kernel")[0], self.commands(executor, "launch")
        self.assertIn("tt.func public @twice_kernel", kernel["ttir"])
        self.assertNotIn("ttg.", kernel["ttir"])
        self.assertEqual((kernel["num_warps"], kernel["num_ctas"]), (4, 1))
        self.assertEqual([m["grid"] for m in launches], [[4, 1, 1]] * 3)
        # The innermost line of the candidate's file is the launch itself.
        self.assertEqual({m["line"] for m in launches}, {line_of(source, "twice_kernel[")})

    def test_options_make_another_kernel(self):
        executor = self.check_twice(program("""
            y = torch.empty_like(x)
            for warps in (1, 2, 1):
                twice_kernel[(4,)](x, y, 1024, BLOCK=256, num_warps=warps, num_stages=2)
            return y
        """))
        self.assertEqual([m["num_warps"] for m in self.commands(executor, "kernel")], [1, 2])

    def test_kinds_of_arguments(self):
        executor = self.serve(program(
            """
            y = torch.zeros(8, device="cuda")
            many[(1,)](y, (x, y[4:]), 3, 1, 2.5, True, None, float("inf"), x.data_ptr(), MODE="add", BLOCK=4)
            empty[(0,)](y)
            return y
            """,
            before="""
@triton.jit
def many(y, pair, three, one, number, flag, none, infinite, address, MODE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = address.to(tl.pointer_type(tl.float32))
    v = tl.load(pair[0] + i) + three + one + number
    if MODE == "add" and flag:
        tl.store(y + i, v)
    tl.store(pair[1] + i, tl.where(v < infinite, tl.load(x + i), 0))
@triton.jit
def empty(y):
    tl.store(y, 1.0)
            """,
        ))  # fmt: skip
        self.check_ended(executor)
        row = self.x[0, :4]
        torch.testing.assert_close(executor.outputs[0], torch.cat([row + 6.5, row]))
        self.assertEqual(len(self.commands(executor, "launch")), 1)  # an empty grid runs no program

    def test_pointers_in_memory_and_reinterpreted(self):
        self.check_twice(program(
            """
            y = torch.empty_like(x)
            twice_kernel[(2,)](triton.reinterpret(x, tl.float32), y, 512, BLOCK=256)
            pointers = torch.tensor([x.view(-1)[512:].data_ptr()], device=x.device)
            by_pointer[(2,)](pointers, y.view(-1)[512:], 512, BLOCK=256)
            return y
            """,
            before="""
@triton.jit
def by_pointer(pointers, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(pointers).to(tl.pointer_type(tl.float32))
    tl.store(y + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)
            """,
        ))  # fmt: skip

    def test_descriptors(self):
        executor = self.check_twice(program(
            """
            y, z = torch.empty_like(x), torch.empty_like(x)
            a, b = (TensorDescriptor.from_tensor(t, [16, 32]) for t in (x, y))
            by_descriptor[(2,)](a, b, BLOCK=32)
            in_kernel[(2,)](x, z, 16, 64, BLOCK=32)
            return y if x is None else z
            """,
            before="""
from triton.tools.tensor_descriptor import TensorDescriptor
triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
@triton.jit
def by_descriptor(a, b, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK
    b.store([0, at], 2 * a.load([0, at]))
@triton.jit
def in_kernel(x, y, M, N, BLOCK: tl.constexpr):
    a = tl.make_tensor_descriptor(x, [M, N], [N, 1], [16, BLOCK])
    b = tl.make_tensor_descriptor(y, [M, N], [N, 1], [16, BLOCK])
    b.store([0, tl.program_id(0) * BLOCK], 2 * a.load([0, tl.program_id(0) * BLOCK]))
            """,
        ))  # fmt: skip
        host = self.commands(executor, "launch")[0]["args"]
        self.assertEqual(host[1:10], [16, 64, 64, 1, False, 16, 64, 64, 1])

    def test_what_a_kernel_is_to_programs(self):
        self.check_twice(program("""
            y = torch.empty_like(x)
            kernel = twice_kernel[(4,)](x, y, 1024, BLOCK=256)
            assert kernel.metadata.num_warps == 4 and "tt.func" in kernel.asm["ttir"] and "ptx" in kernel.asm
            assert "ttg." in kernel.asm["ttgir"]
            assert kernel.n_regs > 0 and kernel.n_spills == 0
            twice_kernel.warmup(torch.float32, torch.float32, 16, BLOCK=256, grid=(1,))
            kernel[(4, 1, 1)](x, y, 1024, 256)
            return y
        """))

    def test_heuristics_and_hooks(self):
        self.check_twice(program(
            """
            y = torch.empty_like(x)
            entered = []
            triton.knobs.runtime.launch_enter_hook = lambda data: entered.append(data.get()["name"])
            guided[(4,)](x, y, 1024)
            assert entered == ["guided"]
            return y
            """,
            before="""
@triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["n"] // 4)})
@triton.jit
def guided(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)
            """,
        ))  # fmt: skip


class TuningTest(ClientTest):
    def check_tuned(self, options, use=USE_TUNED):
        return self.check_twice(program(use, before=TUNED.replace("OPTIONS", options)))

    def test_autotune_with_its_hooks(self):
        prune = "prune_configs_by={'early_config_prune': pruned}"
        for options in (
            f"restore_value=['x'], {prune}",
            prune,  # it forgot to restore, which does no harm
            f"pre_hook=lambda args, reset_only=False: used.append(1), {prune}",
            "prune_configs_by={'early_config_prune': pruned, 'top_k': 1, 'perf_model': lambda **a: a['BLOCK']}",
        ):
            with self.subTest(options=options):
                executor = self.check_tuned(options)
                benches = [m["begin"] for m in self.commands(executor, "bench")]
                self.assertEqual(benches, [True, False] * (len(benches) // 2))
                self.assertEqual(len(benches), 2 if "top_k" in options else 4)

    def test_reset_to_zero_and_a_hook_of_a_configuration(self):
        before = """
configs = [triton.Config({"BLOCK": b}, pre_hook=lambda args: args["y"].zero_()) for b in (64, 256)]
def adds(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(y + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)
hooked = triton.autotune(configs, key=[])(triton.jit(adds))
plain = [triton.Config({"BLOCK": b}) for b in (64, 256)]
reset = triton.autotune(plain, key=["n"], reset_to_zero=["y"])(triton.jit(adds))
"""
        self.check_twice(program("""
            y, z = torch.empty_like(x), torch.zeros_like(x)
            grid = lambda meta: (triton.cdiv(1024, meta["BLOCK"]),)
            hooked[grid](x, y, 1024)
            reset[grid](x, z, 1024)
            return torch.cat([y[:8], z[8:]])
        """, before=before))  # fmt: skip

    def test_benchmarks(self):
        executor = self.check_twice(program("""
            y = x.clone()
            def work(): twice(y, y)
            ms = triton.testing.do_bench(work, warmup=1, rep=1)
            assert ms > 0 and len(triton.testing.do_bench(work, quantiles=[0.5, 0.2, 0.8])) == 3
            assert triton.testing.do_bench_cudagraph(work, return_mode="all")[0] > 0
            return twice(y)
        """))
        self.assertEqual(len(self.commands(executor, "bench")), 6)

    def test_an_autotuner_inside_of_a_benchmark(self):
        use = "y = x.clone()\nms = triton.testing.do_bench(lambda: tuned[(16,)](y, 1024))\nassert ms > 0\n" + USE_TUNED
        executor = self.check_tuned("prune_configs_by={'early_config_prune': pruned}", use)
        benches = [m["begin"] for m in self.commands(executor, "bench")]
        self.assertEqual(benches, [True, False] * (len(benches) // 2))

    def test_configurations_that_the_executor_cannot_compile_are_dropped(self):
        from client.testing.fake_executor import Executor

        original = Executor._kernel

        def kernel(executor, message, payload):
            if message["num_warps"] == 2:
                raise RuntimeError("out of resource: shared memory, Required: 300000, Hardware limit: 101376. Reduce.")
            if message["num_warps"] == 8:
                raise RuntimeError("PTXAS error: Internal Triton PTX codegen error")
            return original(executor, message, payload)

        Executor._kernel = kernel
        self.addCleanup(setattr, Executor, "_kernel", original)
        use = USE_TUNED.replace("in (64, 128)", "== 128")
        self.check_tuned("", use)
        self.check_tuned("", "y = x.clone()\ntriton.testing.do_bench(lambda: tuned[(16,)](y, 1024))\n" + use)


class ErrorTest(ClientTest):
    def failed(self, source):
        executor = self.serve(source)
        self.assertIsNotNone(executor.failure)
        return executor.failure, source.split("\n")[executor.failure["line"] - 1]

    def test_a_kernel_that_does_not_compile(self):
        before = """
@triton.jit
def helper(v):
    return v + undefined_name  # here
@triton.jit
def broken(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, helper(tl.load(x + i)))
"""
        failure, line = self.failed(program("broken[(1,)](x, BLOCK=16)\nreturn x", before=before))
        self.assertEqual(failure["phase"], "forward")
        self.assertIn("# here", line)
        self.assertIn("undefined_name", failure["text"])

    def test_bad_launches(self):
        for launch, text in (
            ("twice_kernel[(4,)](x.cpu()[:0] if False else torch.zeros(4), x, 4, BLOCK=256)", "cpu tensor"),
            ("twice_kernel[(1, 70000)](x, x, 4, BLOCK=256)", "invalid argument"),
            ("twice_kernel[(1,)](x, x, 4, BLOCK=256, no_such=1)", "no_such"),
            ("twice_kernel[(1.5,)](x, x, 4, BLOCK=256)", "float"),
        ):
            with self.subTest(launch=launch):
                failure, line = self.failed(program(launch + "\nreturn x"))
                self.assertIn(text, failure["text"])
                self.assertIn(launch, line)

    def test_an_access_out_of_bounds_is_an_error_of_the_launch(self):
        failure, line = self.failed(program("y = torch.empty(4, device='cuda')\ntwice(x, y)\nreturn y"))
        self.assertIn("out-of-bounds", failure["text"])
        self.assertIn("twice_kernel[", line)

    def test_only_jitted_functions_are_kernels(self):
        failure, line = self.failed(program("triton.compile('kernel.ptx')  # here\nreturn x"))
        self.assertIn("@triton.jit", failure["text"])
        self.assertIn("# here", line)


if __name__ == "__main__":
    unittest.main()
