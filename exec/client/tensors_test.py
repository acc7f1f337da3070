"""Styles of making, viewing, changing, copying and reading tensors, each as a short program."""

import os
import sys
import unittest

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")]

from client.testing.client_case import ClientTest
from client.testing.programs import program

import torch


class FactoryTest(ClientTest):
    def test_factories_and_devices(self):
        self.check_twice(program("""
            assert type(x) is torch.Tensor and x.is_cuda and x.get_device() == 0 and str(x.device) == "cuda:0"
            tensors = [torch.zeros(3, device="cuda"), torch.ones(3).cuda(), torch.full((3,), 2.0).to(x.device)]
            tensors += [torch.arange(3, device="cuda:0"), torch.zeros(3).to("cuda"), x.new_empty(3), torch.rand_like(x)]
            with torch.device("cuda"):
                tensors += [torch.empty(3), torch.tensor([1, 2, 3]), torch.randn(2, 2), torch.linspace(0, 1, 4)]
            assert all(t.device == x.device for t in tensors)
            return twice(x)
        """))

    def test_contents_of_factories(self):
        executor = self.serve(program("""
            y = torch.tensor([[1.0, float("nan")], [float("inf"), -2.0]], device="cuda")
            return y, torch.tensor(3, device="cuda"), torch.full((2,), 7, dtype=torch.int8, device="cuda"), x.half()
        """))
        self.check_ended(executor)
        y, three, seven, half = executor.outputs[0]
        torch.testing.assert_close(y, torch.tensor([[1.0, float("nan")], [float("inf"), -2.0]]), equal_nan=True)
        self.assertEqual((three.item(), three.dtype, seven.tolist()), (3, torch.int64, [7, 7]))
        self.assertTrue(torch.equal(half, self.x.half()))

    def test_all_dtypes(self):
        executor = self.serve(program("""
            kinds = [torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.uint8, torch.int64, torch.bool]
            kinds += [torch.complex64, torch.float8_e4m3fn, torch.float8_e5m2, torch.uint16]
            made = [torch.empty(4, 2, dtype=kind, device="cuda") for kind in kinds]
            assert [t.dtype for t in made] == kinds
            return [x[0, :4].to(kind) for kind in kinds[:8]]
        """))
        self.check_ended(executor)
        for got in executor.outputs[0]:
            self.assertTrue(torch.equal(got, self.x[0, :4].to(got.dtype)))

    def test_threads_make_and_launch(self):
        self.check_twice(program("""
            import threading
            rows, ended = list(torch.empty_like(x).chunk(4)), []
            def work(i):
                twice(x.chunk(4)[i].clone(), rows[i])
                ended.append(torch.zeros(3, device="cuda"))
            threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
            for t in threads: t.start()
            for t in threads: t.join()
            assert len(ended) == 4
            return torch.cat(rows)
        """))

    def test_generators_and_seeds(self):
        executor = self.serve(program("""
            g = torch.Generator(device="cuda").manual_seed(5)
            assert g.device.type == "cuda"
            a = torch.rand(8, device="cuda", generator=g)
            torch.manual_seed(-9)
            b = torch.empty(8, device="cuda").normal_()
            torch.cuda.manual_seed(-9)
            c = torch.randn(8, device="cuda")
            d = torch.rand(3, generator=torch.Generator().manual_seed(1)).cuda()
            for wrong in (lambda: torch.rand(8, device="cuda", generator=torch.Generator()), g.get_state,
                          torch.cuda.get_rng_state):
                try:
                    wrong()
                    raise AssertionError(wrong)
                except RuntimeError:
                    pass
            return a, b, c, d
        """))
        self.check_ended(executor)
        a, b, c, d = executor.outputs[0]
        self.assertTrue(torch.equal(a, torch.rand(8, generator=torch.Generator().manual_seed(5))))
        self.assertTrue(torch.equal(b, torch.empty(8).normal_(generator=torch.Generator().manual_seed(-9))))
        self.assertTrue(torch.equal(c, b))
        self.assertTrue(torch.equal(d, torch.rand(3, generator=torch.Generator().manual_seed(1))))


class GeometryTest(ClientTest):
    def test_views_cost_no_command(self):
        executor = self.check_twice(program("""
            v = x.view(2, 8, 64).transpose(0, 1)[1:, :, ::2].unsqueeze(-1).expand(-1, -1, -1, 3)
            assert v.shape == (7, 2, 32, 3) and v.untyped_storage().data_ptr() == x.data_ptr()
            assert x.reshape(-1)[5:].storage_offset() == 5 and x.view(torch.int32).dtype == torch.int32
            a, b = x.chunk(2); x.unbind(0); x.t().unfold(0, 3, 1); torch.view_as_complex(x.view(16, 32, 2))
            return twice(x)
        """))
        self.assertEqual([m["name"] for m in self.commands(executor, "op")], ["empty_strided"])

    def test_changes_in_place(self):
        self.check_twice(program("""
            t = torch.empty(0, device="cuda").set_(x)
            assert t.data_ptr() == x.data_ptr()
            u = torch.empty(1, device="cuda")
            u.data = t
            z = u.t().contiguous()
            z.t_().unsqueeze_(0).squeeze_(0)
            return twice(z)
        """))

    def test_resize(self):
        executor = self.serve(program("""
            small = torch.tensor([1.0, 2.0, 3.0], device="cuda")
            before = small.data_ptr()
            small.resize_(2)
            assert small.data_ptr() == before and small.shape == (2,)
            small.resize_(3)
            y = torch.empty(0, device="cuda")
            y.resize_(x.shape)
            return twice(x, y), small.resize_(2, 2)
        """))
        self.check_ended(executor)
        torch.testing.assert_close(executor.outputs[0][0], 2 * self.x)
        self.assertEqual(executor.outputs[0][1].reshape(-1)[:3].tolist(), [1, 2, 3])

    def test_out_arguments(self):
        self.check_twice(program("""
            y = torch.empty(0, device="cuda")
            got = torch.cat([x[:4], x[4:]], out=y)
            assert got is y and y.shape == x.shape
            torch.zeros(2, 2, out=torch.empty(2, 2, device="cuda"))
            return twice(y)
        """))

    def test_cat_stack_pad_and_items(self):
        self.check_twice(program("""
            y = torch.empty(17, 66, device="cuda")
            y[0] = 0
            y[1:, 1:-1] = x
            y[0, :3] = torch.tensor([1.0, 2.0, 3.0], device="cuda")
            z = torch.cat([y[1:9], y[9:]])[:, 1:-1]
            z = torch.nn.functional.pad(z, (1, 1, 2, 0))[2:, 1:-1].contiguous()
            return torch.stack(twice(z).unbind(0))
        """))

    def test_memory_formats(self):
        self.check_twice(program("""
            z = x.view(2, 2, 4, 64).to(memory_format=torch.channels_last)
            assert z.is_contiguous(memory_format=torch.channels_last) and not z.is_contiguous()
            return twice(z.contiguous()).view(16, 64)
        """))

    def test_storages_are_freed_once(self):
        executor = self.check_twice(program("""
            for _ in range(5):
                y = torch.empty(1000, device="cuda")
                v = y[10:]
                del y
                z = v.view(-1)
            del v, z
            return twice(x)
        """))
        freed = [number for message in executor.log for number in message.get("free", ())]
        self.assertEqual(len(freed), len(set(freed)))
        self.assertGreaterEqual(len(freed), 5)


class ReadTest(ClientTest):
    def test_small_reads(self):
        executor = self.check_twice(program("""
            n = torch.tensor([3, 4], device="cuda")
            assert n.tolist() == [3, 4] and n[0].item() == 3 and int(n[1]) == 4 and bool(n[0]) and f"{n[0]}" == "3"
            assert n.cpu().numpy().sum() == 7 and torch.empty(2, dtype=torch.int64).copy_(n).tolist() == [3, 4]
            return twice(x)
        """))
        self.assertTrue(all(m["line"] > 0 for m in self.commands(executor, "read")))

    def test_printing_shows_no_contents(self):
        executor = self.check_twice(program("""
            p = nn.Parameter(x)
            text = f"{x} {x!r} {p} {[x]} {self}"
            assert "size=(16, 64)" in text and "Parameter containing" in text
            assert repr(torch.tensor([1.5])) == "tensor([1.5000])"
            print(x)
            return twice(x)
        """))
        self.assertEqual(self.commands(executor, "read"), [])

    def test_a_large_read_is_refused_at_its_line(self):
        source = program("""
            try:
                host = x.cpu()
            except RuntimeError as error:
                assert str(error).startswith("refused: forward reads 1024")
            return x.tolist()  # here
        """)
        executor = self.serve(source)
        lines = source.split("\n")
        self.assertEqual([lines[line - 1].strip() for _, line in executor.refused], [
            "host = x.cpu()", "return x.tolist()  # here",
        ])  # fmt: skip
        self.assertEqual((executor.failure["phase"], executor.failure["kind"]), ("forward", "RuntimeError"))

    def test_memory_is_not_mapped(self):
        executor = self.check_twice(program("""
            address = x.data_ptr()
            with open("/proc/self/maps") as file: lines = list(file)
            for line in lines:
                low, high = (int(v, 16) for v in line.split()[0].split("-"))
                assert not low <= address < high, line
            return twice(x)
        """))
        self.assertEqual(executor.refused, [])


if __name__ == "__main__":
    unittest.main()
