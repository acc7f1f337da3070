"""Parts by themselves: counting of operators, values in memory, helpers."""

import json
import os
import unittest
import unittest.mock

import torch

import testing  # noqa: F401  (sets the import path)
import affine
import layout
import operator_counts
import oracle_worker
import sources
from failures import line_in_file, one_line


class OperatorCounterTest(unittest.TestCase):
    def count(self, function):
        counter = operator_counts.OperatorCounter()
        with torch.no_grad(), counter:
            function()
        return counter.ops

    def test_flops_and_bytes(self):
        a, b = torch.randn(8, 16), torch.randn(16, 4)
        ops = self.count(lambda: a @ b)
        self.assertEqual((ops["aten.mm"].flops, ops["aten.mm"].bytes), (2 * 8 * 16 * 4, 4 * (128 + 64 + 32)))
        x, w = torch.randn(2, 3, 8, 8), torch.randn(5, 3, 3, 3)
        ops = self.count(lambda: torch.conv2d(x, w, padding=1))
        self.assertEqual(ops["aten.convolution"].flops, 2 * (2 * 5 * 8 * 8) * 27)
        ops = self.count(lambda: torch.nn.functional.conv_transpose2d(torch.randn(2, 5, 8, 8), w))
        self.assertEqual(ops["aten.convolution"].flops, 2 * (2 * 5 * 8 * 8) * 27)

    def test_views_sizes_and_what_is_free(self):
        x = torch.randn(100, 10)
        ops = self.count(lambda: (x.t().contiguous().half(), torch.empty(5), x[3:].view(-1), x.sum() / 1000.0 * 2))
        self.assertTrue(ops["aten.t"].free and ops["aten.empty"].free and ops["aten.slice"].free)
        self.assertFalse(ops["aten.clone"].free or ops["aten.sum"].free)
        described = {op.pop("name"): op for op in operator_counts.describe(ops)}
        self.assertEqual(described["aten.empty"], {"calls": 1, "bytes": 0, "flops": 0, "free": True})
        self.assertEqual(list(described)[:2], ["aten.t", "aten.clone"])  # as they ran

    def test_in_place_is_read_and_written(self):
        x = torch.randn(100)
        self.assertEqual(self.count(lambda: x.add_(1.0))["aten.add_"].bytes, 800)
        self.assertEqual(self.count(lambda: x.zero_())["aten.zero_"].bytes, 400)

    def test_fresh_memory_is_poisoned(self):
        with operator_counts.OperatorCounter(counting=False) as counter:
            self.assertTrue(torch.empty(7).isnan().all())
            self.assertTrue(torch.empty_like(torch.ones(3)).isnan().all())
            self.assertTrue((torch.empty(3, dtype=torch.int64) == 2**63 - 1).all())
            self.assertTrue((torch.empty(3, dtype=torch.uint16) == 2**16 - 1).all())
            self.assertTrue(torch.empty(3, dtype=torch.bool).all())
        self.assertEqual(counter.ops, {})

    def test_memory_that_a_tensor_grows_by_is_poisoned(self):
        with operator_counts.OperatorCounter(counting=False):
            for kind in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
                x = torch.ones(4, dtype=kind).resize_(100)
                self.assertTrue((x[:4] == 1).all() and x[4:].isnan().all(), kind)


class LayoutTest(unittest.TestCase):
    def setUp(self):
        self.fd = os.memfd_create("test")
        os.ftruncate(self.fd, 4096)
        self.addCleanup(os.close, self.fd)
        self.writer, self.reader = layout.Writer(self.fd), testing.Reader(self.fd)

    def copy(self, value):
        return self.reader.get(json.loads(json.dumps(self.writer.put(value), allow_nan=False)))

    def test_values_come_back(self):
        strided = torch.randn(4, 6).t()
        value = [
            torch.randn(3),
            (strided, torch.tensor(2, dtype=torch.int64)),
            {"b": torch.randn(2).bfloat16(), 3: True},
            [5, None, "text", float("-inf"), 2 + 3j, torch.float16, torch.device("cuda", 0)],
            torch.empty(0, 2),
            torch.randn(2, dtype=torch.complex64).conj(),
        ]
        first, second = self.copy(value), self.copy(value)
        for a, b in zip(layout.tensors(value), layout.tensors(first)):
            self.assertTrue(torch.equal(a, b) and a.dtype == b.dtype)
        self.assertEqual(first[1][0].stride(), strided.stride())
        self.assertEqual((first[3], list(first[2])), (value[3], ["b", 3]))
        self.assertIs(type(first[2][3]), bool)
        first[0].add_(1)
        self.assertTrue(torch.equal(second[0], value[0]))

    def test_elements_that_share_a_place_get_their_own(self):
        copy = self.copy(torch.arange(3.0).expand(2, 3))
        copy[0, 0] = 7
        self.assertEqual(copy.tolist(), [[7, 1, 2], [0, 1, 2]])

    def test_what_cannot_be_kept_has_no_offset(self):
        for value in (torch.zeros(1025), torch.eye(2).to_sparse(), torch.empty(2, device="meta")):
            description = self.writer.put(value)["tensor"]
            self.assertIsNone(description["offset"])
            with self.assertRaisesRegex(ValueError, "cannot be handed over"):
                self.reader.get({"tensor": description})
        self.assertEqual(self.writer.put(object()), {"other": "object"})
        self.assertEqual(self.writer.put(2**80), {"other": "int"})


class HelpersTest(unittest.TestCase):
    def test_a_model_gets_the_state_of_another(self):
        a, b = torch.nn.BatchNorm1d(3), torch.nn.BatchNorm1d(3)
        affine.put(affine.vary(a, 5), a)
        sources.copy_state(sources.state_of(a), b)
        for name, value in a.state_dict().items():
            self.assertTrue(torch.equal(value, b.state_dict()[name]), name)
        sources.copy_state({}, "no module")

    def test_map_tensors_keeps_structure(self):
        mapped = layout.map_tensors([torch.ones(1), (2, {"a": torch.ones(1)})], lambda t: t + 1)
        self.assertEqual((mapped[0].item(), mapped[1][0], mapped[1][1]["a"].item()), (2.0, 2, 2.0))

    def test_no_gpu_is_our_fault_and_says_so(self):
        with unittest.mock.patch.object(torch.cuda, "is_available", return_value=False):
            job = {"reference_source": "", "input_seeds": [], "forward_seeds": [], "calls": [], "fds": {}}
            result = oracle_worker.run_job({"role": "oracle", "device": "cuda", **job})
        self.assertEqual((result["outcome"], result["fault"]), ("internal_error", "ours"))
        self.assertIn("no GPU", result["message"])

    def test_values_other_than_zero_and_one(self):
        norm = torch.nn.BatchNorm1d(64)
        values = affine.vary(norm, 5)
        self.assertEqual(set(values), {"weight", "bias", "running_mean", "running_var"})
        self.assertGreaterEqual(float(values["running_var"].min()), affine.LEAST_SCALE)
        self.assertAlmostEqual(float(values["bias"].std()), affine.SPREAD, delta=0.05)
        self.assertTrue(torch.equal(affine.vary(norm, 5)["weight"], values["weight"]))
        self.assertEqual(affine.vary(torch.nn.Linear(3, 3), 5), {})
        norm.register_buffer("calls", torch.zeros(()))
        norm.register_buffer("kept", torch.zeros(4))
        self.assertIn("kept", affine.vary(norm, 5))
        self.assertNotIn("calls", affine.vary(norm, 5))
        norm.kept += 2  # by a forward
        norm.running_var *= 2
        self.assertNotIn("kept", affine.without_written({**values, "kept": norm.kept}, norm))
        self.assertIn("running_var", affine.without_written(values, norm))

    def test_innermost_line(self):
        code = compile("def f():\n    g()\n\ndef g():\n    1 / 0\n", "cand.py", "exec")
        space = {}
        exec(code, space)
        try:
            space["f"]()
        except ZeroDivisionError as error:
            self.assertEqual(line_in_file(error, "cand.py"), 5)
            self.assertEqual(line_in_file(error, "other.py"), 0)

    def test_messages(self):
        self.assertEqual(one_line("a\n  b\tc"), "a b c")
        self.assertEqual(len(one_line("x" * 1000)), 400)


if __name__ == "__main__":
    unittest.main()
