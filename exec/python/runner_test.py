"""Whole jobs: every outcome with its evidence, delegation, modelled times."""

import json
import os
import tempfile
import unittest

from testing import elementwise_candidate, task_source

import runner

RELU = task_source("torch.relu(x * 1.5)")
FUSED = elementwise_candidate("tl.maximum(v * 1.5, 0.0)")


def run(reference, candidate, **fields):
    job = {
        "reference_source": reference,
        "candidate_source": candidate,
        "seed": 7,
        "device_model": "l40s_mini",
        **fields,
    }
    result = runner.run_job(job)
    json.dumps(result, allow_nan=False)  # every result is plain JSON
    assert set(result) == set(runner.blank_result())
    return result


class OutcomeTest(unittest.TestCase):
    def check(self, result, outcome, fault="candidate", line_text="", source=""):
        self.assertEqual((result["outcome"], result["fault"]), (outcome, fault), result)
        if line_text:
            self.assertIn(line_text, source.splitlines()[result["line"] - 1], result)
        return result

    def test_ok(self):
        result = self.check(run(RELU, FUSED), "ok", "none")
        self.assertEqual(
            (result["compiled"], result["correct"], result["trials_run"], result["modelled"]), (True, True, 5, True)
        )
        self.assertLess(result["max_error"], 1e-6)
        (launch,) = result["launches"]
        self.assertEqual((launch["name"], launch["grid"], launch["num_warps"]), ("kernel", [16, 1, 1], 4))
        self.assertEqual((launch["load_bytes"], launch["store_bytes"]), (65536, 65536))
        self.assertEqual([op["name"] for op in result["aten_ops"]], ["aten.empty_like"])
        self.assertTrue(result["aten_ops"][0]["neutral"])
        self.assertEqual(
            {op["name"]: op["neutral"] for op in result["reference_ops"]}, {"aten.mul": False, "aten.relu": False}
        )
        self.assertAlmostEqual(result["speedup"], result["reference_seconds"] / result["candidate_seconds"])
        self.assertGreater(result["speedup"], 1.5)  # one kernel instead of two

    def test_reference_that_does_not_run_is_the_tasks_fault(self):
        broken = task_source("x.no_such_method()")
        self.check(run(broken, FUSED), "reference_error", "task", "no_such_method", broken)
        self.check(run("def f(:", FUSED), "reference_error", "task")
        result = self.check(run(RELU.replace("get_init_inputs", "get_other"), FUSED), "reference_error", "task")
        self.assertIn("get_init_inputs", result["message"])
        self.check(run(task_source("3"), FUSED), "reference_error", "task")

    def test_reference_only(self):
        result = self.check(run(RELU, "", reference_only=True), "ok", "none")
        self.assertEqual((result["compiled"], result["correct"], len(result["reference_ops"])), (None, None, 2))

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
            'tl.inline_asm_elementwise("add.f32 $0, $1, $1;", "=f,f", [v], dtype=tl.float32, is_pure=True, pack=1)'
        )
        result = self.check(run(RELU, source), "not_executable", "ours", "inline_asm", source)
        self.assertIsNone(result["correct"])

    def test_time_limit(self):
        source = elementwise_candidate("v + k").replace(
            "    tl.store", "    k = 0\n    while tl.load(o) != 12345.0:\n        k += 1\n    tl.store"
        )
        result = self.check(run(RELU, source, time_limit_s=1.0), "timeout")
        self.assertIn("time limit", result["message"])

    def test_internal_error_names_the_field(self):
        self.assertIn("'typo'", self.check(run(RELU, FUSED, typo=1), "internal_error", "ours")["message"])
        self.assertIn(
            "l40s_maxi", self.check(run(RELU, FUSED, device_model="l40s_maxi"), "internal_error", "ours")["message"]
        )

    def test_files_stay_in_the_work_dir(self):
        with tempfile.TemporaryDirectory() as folder:
            self.check(run(RELU, FUSED, work_dir=folder), "ok", "none")
            self.assertEqual(sorted(os.listdir(folder)), ["candidate.py", "triton"])


class ComparisonTest(unittest.TestCase):
    def mismatch(self, reference, candidate, kind, **fields):
        result = run(reference, candidate, **fields)
        self.assertEqual((result["outcome"], result["correct"]), ("mismatch", False), result)
        self.assertEqual(result["mismatch"]["kind"], kind, result)
        return result

    def test_wrong_values(self):
        result = self.mismatch(RELU, elementwise_candidate("tl.maximum(v * 1.6, 0.0)"), "value")
        self.assertEqual((result["mismatch"]["trial"], result["mismatch"]["output"]), (0, 0))
        self.assertGreater(result["mismatch"]["max_error"], 0.1)

    def test_a_kernel_that_writes_nothing(self):
        self.mismatch(RELU, elementwise_candidate("v", grid="n // 100000"), "nan")

    def test_half_written(self):
        self.mismatch(RELU, elementwise_candidate("tl.maximum(v * 1.5, 0.0)", grid="n // 2048"), "nan")

    def test_shape_dtype_count_type(self):
        self.mismatch(RELU, elementwise_candidate("tl.maximum(v * 1.5, 0.0)", result="o.view(-1)"), "shape")
        self.mismatch(RELU, elementwise_candidate("tl.maximum(v * 1.5, 0.0)", result="o.half()"), "dtype")
        self.mismatch(RELU, elementwise_candidate("tl.maximum(v * 1.5, 0.0)", result="(o, o)"), "count")
        self.mismatch(RELU, elementwise_candidate("tl.maximum(v * 1.5, 0.0)", result="None"), "type")

    def test_changed_inputs(self):
        source = elementwise_candidate("tl.maximum(v * 1.5, 0.0)", result="x.copy_(o)")
        self.mismatch(RELU, source, "input_changed")

    def test_right_only_for_the_first_input(self):
        source = elementwise_candidate(
            "tl.maximum(v * 1.5, 0.0)", result="ModelNew.kept", before="ModelNew.kept = getattr(ModelNew, 'kept', None)"
        )
        source = source.replace(
            "        return ModelNew.kept",
            "        ModelNew.kept = o if ModelNew.kept is None else ModelNew.kept\n        return ModelNew.kept",
        )
        self.assertEqual(self.mismatch(RELU, source, "value")["mismatch"]["trial"], 1)

    def test_several_outputs_and_inputs(self):
        task = task_source("(torch.relu(x), x + y)", inputs="[torch.randn(16, 64), torch.randn(16, 64)]")
        candidate = (
            elementwise_candidate("tl.maximum(v, 0.0)")
            .replace("def forward(self, x):", "def forward(self, x, y):")
            .replace("return o", "return o, x + y")
        )
        result = run(task, candidate)
        self.assertEqual(result["outcome"], "ok", result)
        self.assertEqual(
            {op["name"] for op in result["aten_ops"] if not op["neutral"]}, {"aten.add"}
        )  # delegation is counted

    def test_delegation_is_counted(self):
        result = run(
            RELU,
            "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return torch.relu(x * 1.5)\n",
        )
        self.assertEqual((result["outcome"], result["launches"], result["compiled"]), ("ok", [], None))
        self.assertEqual({op["name"] for op in result["aten_ops"]}, {"aten.mul", "aten.relu"})
        self.assertAlmostEqual(result["speedup"], 1.0)

    def test_weights_are_shared(self):
        task = task_source("self.l(x)", inputs="[torch.randn(4, 32)]", body="        self.l = nn.Linear(32, 32)\n")
        candidate = elementwise_candidate("v").replace(
            "    def forward(self, x):",
            "    def __init__(self):\n        super().__init__()\n        torch.rand(3)\n        self.l = nn.Linear(32, 32)\n\n    def forward(self, x):\n        x = self.l(x)",
        )
        result = run(task, candidate)
        self.assertEqual(result["outcome"], "ok", result)

    def test_random_layers_see_the_same_draws(self):
        task = task_source("F.dropout(x, 0.5, True)")
        result = run(task, elementwise_candidate("v", before="x = torch.nn.functional.dropout(x, 0.5, True)"))
        self.assertEqual(result["outcome"], "ok", result)

    def test_results_repeat(self):
        wrong = elementwise_candidate("tl.maximum(v * 1.6, 0.0)")
        first, second = run(RELU, wrong), run(RELU, wrong)
        self.assertEqual(first["mismatch"], second["mismatch"])
        self.assertNotEqual(first["mismatch"], run(RELU, wrong, seed=8)["mismatch"])

    def test_code_that_says_cuda(self):
        source = elementwise_candidate(
            "tl.maximum(v * 1.5, 0.0)",
            before="x = x.cuda(); assert x.is_cuda and x.device.type == 'cuda'; torch.cuda.synchronize(); z = torch.zeros(3, device='cuda'); x = x.to('cuda', torch.float32)",
        )
        self.assertEqual(run(RELU, source)["outcome"], "ok")


if __name__ == "__main__":
    unittest.main()
