"""Code that says cuda: what works on a machine without a GPU, and that everything is put back afterwards."""

import unittest

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from fake_cuda import FakeCuda
from plain_torch import plain_torch
from testing import DeviceTest


@triton.jit
def relu_by_descriptors(source, target, n, B: tl.constexpr):
    for j in range(0, n, B):
        v = source.load([tl.program_id(0) * B, j])
        target.store([tl.program_id(0) * B, j], tl.maximum(v, 0.0))


@triton.jit
def add_from_tuple(pair, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(pair[0] + i, mask=i < n) + pair[1], mask=i < n)


class FakeCudaTest(DeviceTest):
    def test_devices(self):
        x = torch.randn(4, 4)
        self.assertTrue(x.is_cuda and x.cuda().is_cuda and x.to("cuda").is_cuda)
        self.assertEqual((x.device, x.device.type, x.get_device()), (torch.device("cuda:0"), "cuda", 0))
        self.assertEqual(x.to(torch.device("cuda:0"), torch.float16).dtype, torch.float16)
        self.assertEqual(x.to(0).shape, x.shape)

    def test_what_generated_code_calls(self):
        raw_stream, guards = torch._C._cuda_getCurrentRawStream, torch._C._dynamo.guards
        x = torch.randn(4, 6)
        guards.assert_size_stride(x, (4, 6), (6, 1))
        with torch.cuda._DeviceGuard(0), torch.cuda.device(0), torch.cuda.device_of(x), torch.cuda.nvtx.range("step"):
            torch.cuda.set_device(0)
            made = guards._empty_strided_cuda((4, 6), (6, 1), torch.float16)
            self.assertEqual(raw_stream(0), 0)
        self.assertEqual((made.shape, made.stride(), made.dtype), (x.shape, x.stride(), torch.float16))
        self.assertTrue(made.is_cuda)

    def test_operators_registered_for_cuda_run(self):
        @torch.library.custom_op("faketest::both", mutates_args=(), device_types="cpu")
        def both(x: torch.Tensor) -> torch.Tensor:
            return x + 100

        both.register_kernel("cuda")(lambda x: x + 1)

        @torch.library.custom_op("faketest::cuda_only", mutates_args=(), device_types="cuda")
        def cuda_only(x: torch.Tensor) -> torch.Tensor:
            return x + 1

        cuda_only.register_kernel("cpu")(lambda x: x + 100)
        library = torch.library.Library("faketest2", "DEF")
        library.define("op(Tensor x) -> Tensor")
        library.impl("op", lambda x: x + 1, "CUDA")
        library.impl("op", lambda x: x + 100, "CPU")
        x = torch.zeros(3)
        for operator in (both, cuda_only, torch.ops.faketest2.op):
            self.assertEqual(operator(x).tolist(), [1.0, 1.0, 1.0])

    def test_recurrent_modules_are_made(self):
        out, _ = torch.nn.LSTM(4, 5)(torch.randn(2, 3, 4))
        self.assertEqual(out.shape, (2, 3, 5))

    def test_factories(self):
        x = torch.randn(4)
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
        ]
        with torch.device("cuda"):
            made.append(torch.empty(3))
        self.assertTrue(all(tensor.is_cuda for tensor in made))
        with plain_torch():
            self.assertEqual({tensor.device.type for tensor in made}, {"cpu"})

    def test_modules(self):
        x = torch.randn(2, 4)
        self.assertEqual(torch.nn.Linear(4, 3, device="cuda")(x).shape, (2, 3))
        self.assertEqual(torch.nn.Linear(4, 3).cuda().half().weight.dtype, torch.float16)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            pass

    def test_torch_cuda(self):
        self.assertTrue(torch.cuda.is_available())
        self.assertEqual(torch.cuda.get_device_capability(), (8, 9))
        self.assertEqual(torch.cuda.get_device_properties(0).multi_processor_count, 142)
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        with torch.cuda.stream(torch.cuda.Stream()), torch.cuda.device(0):
            torch.cuda.synchronize()
        end.record()
        self.assertGreaterEqual(start.elapsed_time(end), 0.0)
        torch.cuda.manual_seed(3)
        first = torch.rand(2)
        torch.manual_seed(3)
        self.assertTrue(torch.equal(first, torch.rand(2)))

    def test_triton_asks_the_driver(self):
        driver = triton.runtime.driver.active
        self.assertEqual(driver.utils.get_device_properties(0)["multiprocessor_count"], 142)
        self.assertEqual((driver.get_current_target().backend, driver.get_current_target().arch), ("cuda", 89))

    def test_host_tensor_descriptors_and_tuples(self):
        x = torch.randn(32, 64)
        o = torch.empty_like(x)
        relu_by_descriptors[(2,)](
            TensorDescriptor.from_tensor(x, [16, 16]), TensorDescriptor.from_tensor(o, [16, 16]), 64, B=16
        )
        self.assertTrue(torch.equal(o, x.relu()))
        add_from_tuple[(8,)]((x, 2.5), o, x.numel(), B=256)
        self.assertTrue(torch.equal(o, x + 2.5))


class RestoreTest(unittest.TestCase):
    def test_everything_is_put_back(self):
        before = {name: getattr(torch.cuda, name) for name in dir(torch.cuda)}
        generator, default_device = torch.Generator, torch.set_default_device
        with FakeCuda():
            self.assertIsNot(torch.cuda.synchronize, before["synchronize"])
        self.assertEqual({name for name in before if getattr(torch.cuda, name) is not before[name]}, set())
        self.assertIs(torch.Generator, generator)
        self.assertIs(torch.set_default_device, default_device)
        self.assertFalse(torch.randn(2).is_cuda)


if __name__ == "__main__":
    unittest.main()
