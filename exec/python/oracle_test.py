"""The oracle: probes, errors of the task, references that say cuda."""

import unittest
from textwrap import dedent, indent

import torch

from testing import task_source

import layout
import probes
from testing_oracle import Made, only


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
