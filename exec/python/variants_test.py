"""The oracle's variants of the inputs and of the parameters."""

import unittest

import torch

from testing import task_source

import variants
from testing_host import TRIALS
from testing_oracle import Made


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


if __name__ == "__main__":
    unittest.main()
