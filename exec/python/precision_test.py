"""The oracle's float64 results and their tolerances."""

import unittest

import torch

from testing import task_source

import precision
from testing_host import TRIALS
from testing_oracle import Made, only


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


if __name__ == "__main__":
    unittest.main()
