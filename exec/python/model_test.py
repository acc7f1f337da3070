"""Pure parts: the roofline, counting of ATen operators, values in memory, and what of the CUDA path needs no GPU."""

import json
import os
import types
import unittest
import unittest.mock

import torch

import testing  # noqa: F401  (sets the import path)
import affine
import cuda_device
import layout
import roofline
import sources
from aten_counter import AtenCounter
from compile_watch import Recorder, compile_error_line, compiler_message
from counters import LaunchCounters
from failures import line_in_file, one_line
from ttir_memory import storage_of


def record(programs=64, warps=4, **counts):
    counters = types.SimpleNamespace(
        **{
            "unique_bytes": 0,
            "sector_bytes": 0,
            "atomic_bytes": 0,
            "flops": 0,
            "dot_flops": 0,
            "tensor_flops": 0,
            **counts,
        }
    )
    return types.SimpleNamespace(programs=programs, num_warps=warps, counters=counters)


class RooflineTest(unittest.TestCase):
    def test_the_slowest_resource_decides(self):
        model = roofline.DeviceModel("test", 1.0, 10.0, 100.0, 1000.0, 2000.0, 8, 0.5)
        seconds = lambda **counts: roofline.launch_seconds(model, record(programs=4, warps=2, **counts)) - 1.0 - 4 * 0.5
        self.assertAlmostEqual(seconds(unique_bytes=20), 2.0)
        self.assertAlmostEqual(seconds(unique_bytes=20, sector_bytes=300, atomic_bytes=200), 5.0)
        self.assertAlmostEqual(seconds(flops=3000, dot_flops=1000), 4.0)
        self.assertAlmostEqual(seconds(tensor_flops=3000), 1.5)
        half = roofline.launch_seconds(model, record(programs=2, warps=2, unique_bytes=20)) - 1.0 - 2 * 0.5
        self.assertAlmostEqual(half, 4.0)  # half the warps that fill the device: half the bandwidth

    def test_names(self):
        self.assertIn("modelled", roofline.device_model("l40s").name)
        with self.assertRaisesRegex(ValueError, "l40s, l40s_mini"):
            roofline.device_model("h100")

    def test_mini_ratios(self):
        model = roofline.device_model("l40s_mini")
        one = roofline.launch_seconds(model, record(unique_bytes=131072, sector_bytes=131072))
        self.assertAlmostEqual(one, 2.5e-6 + 131072 / 4.3e9 + 64 * 20e-9)


class AtenCounterTest(unittest.TestCase):
    def count(self, function):
        counter = AtenCounter()
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
        self.assertTrue(ops["aten.t"].view and not ops["aten.clone"].view and not ops["aten.clone"].free)
        self.assertFalse(self.count(lambda: x.clone().add_(1))["aten.add_"].view)
        self.assertEqual((ops["aten.div"].largest, ops["aten.sum"].largest), (1, 1000))
        self.assertEqual(roofline.aten_seconds(roofline.device_model("l40s"), ops["aten.t"]), 0.0)
        ops = self.count(lambda: [torch.empty(n) for n in (3, 70, 5)])
        self.assertEqual((ops["aten.empty"].calls, ops["aten.empty"].largest, ops["aten.empty"].elements), (3, 70, 78))

    def test_in_place_is_read_and_written(self):
        x = torch.randn(100)
        self.assertEqual(self.count(lambda: x.add_(1.0))["aten.add_"].bytes, 800)
        self.assertEqual(self.count(lambda: x.zero_())["aten.zero_"].bytes, 400)

    def test_fresh_memory_is_poisoned(self):
        with AtenCounter(counting=False) as counter:
            self.assertTrue(torch.empty(7).isnan().all())
            self.assertTrue(torch.empty_like(torch.ones(3)).isnan().all())
            self.assertTrue((torch.empty(3, dtype=torch.int64) == 2**63 - 1).all())
        self.assertEqual(counter.ops, {})

    def test_integers_are_poisoned_in_two_ways(self):
        found = []
        for pattern in (0, 1):
            with AtenCounter(counting=False, pattern=pattern):
                kinds = (torch.int8, torch.uint8, torch.uint16, torch.int32, torch.int64, torch.bool)
                found.append([torch.empty(2, dtype=kind).tolist() for kind in kinds])
        self.assertTrue(all(a != b for a, b in zip(*found)), found)

    def test_memory_that_a_tensor_grows_by_is_poisoned(self):
        with AtenCounter(counting=False):
            for kind in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
                x = torch.ones(4, dtype=kind).resize_(100)
                self.assertTrue((x[:4] == 1).all() and x[4:].isnan().all(), kind)


class LayoutTest(unittest.TestCase):
    def setUp(self):
        self.fd = os.memfd_create("test")
        os.ftruncate(self.fd, 4096)
        self.addCleanup(os.close, self.fd)
        self.writer, self.reader = layout.Writer(self.fd), layout.Reader(self.fd)

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

    def test_reset_starts_again(self):
        a = self.writer.put(torch.ones(3))["tensor"]["offset"]
        b = self.writer.put(torch.ones(3))["tensor"]["offset"]
        self.writer.reset()
        self.assertEqual((a, b, self.writer.put(torch.ones(3))["tensor"]["offset"]), (0, 64, 0))


class CountersTest(unittest.TestCase):
    def test_transposed_rows_are_sorted_before_counting(self):
        import numpy as np

        storage = storage_of(torch.zeros(64))
        counters = LaunchCounters()
        order = np.arange(64).reshape(8, 8).T.reshape(1, 64)
        counters.touch("load", storage, order, None, 4, 3)
        self.assertEqual((counters.load_bytes, counters.sectors, counters.unique_bytes), (3 * 256, 3 * 8, 256))
        counters.touch("store", storage, order, order < 4, 4, 1)
        self.assertEqual((counters.store_bytes, counters.sectors, counters.unique_bytes), (16, 3 * 8 + 1, 256 + 32))


class CudaPureTest(unittest.TestCase):
    def test_cuda_errors_are_typed(self):
        explain = lambda text: cuda_device.explain_cuda_error([RuntimeError(text)])
        self.assertEqual(explain("CUDA error: an illegal memory access was encountered")[0], "out_of_bounds")
        self.assertEqual(explain("CUDA out of memory. Tried to allocate 20 GiB")[0], "out_of_device_memory")
        self.assertIsNone(explain("shape mismatch"))

    def test_of_many_launches_the_last_are_told(self):
        recorder = Recorder()
        recorder.records = list(range(1000))
        self.assertEqual(recorder.shown_records, list(range(800, 1000)))

    def test_launches_are_noted(self):
        class Base:
            def __init__(self, src, metadata):
                self.calls = []

            def __call__(self, *args):
                self.calls.append(args)

        source = types.SimpleNamespace(
            fn=types.SimpleNamespace(__name__="k", raw_src=["@triton.jit\n", "def k(x):\n"], starting_line_number=4),
            signature={"x": "*fp32"},
        )
        metadata = types.SimpleNamespace(num_warps=8, num_stages=2, shared=64, name="k_0")
        recorder = Recorder()
        launcher = cuda_device.recording_launcher(Base, recorder)(source, metadata)
        rest = ("stream", "function", "packed", "metadata", None, None, torch.ones(3))
        launcher(1, 2, 3, *rest)
        recorder.counting = True
        launcher(4, 5, 6, *rest)
        launcher(0, 1, 1, *rest)
        self.assertEqual([call[:3] for call in launcher.calls], [(1, 2, 3), (4, 5, 6)])
        self.assertEqual((recorder.launches, recorder.launched), (3, {"k"}))
        self.assertEqual((recorder.kernels, recorder.binaries), ({("k", 5): 2}, {"k_0": 2}))
        (noted,) = recorder.records
        self.assertEqual((noted.name, noted.line, noted.grid, noted.num_warps), ("k", 5, (4, 5, 6), 8))
        self.assertEqual([tensor.shape for tensor in noted.tensors], [[3]])
        # Left out: noted, but not run.
        recorder.left_out = lambda kernel: kernel == ("k", 5)
        launcher(4, 5, 6, *rest)
        self.assertEqual((len(launcher.calls), recorder.not_run, len(recorder.records)), (2, 1, 1))

    def test_map_tensors_keeps_structure(self):
        mapped = cuda_device.map_tensors([torch.ones(1), (2, {"a": torch.ones(1)})], lambda t: t + 1)
        self.assertEqual((mapped[0].item(), mapped[1][0], mapped[1][1]["a"].item()), (2.0, 2, 2.0))

    def test_no_gpu_is_our_fault_and_says_so(self):
        import runner

        with unittest.mock.patch.object(torch.cuda, "is_available", return_value=False):
            job = {"reference_source": "", "input_seeds": [], "forward_seeds": [], "calls": [], "fds": {}}
            result = runner.run_job({"role": "oracle", "device": "cuda", **job})
        self.assertEqual((result["outcome"], result["fault"]), ("internal_error", "ours"))
        self.assertIn("no GPU", result["message"])


class HelpersTest(unittest.TestCase):
    def test_weights_are_copied_where_names_and_shapes_agree(self):
        a, b = torch.nn.Linear(3, 4), torch.nn.Linear(3, 4)
        c = torch.nn.Linear(3, 5)
        kept = c.weight.clone()
        self.assertEqual(sources.copy_state(sources.state_of(a), b), [])
        (note,) = sources.copy_state({"weight": a.weight.detach()}, b)
        self.assertEqual(
            note, "parameter 'bias' of ModelNew has no counterpart in Model, it keeps its own initial value"
        )
        note = sources.copy_state(sources.state_of(a), c)[0]
        self.assertIn("'weight' of ModelNew has the shape (5, 3), its counterpart in Model (4, 3)", note)
        several = torch.nn.Sequential(*[torch.nn.Linear(1, 1) for _ in range(4)])
        self.assertEqual(sources.copy_state({}, several)[sources.MOST_OWN :], ["so do 4 more"])
        self.assertTrue(torch.equal(a.weight, b.weight) and torch.equal(a.bias, b.bias))
        self.assertTrue(torch.equal(c.weight, kept))

    def test_what_was_zero_or_one_is_found_under_other_names(self):
        class Renamed(torch.nn.Module):
            def __init__(self):
                super().__init__()
                for name, value in {"b": 0.0, "g": 1.0, "h": 1.0, "line": 0.5}.items():
                    setattr(self, name, torch.nn.Parameter(torch.full((1, 4), value)))

        norms = torch.nn.Sequential(torch.nn.LayerNorm(4), torch.nn.LayerNorm(4))
        varied = {name: affine.constant_of(value) for name, value in norms.state_dict().items()}
        self.assertEqual(varied, {"0.weight": 1, "0.bias": 0, "1.weight": 1, "1.bias": 0})
        affine.put(affine.vary(norms, 5), norms)
        state, model = sources.state_of(norms), Renamed()
        (note,) = sources.copy_state(state, model, varied)
        self.assertIn("'line'", note)
        for own, name in ((model.b, "0.bias"), (model.g, "0.weight"), (model.h, "1.weight")):
            self.assertTrue(torch.equal(own[0], state[name]), name)
        self.assertEqual(len(sources.copy_state(state, Renamed())), 4)
        self.assertEqual(sources.copy_state(state, torch.nn.Sequential(torch.nn.LayerNorm(4)), varied), [])

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
        error = RuntimeError()
        error.error_message = (
            "Internal Triton PTX codegen error\n`ptxas` stderr:\nptxas x.ptx, line 69; error   : bad\nlong\nlong"
        )
        self.assertEqual(compiler_message(error), "ptxas x.ptx, line 69; error : bad")
        error.src, error.node = "def k(x):\n    y\n", types.SimpleNamespace(lineno=2)
        self.assertEqual(compile_error_line(error, "import a\n\ndef k(x):\n    y\n", 1), (error, 4))


if __name__ == "__main__":
    unittest.main()
