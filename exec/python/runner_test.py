"""Whole jobs, oracle and runner in one process: every outcome with its evidence, what is handed over, modelled times."""

import json
import os
import tempfile
import unittest

import torch

from testing import elementwise_candidate, task_source

import job_fields
import one_process
import runner

RELU = task_source("torch.relu(x * 1.5)")
FUSED = elementwise_candidate("tl.maximum(v * 1.5, 0.0)")


def run_both(reference, candidate, **fields):
    fields = {"seed": 7, "device_model": "l40s_mini", **fields}
    both = one_process.run_both(reference, candidate, **fields)
    for role, result in zip(("oracle", "runner"), both.results):
        json.dumps(result, allow_nan=False)  # every result is plain JSON
        assert set(result) == set(job_fields.blank_result(role))
    return both


def run(reference, candidate, **fields):
    """The last job's result."""
    return run_both(reference, candidate, **fields).results[-1]


def close(a, b):
    """Whether two outputs agree, containers included."""
    if isinstance(a, torch.Tensor):
        same = isinstance(b, torch.Tensor) and a.shape == b.shape and a.dtype == b.dtype
        return same and torch.allclose(a, b, atol=1e-2, rtol=1e-2)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(close(x, y) for x, y in zip(a, b))
    return a == b


def agreements(both):
    """For each call whether output and expected output agree."""
    return [close(want, got) for want, got, _ in both.calls]


class OutcomeTest(unittest.TestCase):
    def check(self, result, outcome, fault="candidate", line_text="", source=""):
        self.assertEqual((result["outcome"], result["fault"]), (outcome, fault), result)
        if line_text:
            self.assertIn(line_text, source.splitlines()[result["line"] - 1], result)
        return result

    def test_ran(self):
        both = run_both(RELU, FUSED)
        made, result = both.results
        self.check(made, "ok", "none")
        self.check(result, "ran", "none")
        self.assertEqual([call["trial"] for call in made["calls"]], [0, 0, 1, 2, 3, 4])
        self.assertEqual(agreements(both), [True] * 6)
        self.assertEqual((result["compiled"], result["modelled"], made["mutates_inputs"]), (True, True, False))
        (launch,) = result["launches"]
        self.assertEqual((launch["name"], launch["grid"], launch["num_warps"]), ("kernel", [16, 1, 1], 4))
        self.assertEqual((launch["load_bytes"], launch["store_bytes"]), (65536, 65536))
        self.assertEqual([op["name"] for op in result["aten_ops"]], ["aten.empty_like"])
        self.assertEqual((result["aten_ops"][0]["largest"], result["aten_ops"][0]["view"]), (32 * 512, False))
        self.assertEqual([op["name"] for op in made["reference_ops"]], ["aten.mul", "aten.relu"])
        self.assertEqual(
            [(a["name"], a["what"], a["dtype"], a["shape"]) for a in launch["arguments"]],
            [("x", "input 0", "float32", [32, 512]), ("o", "output 0", "float32", [32, 512])],
        )
        self.assertGreater(made["reference_seconds"] / result["candidate_seconds"], 1.5)  # one kernel instead of two
        # What the GPU needs at least for one read and one write.
        self.assertGreater(result["candidate_seconds"], 2 * 65536 / made["bytes_per_second"])

    def test_reference_that_does_not_run_is_the_tasks_fault(self):
        broken = task_source("x.no_such_method()")
        self.check(run(broken, FUSED), "reference_error", "task", "no_such_method", broken)
        self.check(run("def f(:", FUSED), "reference_error", "task")
        result = self.check(run(RELU.replace("get_init_inputs", "get_other"), FUSED), "reference_error", "task")
        self.assertIn("get_init_inputs", result["message"])
        self.check(run(task_source("3"), FUSED), "reference_error", "task")

    def test_values_that_cannot_be_handed_over_are_the_tasks_fault(self):
        made = self.check(run(task_source("x", inputs="[object()]"), FUSED), "reference_error", "task")
        self.assertIn("get_inputs() holds a value of type object", made["message"])
        made = self.check(run(task_source("x.to_sparse()"), FUSED), "reference_error", "task")
        self.assertIn("layout sparse_coo", made["message"])

    def test_inputs_by_name_are_the_tasks_fault(self):
        by_name = task_source("x", inputs="{'x': torch.randn(4)}")
        for mode in ("paper", "robust"):
            made = self.check(run(by_name, FUSED, oracle_fields={"mode": mode}), "reference_error", "task")
            self.assertEqual(
                made["message"],
                "the reference's get_inputs returned a dict, it must return a list of positional arguments",
            )

    def test_import_errors(self):
        missing = FUSED.replace("import torch.nn as nn", "import torch.nn as nn\nimport no_such_module")
        self.check(run(RELU, missing), "import_error", line_text="no_such_module", source=missing)
        syntax = FUSED.replace("(x, o, n, BLOCK=1024)", "(x, o, n, BLOCK=1024")
        self.assertGreater(self.check(run(RELU, syntax), "import_error")["line"], 0)
        self.check(run(RELU, "import sys\nsys.exit(0)"), "import_error")

    def test_no_model_new(self):
        self.check(run(RELU, FUSED.replace("ModelNew", "ModelOld")), "no_model_new")

    def test_construct_error(self):
        bad = FUSED.replace(
            "    def forward(self, x):",
            "    def __init__(self):\n        super().__init__()\n        self.a = undefined_thing\n\n    def forward(self, x):",
        )
        self.check(run(RELU, bad), "construct_error", line_text="undefined_thing", source=bad)

    def test_compile_errors(self):
        for expression in ("tl.no_such_function(v)", "v + undefined_name", "v + tl.arange(0, 1000)", "tl.exp(i)"):
            with self.subTest(expression):
                source = elementwise_candidate(expression)
                result = self.check(run(RELU, source), "compile_error", line_text=expression, source=source)
                self.assertIs(result["compiled"], False)
                self.assertIn("kernel kernel does not compile", result["message"])

    def test_shared_memory_that_does_not_fit(self):
        source = FUSED.replace(
            "tl.store(o + i, tl.maximum(v * 1.5, 0.0), mask=i < n)",
            """
    a = tl.arange(0, 128)[:, None] * 128 + tl.arange(0, 128)[None, :]
    big = tl.dot(tl.load(x + a, mask=a < n), tl.load(x + a + 1, mask=a + 1 < n), input_precision="tf32")
    tl.store(o + a, big, mask=a < n)""",
        )
        result = self.check(run(RELU, source), "compile_error")
        self.assertIn("shared memory", result["message"])

    def test_a_swallowed_compile_error_still_counts(self):
        source = elementwise_candidate("v + undefined_name").replace(
            "kernel[(triton.cdiv(n, 1024),)](x, o, n, BLOCK=1024)",
            "try:\n            kernel[(triton.cdiv(n, 1024),)](x, o, n, BLOCK=1024)\n        except Exception:\n            o = torch.relu(x * 1.5)",
        )
        self.check(run(RELU, source), "compile_error")

    def test_runtime_errors(self):
        source = elementwise_candidate("v", before="raise ValueError('no good')")
        result = self.check(run(RELU, source), "runtime_error", line_text="no good", source=source)
        self.assertIsNone(result["compiled"])
        self.check(run(RELU, elementwise_candidate("v", before="import sys; sys.exit(0)")), "runtime_error")
        float_grid = elementwise_candidate("v", grid="n / 1024")
        self.check(run(RELU, float_grid), "runtime_error", line_text="kernel[", source=float_grid)

    def test_out_of_bounds(self):
        source = elementwise_candidate("v", mask="i < n + 100")
        result = self.check(
            run(task_source("torch.relu(x)", "[torch.randn(1000)]"), source),
            "out_of_bounds",
            line_text="tl.load",
            source=source,
        )
        self.assertIs(result["compiled"], True)
        self.assertIn("24 of 1024", result["message"])

    def test_not_executable_is_our_fault(self):
        source = elementwise_candidate(
            'tl.inline_asm_elementwise("{ .reg .u32 t; mov.u32 t, %laneid; cvt.rn.f32.u32 $0, t; }", "=f,f", [v], dtype=tl.float32, is_pure=True, pack=1)'
        )
        result = self.check(run(RELU, source), "not_executable", "ours", "%laneid", source)

    def test_time_limit(self):
        source = elementwise_candidate("v + k").replace(
            "    tl.store", "    k = 0\n    while tl.load(o) != 12345.0:\n        k += 1\n    tl.store"
        )
        result = self.check(run(RELU, source, time_limit_s=2.0), "timeout")
        self.assertIn("time limit", result["message"])

    def test_internal_error_names_the_field(self):
        self.assertIn("'typo'", self.check(run(RELU, FUSED, typo=1), "internal_error", "ours")["message"])
        self.assertIn(
            "l40s_maxi", self.check(run(RELU, FUSED, device_model="l40s_maxi"), "internal_error", "ours")["message"]
        )

    def test_files_stay_in_the_work_dir(self):
        with tempfile.TemporaryDirectory() as folder:
            self.check(run(RELU, FUSED, work_dir=folder), "ran", "none")
            self.assertEqual(sorted(os.listdir(folder)), ["candidate.py", "triton"])


class HandOverTest(unittest.TestCase):
    """What reaches the supervisor, which compares."""

    def test_wrong_values(self):
        self.assertEqual(agreements(run_both(RELU, elementwise_candidate("tl.maximum(v * 1.6, 0.0)"))), [False] * 6)

    def test_what_was_never_written_is_nan(self):
        for source in (
            elementwise_candidate("v", grid="n // 100000"),
            elementwise_candidate("tl.maximum(v * 1.5, 0.0)", grid="n // 2048"),
        ):
            self.assertTrue(all(got.isnan().any() for _, got, _ in run_both(RELU, source).calls))

    def test_outputs_of_other_kinds(self):
        expected = {
            "o.half()": lambda got: got.dtype == torch.float16,
            "(o, o)": lambda got: isinstance(got, tuple) and len(got) == 2,
            "None": lambda got: got is None,
            "{'a': [1, 2.5, True]}": lambda got: got == {"a": [1, 2.5, True]},
            "o.expand(2, 32, 512)": lambda got: got.shape == (2, 32, 512),
            "object()": lambda got: isinstance(got, ValueError),
            "o.to_sparse()": lambda got: isinstance(got, ValueError),
        }
        for result, is_right in expected.items():
            both = run_both(RELU, elementwise_candidate("v", result=result), trials=1)
            self.assertEqual(both.results[-1]["outcome"], "ran", both.results[-1])
            self.assertTrue(all(is_right(got) for _, got, _ in both.calls), result)

    def test_changed_inputs_show(self):
        honest = run_both(RELU, FUSED)
        first = honest.calls[0][2][0]
        both = run_both(RELU, elementwise_candidate("tl.maximum(v * 1.5, 0.0)", result="x.copy_(o)"))
        self.assertFalse(torch.equal(both.calls[0][2][0], first))
        # The repeated call starts from the original again.
        self.assertTrue(torch.equal(both.calls[1][1], both.calls[0][1]))

    def test_first_calls_share_addresses(self):
        """Whoever keeps results by address or by object is wrong at the second trial at the latest."""
        for key in ("x.data_ptr()", "id(x)"):
            source = elementwise_candidate("tl.maximum(v * 1.5, 0.0)", result="KEPT.setdefault(key, o)", head="KEPT = {}")
            both = run_both(RELU, source.replace("o = torch.empty_like(x)", f"key = {key}; o = torch.empty_like(x)"))
            self.assertEqual(agreements(both)[:3], [True, True, False], key)

    def test_right_only_once(self):
        source = elementwise_candidate(
            "tl.maximum(v * 1.5, 0.0)", result="o * (1 if len(CALLS) == 1 else 2)", head="CALLS = []", before="CALLS.append(0)"
        )
        self.assertEqual(agreements(run_both(RELU, source))[:2], [True, False])

    def test_inputs_with_strides_of_their_own(self):
        task = task_source("x + 0", inputs="[torch.randn(8, 16).t(), torch.randn(4).expand(3, 4)]")
        both = run_both(task, elementwise_candidate("v").replace("(self, x)", "(self, x, y)"), trials=1)
        self.assertEqual(both.results[0]["visible"]["inputs"][0]["list"][0]["tensor"]["stride"], [1, 16])
        self.assertEqual(both.results[-1]["outcome"], "ran", both.results[-1])

    def test_several_outputs_and_inputs(self):
        task = task_source("(torch.relu(x), x + y)", inputs="[torch.randn(16, 64), torch.randn(16, 64)]")
        candidate = (
            elementwise_candidate("tl.maximum(v, 0.0)")
            .replace("def forward(self, x):", "def forward(self, x, y):")
            .replace("return o", "return o, x + y")
        )
        both = run_both(task, candidate)
        result = both.results[-1]
        self.assertEqual(agreements(both), [True] * 6, result)
        self.assertIn("aten.add", {op["name"] for op in result["aten_ops"]})  # delegation is counted

    def test_delegation_is_counted(self):
        both = run_both(
            RELU,
            "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return torch.relu(x * 1.5)\n",
        )
        made, result = both.results
        self.assertEqual((result["outcome"], result["launches"], result["compiled"]), ("ran", [], None))
        self.assertEqual({op["name"] for op in result["aten_ops"]}, {"aten.mul", "aten.relu"})
        self.assertAlmostEqual(made["reference_seconds"], result["candidate_seconds"])

    def test_weights_are_shared(self):
        task = task_source("self.l(x)", inputs="[torch.randn(4, 32)]", body="        self.l = nn.Linear(32, 32)\n")
        candidate = elementwise_candidate("v").replace(
            "    def forward(self, x):",
            "    def __init__(self):\n        super().__init__()\n        torch.rand(3)\n        self.l = nn.Linear(32, 32)\n\n    def forward(self, x):\n        x = self.l(x)",
        )
        both = run_both(task, candidate)
        self.assertEqual(agreements(both), [True] * 6, both.results[-1])

    def test_parameters_without_a_counterpart_are_named(self):
        task = task_source("self.l(x)", inputs="[torch.randn(4, 32)]", body="        self.l = nn.Linear(32, 32)\n")
        candidate = elementwise_candidate("v").replace(
            "    def forward(self, x):",
            "    def __init__(self):\n        super().__init__()\n        self.x = nn.Linear(32, 32, bias=False)\n\n    def forward(self, x):\n        x = self.x(x)",
        )
        self.assertEqual(
            run(task, candidate)["own_parameters"],
            ["parameter 'x.weight' of ModelNew has no counterpart in Model, it keeps its own initial value"],
        )

    def test_random_layers_see_the_same_draws(self):
        task = task_source("F.dropout(x, 0.5, True)")
        both = run_both(task, elementwise_candidate("v", before="x = torch.nn.functional.dropout(x, 0.5, True)"))
        self.assertEqual(agreements(both), [True] * 6, both.results[-1])

    def test_state_that_changes_with_each_call(self):
        body = "        self.register_buffer('calls', torch.zeros(1))\n"
        task = task_source("x + self.calls.add_(1)", body=body)
        source = elementwise_candidate("v", result="o + self.calls.add_(1)").replace(
            "    def forward",
            "    def __init__(self):\n        super().__init__()\n" + body + "\n    def forward",
        )
        both = run_both(task, source)
        self.assertEqual(agreements(both), [True] * 6, both.results[-1])
        self.assertTrue(both.results[0]["has_buffers"])

    def test_results_repeat(self):
        wrong = elementwise_candidate("tl.maximum(v * 1.6, 0.0)")
        first, second, other = run_both(RELU, wrong), run_both(RELU, wrong), run_both(RELU, wrong, seed=8)
        self.assertTrue(torch.equal(first.calls[0][1], second.calls[0][1]))
        self.assertFalse(torch.equal(first.calls[0][1], other.calls[0][1]))

    def test_code_that_says_cuda(self):
        source = elementwise_candidate(
            "tl.maximum(v * 1.5, 0.0)",
            before="x = x.cuda(); assert x.is_cuda and x.device.type == 'cuda'; torch.cuda.synchronize(); z = torch.zeros(3, device='cuda'); x = x.to('cuda', torch.float32)",
        )
        self.assertEqual(run(RELU, source)["outcome"], "ran")


if __name__ == "__main__":
    unittest.main()
