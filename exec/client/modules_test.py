"""Modules: parameters, buffers, copies, pickles; operators that programs define; torch.cuda's questions."""

import os
import sys
import unittest

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")]

from client.testing.client_case import ClientTest
from client.testing.programs import program

import torch


class StateTest(ClientTest):
    INIT = """
        self.layer = nn.Linear(64, 64)
        self.scale = nn.Parameter(torch.full((64,), 2.0))
        self.register_buffer("table", torch.arange(4).float())
    """

    def test_parameters_and_buffers(self):
        executor = self.check_twice(program(
            """
            assert type(self.scale) is nn.Parameter and self.scale.is_cuda and self.table.device == x.device
            return twice(x)
            """,
            self.INIT,
        ), seed=11)  # fmt: skip
        state = dict(executor.state)
        self.assertEqual(sorted(state), ["layer.bias", "layer.weight", "scale", "table"])
        torch.manual_seed(11)
        torch.testing.assert_close(state["layer.weight"], torch.nn.Linear(64, 64).weight.detach())

    def test_conversions_and_copies(self):
        executor = self.check_twice(program(
            """
            copied = copy.deepcopy(self)
            assert isinstance(copied.scale, nn.Parameter) and copied.scale.data_ptr() != self.scale.data_ptr()
            return twice(x)
            """,
            self.INIT
            + """
        self.double().float().to("cuda").cuda().half().float()
        self.load_state_dict(self.state_dict())
        self.eval().requires_grad_(False)
        nn.init.xavier_uniform_(self.layer.weight)
        self.scale.data = self.scale.data.clone()
        self.layer.bias.data.fill_(0.5)
            """,
        ))  # fmt: skip
        self.assertTrue((dict(executor.state)["layer.bias"] == 0.5).all())

    def test_parametrizations_and_subclasses(self):
        self.check_twice(program(
            "assert type(self.own) is Own\nreturn twice(x)",
            """
            import torch.nn.utils.parametrize as parametrize
            self.layer = nn.Linear(4, 4)
            parametrize.register_parametrization(self.layer, "weight", Same())
            self.normed = nn.utils.parametrizations.weight_norm(nn.Linear(4, 4))
            self.own = Own(torch.randn(3))
            """,
            """
class Same(nn.Module):
    def forward(self, w): return w
class Own(nn.Parameter): pass
            """,
        ))  # fmt: skip

    def test_pickles(self):
        executor = self.check_twice(program(
            "return twice(x)",
            self.INIT
            + """
        import io, pickle
        buffer = io.BytesIO()
        torch.save(self.state_dict(), buffer)
        buffer.seek(0)
        loaded = torch.load(buffer)
        assert loaded["scale"].is_cuda
        self.load_state_dict(loaded)
        copied = pickle.loads(pickle.dumps(self)).layer
        self.layer.weight.data = copied.weight.data
            """,
        ), seed=4)  # fmt: skip
        torch.manual_seed(4)
        torch.testing.assert_close(dict(executor.state)["layer.weight"], torch.nn.Linear(64, 64).weight.detach())

    def test_code_that_needs_the_host_is_constructed_again(self):
        executor = self.check_twice(program(
            "return twice(x)", 'self.register_buffer("window", torch.from_numpy(torch.hann_window(8).numpy()))'
        ))
        torch.testing.assert_close(dict(executor.state)["window"], torch.hann_window(8))

    def test_what_is_refused_is_not_constructed_again(self):
        refuse = lambda name, phase: "aten::mm computes on weights" if name == "mm" else None
        source = program("return twice(x)", "w = torch.randn(4, 4)\nself.p = w @ w  # here")
        executor = self.serve(source, refuse=refuse)
        self.assertEqual(len(executor.refused), 1)
        self.assertEqual((executor.failure["phase"], executor.failure["kind"]), ("init", "RuntimeError"))
        self.assertIn("# here", source.split("\n")[executor.failure["line"] - 1])

    def test_tables_made_on_first_use(self):
        executor = self.serve(
            program(
                """
                if x.shape not in self.tables:
                    host = torch.arange(x.shape[1]).float() / 2
                    self.tables[x.shape] = host.to(x.device), torch.tensor([i % 3 for i in range(8)], device=x.device)
                return twice(x), self.tables[x.shape]
                """,
                "self.tables = {}\nself.later = nn.LazyLinear(3)",
            ),
            [[torch.ones(2, 4)], [torch.ones(2, 4)]],
        )
        self.check_ended(executor)
        for out in executor.outputs:
            self.assertEqual([t.tolist() for t in out[1]], [[0, 0.5, 1, 1.5], [0, 1, 2, 0, 1, 2, 0, 1]])
        sources = [m["args"][1] for m in self.commands(executor, "op") if m["name"] == "copy_"]
        self.assertEqual(["host" in source for source in sources], [True, True])

    def test_arguments_of_init_and_several_calls(self):
        source = program("self.calls += 1\nreturn {'y': twice(x), 'n': self.calls, 'w': (self.w, None)}", "self.w, self.calls = w.cuda(), calls")
        source = source.replace("__init__(self)", "__init__(self, w, *, calls)")
        inputs = [[torch.randn(3, 5)], [torch.randn(4, 5).t()]]
        executor = self.serve(source, inputs, init=([torch.ones(2)], {"calls": 4}))
        self.check_ended(executor)
        for (x,), out, n in zip(inputs, executor.outputs, (5, 6)):
            torch.testing.assert_close(out["y"], 2 * x)
            self.assertEqual((out["n"], out["w"][0].tolist(), out["w"][1]), (n, [1, 1], None))

    def test_a_callable_that_is_no_module(self):
        self.check_twice(program("return twice(x)") + "\nclass ModelNew:\n    def __call__(self, x): return twice(x)\n")


class OperatorTest(ClientTest):
    def test_custom_operators(self):
        self.check_twice(program(
            "y = torch.empty_like(x)\ninto(x, y)\nown(y)\nreturn torch.ops.tests.third(wrapped(own(x))[:16], 1)",
            before="""
@torch.library.custom_op("tests::own", mutates_args=())
def own(x: torch.Tensor) -> torch.Tensor:
    return twice(x)
@own.register_fake
def _(x): return torch.empty_like(x)
@torch.library.custom_op("tests::into", mutates_args={"y"}, device_types="cuda")
def into(x: torch.Tensor, y: torch.Tensor) -> None:
    twice(x, y)
from torch.library import triton_op, wrap_triton
@triton_op("tests::wrapped", mutates_args={})
def wrapped(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    wrap_triton(copy_kernel)[(4,)](x, y, x.numel(), BLOCK=256)
    return y
@triton.jit
def copy_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)
library = torch.library.Library("tests", "FRAGMENT")
library.define("third(Tensor x, int n) -> Tensor")
def third(x, n):
    assert n == 1
    return x.clone()
library.impl("third", third, "CUDA")
library.impl("third", lambda x, n: 1 / 0, "CPU")
            """,
        ))  # fmt: skip

    def test_autograd_functions(self):
        self.check_twice(program(
            """
            with torch.enable_grad():
                y = Twice.apply(x.requires_grad_())
            assert y.requires_grad and "TwiceBackward" in y.grad_fn.name()
            return y
            """,
            before="""
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return twice(x)
    @staticmethod
    def backward(ctx, g): return 2 * g
            """,
        ))  # fmt: skip

    def test_compile_is_the_identity(self):
        self.check_twice(program(
            "self.inner.compile()\nreturn fast(self.inner(x))",
            "self.inner = torch.compile(nn.Identity())",
            "@torch.compile(mode='max-autotune')\ndef fast(x): return twice(x)",
        ))

    def test_autocast_and_modes(self):
        executor = self.serve(program("""
            torch.backends.cuda.matmul.allow_tf32 = True
            torch.set_float32_matmul_precision("high")
            with torch.autocast("cuda", dtype=torch.float16), torch.inference_mode():
                assert torch.is_autocast_enabled("cuda")
                try:
                    y = torch.mm(x, x.t())
                except RuntimeError as error:
                    assert "refused: aten::mm" in str(error)
                return twice(x)
        """))
        self.check_ended(executor)
        copies = [m for m in self.commands(executor, "op") if m["name"] == "copy_"]
        self.assertEqual(copies[0]["args"][0]["t"]["dtype"], "float16")  # mm's operands are cast first

    def test_small_numbers_may_be_computed(self):
        executor = self.serve(program("n = x[0, :4]\nreturn n.sum() / 2, n + 1, (n > 0.5), -n, n * torch.tensor(2.0)"))
        self.check_ended(executor)
        n = self.x[0, :4]
        for got, want in zip(executor.outputs[0], (n.sum() / 2, n + 1, n > 0.5, -n, 2 * n)):
            torch.testing.assert_close(got, want)

    def test_a_refusal_names_operator_and_line(self):
        source = program("y = twice(x)\nreturn torch.relu(y)  # here")
        executor = self.serve(source)
        failure = executor.failure
        self.assertEqual(failure["kind"], "RuntimeError")
        self.assertEqual(failure["text"], "refused: aten::relu computes, on 1024 elements")
        self.assertIn("# here", source.split("\n")[failure["line"] - 1])
        self.assertEqual(executor.refused[0][1], failure["line"])


class CudaTest(ClientTest):
    def test_what_the_device_is(self):
        self.check_twice(program("""
            assert torch.cuda.is_available() and torch.cuda.device_count() == 1 and torch.cuda.current_device() == 0
            p = torch.cuda.get_device_properties(x.device)
            assert (p.major, p.minor) == torch.cuda.get_device_capability() == (8, 9) and p.multi_processor_count == 142
            assert p.name == torch.cuda.get_device_name() and p.shared_memory_per_block_optin == 101376
            assert triton.runtime.driver.active.get_current_target().arch == 89
            with torch.cuda.device(0), torch.cuda.nvtx.range("a"): y = torch.cuda.nvtx.range("b")(twice)(x)
            torch.cuda.synchronize(); torch.cuda.empty_cache(); torch.cuda.reset_peak_memory_stats()
            return y
        """))

    def test_streams_and_events(self):
        self.check_twice(program("""
            side = torch.cuda.Stream()
            assert torch.cuda.current_stream() == torch.cuda.default_stream()
            side.wait_stream(torch.cuda.current_stream())
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            with torch.cuda.stream(side):
                y = twice(x)
            end.record(); end.synchronize()
            assert start.elapsed_time(end) >= 0
            torch.cuda.current_stream().wait_stream(side)
            y.record_stream(side)
            return y
        """))

    def test_graphs(self):
        executor = self.serve(program(
            """
            self.static.copy_(x)
            self.graph.replay()
            return self.out.clone()
            """,
            """
            self.static = torch.empty(16, 64)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                between = twice(self.static)
                self.out = twice(between)
            """,
        ), [[torch.ones(16, 64)], [torch.full((16, 64), 3.0)]])  # fmt: skip
        self.check_ended(executor)
        self.assertEqual([out.unique().tolist() for out in executor.outputs], [[4], [12]])
        freed = {number for message in executor.log for number in message.get("free", ())}
        between = self.commands(executor, "launch")[0]["args"][1]["t"]["s"]
        self.assertNotIn(between, freed)  # the graph writes there at each replay

    def test_graphed_callables(self):
        self.check_twice(program(
            "return self.fast(x)",
            "self.fast = torch.cuda.make_graphed_callables(twice, (torch.zeros(16, 64, device='cuda'),))",
        ))


if __name__ == "__main__":
    unittest.main()
