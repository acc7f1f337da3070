"""What the audit of forward sees of Python's own work, of operators that a program makes, and of casts."""

import unittest

import numpy as np
import torch

from aten_counter import AtenCounter, OpCount, most_of
from element_reads import ElementReads


@torch.library.custom_op("elementreadstest::double", mutates_args=())
def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2 + len(x.tolist())


def audited(function):
    """Operators that ran in function(), by name."""
    counter = AtenCounter()
    counter.inside = lambda: ElementReads(counter.ops)
    with ElementReads(counter.ops), counter:
        function()
    return counter.ops


class ElementReadsTest(unittest.TestCase):
    def test_elements_that_leave_torch_are_counted(self):
        x = torch.randn(6, 50)
        for name, read in {
            "tolist": lambda: x.tolist(),
            "numpy": lambda: x.numpy(),
            "__array__": lambda: np.asarray(x),
            "untyped_storage": lambda: x.untyped_storage(),
            "__dlpack__": lambda: np.from_dlpack(x),
            "__repr__": lambda: str(x),
            "__format__": lambda: f"{x}",
        }.items():
            ops = audited(read)
            self.assertEqual(ops[f"python.{name}"].calls, 1, name)
            self.assertEqual(ops[f"python.{name}"].largest, 300, name)

    def test_pickling_is_seen_by_what_it_asks_for(self):
        ops = audited(lambda: torch.randn(300).__reduce_ex__(2))
        self.assertEqual(max(count.largest for name, count in ops.items() if name.startswith("python.")), 300)

    def test_single_elements_are_an_operator(self):
        x = torch.randn(40)
        ops = audited(lambda: [float(v) for v in x])
        self.assertEqual(ops["aten._local_scalar_dense"].calls, 40)

    def test_arrays_of_others_are_counted_where_they_come_in(self):
        array = np.ones(70, dtype=np.float32)
        for name, take in {
            "as_tensor": lambda: torch.as_tensor(array),
            "tensor": lambda: torch.tensor(array),
            "asarray": lambda: torch.asarray(array),
        }.items():
            self.assertEqual(audited(take)[f"python.{name}"].largest, 70, name)

    def test_ordinary_calls_are_not(self):
        x = torch.randn(40)

        def ordinary():
            torch.tensor([1.0, 2.0] * 30)
            torch.as_tensor(x)
            return x.view(5, 8).contiguous().shape, x.data_ptr(), x.stride(), x.dtype

        self.assertFalse([name for name in audited(ordinary) if name.startswith("python.")])

    def test_inside_of_operators_of_the_program(self):
        ops = audited(lambda: double(torch.randn(40)))
        self.assertEqual(ops["aten.mul"].calls, 1)
        self.assertEqual(ops["python.tolist"].largest, 40)
        self.assertEqual(ops["elementreadstest.double"].calls, 1)

    def test_an_operator_of_unknown_make_is_told(self):
        library = torch.library.Library("elementreadstest2", "DEF")
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
        ops = audited(lambda: torch.ops.elementreadstest2.twice(torch.randn(40)))
        self.assertEqual(ops["python.elementreadstest2::twice"].largest, 40)


class CastTest(unittest.TestCase):
    NAME = "aten.cast_to_whole_numbers_and_back"

    def test_rounding_by_casts_is_told(self):
        x = torch.randn(8, 8)
        whole = torch.empty(8, 8, dtype=torch.int64)
        self.assertEqual(audited(lambda: x.int().float())[self.NAME].largest, 64)
        self.assertEqual(audited(lambda: torch.cat([row.long() for row in x]).to(x.dtype))[self.NAME].largest, 64)
        self.assertEqual(audited(lambda: whole.copy_(x).double())[self.NAME].largest, 64)

    def test_casts_one_way_are_not(self):
        x = torch.randn(64)
        self.assertNotIn(self.NAME, audited(lambda: (x.int(), x.half().float(), torch.arange(64).float())))


class MostOfTest(unittest.TestCase):
    def test_keeps_the_largest_of_all_calls(self):
        ops = {}
        for calls, elements in ((2, 10), (1, 30)):
            count = OpCount(view=False, free=False)
            count.calls, count.elements, count.largest = calls, elements, elements
            most_of(ops, {"aten.mul": count})
        self.assertEqual((ops["aten.mul"].calls, ops["aten.mul"].elements), (2, 30))


if __name__ == "__main__":
    unittest.main()
