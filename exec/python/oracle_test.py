"""The oracle by the robust rules: float64 results and their tolerances, variants of the inputs, probes."""

import os
import unittest
from textwrap import dedent, indent

import torch

import testing
from testing import task_source

import layout
import oracle_worker
import precision
import probes
import testing_host
import variants
from testing_host import TRIALS


class Made:
    """An oracle job's result with the values it handed over."""

    def __init__(self, source, mode="robust", **fields):
        fds = {name: os.memfd_create(name) for name in ("visible", "hidden")}
        for fd in fds.values():
            os.ftruncate(fd, 64 << 20)
        job = testing_host.job(source, mode, fds=fds, **fields)
        try:
            self.result = oracle_worker.run_job(job)
            self.calls, self.inputs = [], []
            if self.result["outcome"] == "ok":
                hidden = testing.Reader(fds["hidden"])
                self.calls = [self._read(call, hidden) for call in self.result["calls"]]
                visible = testing.Reader(fds["visible"])
                self.inputs = [visible.get(node) for node in self.result["visible"]["inputs"]]
                self.state = visible.get(self.result["visible"]["state"])
        finally:
            for fd in fds.values():
                os.close(fd)

    @staticmethod
    def _read(call, hidden):
        read = {"trial": call["trial"], "output": hidden.get(call["output"])}
        if "precise" in call:
            precise = call["precise"]
            read.update(exact=hidden.get(precise["exact"]), slack=hidden.get(precise["slack"]))
            read.update(limits=precise["limits"], notes=precise["notes"])
        for name, node in call.get("probes", {}).items():
            read[name] = None if node is None else hidden.get(node)
        return read

    def share(self, call, got, leaf=0):
        """Largest error over its tolerance, as the supervisor reckons."""
        exact, slack = call["exact"][leaf].double(), call["slack"][leaf].double()
        absolute, relative = call["limits"][leaf]
        return float(((got.double() - exact).abs() / (absolute + relative * exact.abs() + slack)).max())


def only(made):
    assert made.result["outcome"] == "ok", made.result
    return made.calls[0]


class PrecisionTest(unittest.TestCase):
    def test_an_elementwise_task_is_held_to_some_ulp(self):
        made = Made(task_source("torch.exp(x) * 0.5"))
        call = only(made)
        x = made.inputs[0][0]
        self.assertEqual(call["exact"][0].dtype, torch.float32)
        self.assertLess(made.share(call, call["output"]), 0.2)
        self.assertLess(made.share(call, torch.exp2(x * 1.4426950408889634) * 0.5), 0.5)  # as Triton does it
        self.assertGreater(made.share(call, call["output"].bfloat16().float()), 10)
        self.assertGreater(made.share(call, call["output"].half().float()), 3)

    def test_small_results_are_held_to_their_own_size(self):
        made = Made(task_source("torch.softmax(x, -1)", "[torch.randn(8, 4096)]"))
        call = only(made)
        self.assertLess(float(call["exact"][0].max()), 1e-2)  # all below the paper's tolerance
        self.assertGreater(made.share(call, torch.zeros_like(call["output"])), 100)
        self.assertLess(made.share(call, call["output"]), 0.5)

    def test_products_may_be_tf32_but_not_bfloat16_nor_summed_in_half(self):
        for inputs in (
            "[torch.randn(64, 1024), torch.randn(1024, 64)]",
            "[torch.rand(64, 1024), torch.rand(1024, 64)]",
        ):
            made = Made(task_source("x @ y", inputs))
            call = only(made)
            a, b = made.inputs[0]
            for rounding in (precision.cut_to_tf32, precision.round_to_tf32):
                self.assertLess(made.share(call, rounding(a) @ rounding(b)), 0.7)
            self.assertLess(made.share(call, (a.half().float() @ b.half().float())), 0.9)
            self.assertGreater(made.share(call, (a.bfloat16() @ b.bfloat16()).float()), 1.2)
            total = torch.zeros(64, 64, dtype=torch.float16)
            for k in range(1024):
                total += (a[:, k, None] * b[k, None, :]).half()
            self.assertGreater(made.share(call, total.float()), 1.5)

    def test_another_order_of_summation_passes_and_half_sums_fail(self):
        for inputs in ("[torch.randn(4, 16384)]", "[torch.rand(4, 16384)]", "[torch.randn(4, 16384) + 5]"):
            made = Made(task_source("x.sum(1)", inputs))
            call = only(made)
            x = made.inputs[0][0]
            one_by_one = torch.zeros(4)
            for k in range(x.shape[1]):
                one_by_one += x[:, k]
            self.assertLess(made.share(call, one_by_one), 0.7, inputs)
            halves = torch.zeros(4, dtype=torch.float16)
            for k in range(0, x.shape[1], 64):
                halves += x[:, k : k + 64].sum(1).half()
            self.assertGreater(made.share(call, halves.float()), 3, inputs)

    def test_formulas_by_exp_are_right_where_results_are_small(self):
        for forward, formula in {
            "torch.tanh(x)": lambda x: 2 * torch.sigmoid(2 * x) - 1,
            "F.layer_norm(torch.tanh(x), x.shape[1:])": lambda x: torch.nn.functional.layer_norm(
                2 * torch.sigmoid(2 * x) - 1, x.shape[1:]
            ),
            "F.softplus(x)": lambda x: torch.log(1 + torch.exp(x)),
            "F.elu(x)": lambda x: torch.where(x > 0, x, torch.exp(x) - 1),
        }.items():
            made = Made(task_source(forward))
            for call in made.calls:
                x = made.inputs[call["trial"]][0]
                share = made.share(call, formula(x))
                self.assertLess(share, 0.8, (forward, made.result["trials"][call["trial"]]))

    def test_half_precision_tasks_have_their_own_rounding(self):
        for kind in ("half", "bfloat16"):
            made = Made(task_source("x @ y", f"[torch.randn(32, 256).{kind}(), torch.randn(256, 32).{kind}()]"))
            call = only(made)
            a, b = made.inputs[0]
            accurate = (a.float() @ b.float()).to(a.dtype)
            self.assertLess(made.share(call, accurate), 0.7)
            self.assertGreater(made.share(call, torch.zeros_like(accurate)), 10)

    def test_what_has_no_float64_result_says_so(self):
        cases = {
            "nn.functional.dropout(x, 0.5, training=True)": "draws random numbers",
            "x + torch.rand_like(x)": "draws random numbers",
            "torch.fft.fft(x)": "complex64",
            "torch.argmax(x, -1)": "int64",
            "x.double() * 2": "float64",
            "(x @ torch.ones(512, 3, dtype=torch.float32))": "does not run in float64",
        }
        for forward, note in cases.items():
            call = only(Made(task_source(forward)))
            self.assertEqual(call["exact"], [None], forward)
            self.assertIn(note, call["notes"][0], forward)
        # One output can have it and the other not.
        call = only(Made(task_source("torch.max(x, -1)[0], torch.max(x, -1)[1]")))
        self.assertIsNotNone(call["exact"][0])
        self.assertIsNone(call["exact"][1])

    def test_a_model_with_buffers_stays_in_step(self):
        body = "        self.register_buffer('n', torch.zeros(()))\n"
        source = task_source("(self.n.add_(1), x * self.n)[1]", body=body)
        made = Made(source)
        self.assertTrue(made.result["has_buffers"])
        for number, call in enumerate(made.calls):
            self.assertLess(made.share(call, made.inputs[call["trial"]][0] * (number + 1)), 0.5)

    def test_the_paper_mode_is_as_it_was(self):
        made = Made(task_source("x * 2"), mode="paper")
        self.assertEqual([set(call) for call in made.calls], [{"trial", "output"}] * (TRIALS + 1))
        self.assertEqual(made.result["trials"], ["random"] * TRIALS)

    def test_shared_memory_of_the_reference_is_noted(self):
        self.assertFalse(Made(task_source("x * 2")).result["shares_memory"])
        for forward in ("x.view(-1)", "(lambda y: (y, y.t()))(x * 2)"):
            self.assertTrue(Made(task_source(forward)).result["shares_memory"], forward)
        self.assertFalse(Made(task_source("(x * 2).chunk(2)")).result["shares_memory"])


class VariantsTest(unittest.TestCase):
    def test_variants_follow_the_random_trials(self):
        made = Made(task_source("torch.relu(x)"))
        self.assertEqual(made.result["trials"], ["random"] * TRIALS + list(variants.NAMES))
        self.assertEqual([c["trial"] for c in made.calls], [0, *range(TRIALS + len(variants.NAMES))])
        shifted, small, heavy, ties, stretch, ramp = (inputs[0] for inputs in made.inputs[TRIALS:])
        self.assertGreater(shifted.mean(), 2.5)
        self.assertLess(small.abs().max(), 0.01)
        self.assertGreater(heavy.abs().max(), 20)
        self.assertLess(ties.unique().numel(), 40)
        self.assertEqual(ties[0].unique().numel(), 1)
        self.assertGreater(stretch.abs().max(), 60)
        self.assertGreater(ramp[-1].abs().mean(), 5 * ramp[0].abs().mean())
        self.assertEqual(made.result["left_out"], [])

    def test_the_size_varies_along_an_axis(self):
        values = torch.randn(64, 128)
        for strength, least, most in ((60.0, 1.0, 60.0), (1 / 30, 1 / 30, 1.0)):
            (stretch,) = variants.make("stretch", [values], 3, strength)
            factors = stretch / values
            large = factors > (least * most) ** 0.5
            for factor in (factors[large] / most, factors[~large] / least):
                self.assertLess(float((factor - 1).abs().max()), 1e-5)
            columns, rows = large.all(0), large.all(1)
            self.assertTrue(torch.equal(large, columns[None, :] | rows[:, None]))
            for inside in (columns, rows):
                places = inside.nonzero().flatten()
                self.assertEqual(int(places[-1] - places[0]) + 1, places.numel())  # one range
                self.assertGreaterEqual(int(places[0]), inside.numel() // 4)
                self.assertTrue(inside.numel() / 7 < places.numel() < inside.numel() / 2.9)
            (ramp,) = variants.make("ramp", [values], 3, strength)
            growth = ramp / values
            self.assertTrue(bool((growth.diff(dim=0) > 0).all()) and bool((growth.diff(dim=1) > 0).all()))
            self.assertAlmostEqual(float(growth[0, 0]), least, places=4)
            self.assertAlmostEqual(float(growth[-1, -1]), most, places=3)
        for name in variants.UNEVEN:  # nothing to vary along, and nothing that may vary
            for kept in (torch.randn(3, 2), torch.arange(0, 257, 32), (torch.rand(8, 8) > 0.5).float()):
                self.assertIsNone(variants.make(name, [kept], 3))

    def test_uneven_inputs_are_for_references_that_keep_their_digits(self):
        # An angle that rounding to tf32 turns: a weaker variant, or none, is taken.
        made = Made(task_source("torch.sin(x @ y)", "[torch.randn(8, 64) * 0.01, torch.randn(64, 8)]"))
        self.assertEqual(made.result["trials"][-2:], list(variants.UNEVEN))
        self.assertLess(made.inputs[-1][1].abs().max(), 30)
        made = Made(task_source("torch.sin(x @ y * 100)", "[torch.randn(8, 64), torch.randn(64, 8)]"))
        self.assertEqual([text.split(":")[0] for text in made.result["left_out"]], ["inputs stretch", "inputs ramp"])
        # An index that rounding does not change.
        made = Made(task_source("torch.argmax(x, -1)"))
        self.assertEqual(made.result["trials"][TRIALS:], list(variants.UNEVEN))
        # One that it does: all large numbers become 1.
        made = Made(task_source("torch.argmax(torch.sigmoid(x * 4), -1)", "[torch.rand(8, 4096)]"))
        for name in made.result["trials"][TRIALS:]:
            self.assertIn(name, variants.UNEVEN)

    def test_parameters_are_neither_zero_nor_one(self):
        body = "        self.norm = nn.LayerNorm(512)\n        self.line = nn.Linear(512, 512)\n"
        made = Made(task_source("self.norm(self.line(x))", body=body))
        state = made.state
        self.assertEqual(made.result["visible"]["varied"], {"norm.weight": 1, "norm.bias": 0})
        self.assertAlmostEqual(float(state["norm.weight"].mean()), 1, delta=0.1)
        self.assertGreater(float(state["norm.weight"].std()), 0.03)
        self.assertGreater(float(state["norm.bias"].std()), 0.03)
        for call in made.calls:
            x = made.inputs[call["trial"]][0]
            line = torch.nn.functional.linear(x, state["line.weight"], state["line.bias"])
            want = torch.nn.functional.layer_norm(line, (512,), state["norm.weight"], state["norm.bias"])
            self.assertLess(made.share(call, want), 1)
        paper = Made(task_source("self.norm(self.line(x))", body=body), mode="paper")
        self.assertEqual(paper.result["visible"]["varied"], {})

    def test_a_reference_that_needs_its_parameters_keeps_them(self):
        body = "        self.w = nn.Parameter(torch.zeros(512))\n"
        made = Made(task_source("x + self.w.sqrt()", body=body))
        self.assertEqual(made.result["visible"]["varied"], {})
        self.assertIn("parameters other than 0 and 1", made.result["left_out"][0])

    def test_what_the_reference_is_not_made_for_is_left_out(self):
        # exp(6 * 3 * x) goes too far; the others are fine.
        self.assertNotIn("heavy_tailed", Made(task_source("torch.exp(x * 3)")).result["trials"])
        # log(1 + exp(x)) is a right softplus as far as exp goes: a weaker variant is taken.
        made = Made(task_source("F.softplus(x)"))
        self.assertLess(made.inputs[made.result["trials"].index("heavy_tailed")][0].abs().max(), 40)
        # A root of what must be positive, but is scaled within its domain.
        made = Made(task_source("torch.sqrt(x).log()", "[torch.rand(8, 64) + 0.1]"))
        self.assertIn("small", made.result["trials"])
        # Raises on all that is not near zero.
        made = Made(
            task_source("self.check(x)", body="        self.check = lambda v: v * [1][int(v.abs().max() > 6)]\n")
        )
        self.assertEqual(made.result["outcome"], "ok")
        self.assertNotIn("heavy_tailed", made.result["trials"])
        # Ties decide which index is meant: nobody knows.
        self.assertNotIn("ties", Made(task_source("torch.max(x, -1)")).result["trials"])
        # Nothing that can be changed.
        for inputs in ("[torch.randint(0, 9, (8, 8))]", "[torch.eye(8)]", "[torch.softmax(torch.randn(8, 8), -1)]"):
            self.assertEqual(Made(task_source("x * 2", inputs)).result["trials"], ["random"] * TRIALS, inputs)

    def test_inputs_stay_in_their_domain(self):
        torch.manual_seed(0)
        for name in variants.NAMES:
            for values in (torch.rand(16, 32), torch.rand(16, 32) * 7 + 0.5):
                (changed,) = variants.make(name, [values], 3)
                self.assertGreaterEqual(float(changed.min()), 0, name)
                self.assertEqual(changed.dtype, values.dtype)
                if float(values.max()) <= 1:
                    self.assertLessEqual(float(changed.max()), 1, name)
            mask = (torch.rand(16, 32) > 0.5).float()
            kept, changed = variants.make(name, [mask, torch.randn(16, 32)], 3)
            self.assertIs(kept, mask)
            self.assertEqual(changed.shape, mask.shape)

    def test_a_task_brings_other_shapes(self):
        source = task_source("x * 2", "[torch.randint(0, 3, (4, 4)).float()]")
        made = Made(source + "\ndef get_input_variants():\n    return [[torch.randn(3, 7)], [torch.randn(1, 130)]]\n")
        self.assertEqual(made.result["trials"][TRIALS:], ["shape 1", "shape 2"])
        self.assertEqual([tuple(inputs[0].shape) for inputs in made.inputs[TRIALS:]], [(3, 7), (1, 130)])
        self.assertEqual(tuple(made.calls[-1]["output"].shape), (1, 130))

    def test_structure_of_inputs_stays(self):
        square = torch.randn(32, 32)
        tensors = {"triangle": square.triu(), "symmetric": square + square.mT, "sorted": square.sort(-1).values}
        for name in variants.NAMES:
            for kind, values in tensors.items():
                (changed,) = variants.make(name, [values], 3)
                self.assertFalse(torch.equal(changed, values), (name, kind))
                kept = {
                    "triangle": torch.equal(changed, changed.triu()),
                    "symmetric": torch.equal(changed, changed.mT),
                    "sorted": bool((changed.diff(dim=-1) >= 0).all()),
                }
                self.assertTrue(kept[kind], (name, kind))

    def test_broken_input_variants_are_the_tasks_fault(self):
        for body, message in {
            "return [[1 / 0]]": "get_input_variants()",
            "return 5": "a list of lists",
            "return [torch.randn(3)]": "a list of lists",
            "return [[torch.randn(3)]] * 9": "at most 8",
            "return [[torch.randn(3), 1, 2]]": "does not run on get_input_variants()[0]",
        }.items():
            made = Made(
                "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x): return x * 2\n"
                "def get_inputs(): return [torch.randn(4, 4)]\ndef get_init_inputs(): return []\n"
                f"def get_input_variants():\n    {body}\n"
            )
            self.assertEqual((made.result["outcome"], made.result["fault"]), ("reference_error", "task"), body)
            self.assertIn(message, made.result["message"])


class ProbesTest(unittest.TestCase):
    def test_probes_are_what_they_say(self):
        made = Made(task_source("x * 2"), probes=True)
        call = only(made)
        x = made.inputs[0][0]
        flat = (x * 2).reshape(-1)
        self.assertTrue(torch.equal(call["half_input"].reshape(-1)[: flat.numel() // 2], flat[: flat.numel() // 2]))
        self.assertEqual(float(call["half_input"].reshape(-1)[flat.numel() // 2 :].abs().max()), 0)
        self.assertTrue(torch.equal(call["low_precision"], (x.bfloat16().float() * 2).bfloat16().float()))
        self.assertIsNone(call["identity_cast"])
        self.assertNotIn("half_input", made.calls[1])  # the first trial once more
        self.assertIn("half_input", made.calls[-1])

    def test_the_paper_mode_rounds_to_three_bits(self):
        made = Made(task_source("x * 2"), mode="paper", probes=True)
        x = made.inputs[0][0]
        want = x.to(torch.float8_e4m3fn).float() * 2
        self.assertTrue(torch.equal(made.calls[0]["low_precision"], want))

    def test_casts_and_half_inputs(self):
        made = Made(task_source("x.half()"), probes=True)
        self.assertTrue(torch.equal(made.calls[0]["identity_cast"], made.inputs[0][0].half()))
        self.assertIsNone(probes.half_input([3]))
        self.assertIsNone(probes.half_input([torch.ones(1)]))

    def test_weights_are_rounded_too(self):
        body = "        self.w = nn.Parameter(torch.full((512,), 1 + 2.0**-9))\n"
        call = only(Made(task_source("torch.ones_like(x) * self.w", body=body), probes=True))
        self.assertEqual(call["low_precision"].unique().tolist(), [1.0])


class TasksFaultTest(unittest.TestCase):
    def check(self, source, *texts, mode="paper"):
        made = Made(source, mode)
        self.assertEqual((made.result["outcome"], made.result["fault"]), ("reference_error", "task"), made.result)
        for text in texts:
            self.assertIn(text, made.result["message"])
        return made.result

    def test_a_reference_that_does_not_run(self):
        broken = task_source("x.no_such_method()")
        result = self.check(broken)
        self.assertIn("no_such_method", broken.splitlines()[result["line"] - 1])
        self.check("def f(:")
        self.check(task_source("x").replace("get_init_inputs", "get_other"), "get_init_inputs")
        self.check(task_source("3"))

    def test_values_that_cannot_be_handed_over(self):
        self.check(task_source("x", inputs="[object()]"), "get_inputs() holds a value of type object")
        self.check(task_source("x.to_sparse()"), "layout sparse_coo")

    def test_inputs_by_name(self):
        by_name = task_source("x", inputs="{'x': torch.randn(4)}")
        text = "the reference's get_inputs returned a dict, it must return a list of positional arguments"
        for mode in ("paper", "robust"):
            self.assertEqual(self.check(by_name, mode=mode)["message"], text)


class CudaReferenceTest(unittest.TestCase):
    """References that say cuda, on a machine without a GPU."""

    def check(self, body):
        """`body` are lines of forward(self, x) before it returns."""
        lines = indent(dedent(body), "    ")
        source = task_source("self.compute(x)") + f"\ndef compute(self, x):\n{lines}\n    return x + 1\n"
        only(Made(source + "Model.compute = compute\n", "paper"))

    def test_factories(self):
        self.check("""
            made = [
                torch.empty(3, device="cuda"),
                torch.zeros(3, device=torch.device("cuda", 0)),
                torch.ones(3, device=0),
                torch.full((3,), 2.0, device=x.device),
                torch.zeros_like(x, device="cuda"),
                x.new_empty(3, device="cuda"),
                torch.tensor([1.0], device="cuda"),
                torch.randn(3, device="cuda", generator=torch.Generator(device="cuda").manual_seed(1)),
                torch.randn(3, pin_memory=True),
                x.cuda(), x.to("cuda"), x.to(0), x.to(torch.device("cuda:0"), torch.float16),
            ]
            with torch.device("cuda"):
                made.append(torch.empty(3))
            assert all(tensor.is_cuda and tensor.device == torch.device("cuda:0") for tensor in made)
            assert x.get_device() == 0 and made[-2].dtype == torch.float16
        """)  # fmt: skip

    def test_modules(self):
        self.check("""
            assert nn.Linear(4, 3, device="cuda")(torch.randn(2, 4)).shape == (2, 3)
            assert nn.Linear(4, 3).cuda().half().weight.dtype == torch.float16
            assert nn.LSTM(4, 5)(torch.randn(2, 3, 4))[0].shape == (2, 3, 5)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                pass
        """)

    def test_seeds_and_the_device(self):
        self.check("""
            torch.cuda.set_device(0)
            torch.set_default_device("cuda")
            assert torch.cuda.is_available() and torch.cuda.device_count() == 1
            torch.cuda.manual_seed(3)
            first = torch.rand(2)
            torch.manual_seed(3)
            torch.cuda.synchronize()
            assert torch.equal(first, torch.rand(2))
        """)

    def test_everything_is_put_back(self):
        before = {name: getattr(torch.cuda, name) for name in dir(torch.cuda)}
        generator, default_device = torch.Generator, torch.set_default_device
        self.check("assert torch.cuda.is_available()")
        self.assertEqual({name for name in before if getattr(torch.cuda, name) is not before[name]}, set())
        self.assertIs(torch.Generator, generator)
        self.assertIs(torch.set_default_device, default_device)
        self.assertFalse(torch.randn(2).is_cuda)


class SharingTest(unittest.TestCase):
    def test_share_memory(self):
        x = torch.zeros(8, 8)
        for other in (x, x.view(64), x.t(), x[2:]):
            self.assertTrue(layout.share_memory(x, other))
        self.assertFalse(layout.share_memory(x[:4], x[4:]))
        self.assertFalse(layout.share_memory(x[:, :4], x[:, 4:]))
        self.assertFalse(layout.share_memory(x, torch.zeros(8, 8)))
        self.assertFalse(layout.share_memory(x[:0], x))


if __name__ == "__main__":
    unittest.main()
