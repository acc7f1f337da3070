"""What the audit of forward sees of Python's own work, of operators that a program makes, and of casts."""

import copy
import unittest
import warnings

import numpy as np
import torch
from torch.multiprocessing.reductions import StorageWeakRef

import operators
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
            "__dlpack__": lambda: np.from_dlpack(x),
            "__repr__": lambda: str(x),
            "__format__": lambda: f"{x}",
        }.items():
            ops = audited(read)
            self.assertEqual(ops[f"python.{name}"].calls, 1, name)
            self.assertEqual(ops[f"python.{name}"].largest, 300, name)

    def test_storages_are_read_by_what_takes_elements_out(self):
        x, y = torch.randn(6, 50), torch.empty(6, 50)
        kept = x.untyped_storage()
        for name, read in {
            "tolist": lambda: x.untyped_storage().tolist(),
            "iter": lambda: bytes(x.untyped_storage()),
            "copy": lambda: y.untyped_storage().copy_(x.untyped_storage()),
            "clone": lambda: kept.clone(),  # taken before
            "float": lambda: kept.float(),
            "deepcopy": lambda: copy.deepcopy(kept),
        }.items():
            ops = audited(read)
            self.assertEqual(ops[f"python.storage.{name}"].calls, 1, name)
            self.assertEqual(ops[f"python.storage.{name}"].largest, 1200, name)
        ops = audited(lambda: [x.untyped_storage()[i] for i in range(1200)])
        self.assertEqual(ops["python.storage.getitem"].elements, 1200)
        self.assertEqual(audited(lambda: list(x.storage()))["aten._local_scalar_dense"].calls, 300)

    def test_storages_are_as_before_afterwards(self):
        before = dict(torch.UntypedStorage.__dict__)
        audited(lambda: torch.randn(3).untyped_storage().tolist())
        self.assertEqual(dict(torch.UntypedStorage.__dict__), before)

    def test_addresses_and_sizes_are_no_reads(self):
        x = torch.randn(6, 50)

        def addresses():
            storage = x.untyped_storage()
            copy.deepcopy(x)  # a copy, by torch itself
            return storage.data_ptr(), storage.nbytes(), len(storage), x.storage().data_ptr(), storage._cdata

        self.assertFalse([name for name in audited(addresses) if name.startswith("python.")])

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


    def test_what_a_library_was_given_is_run_in_sight(self):
        keys = (("CPU", ""), ("", "CPU"), ("CompositeExplicitAutograd", ""), ("", ""))
        for number, (key, its_key) in enumerate(keys):
            space = f"elementreadstest3{number}"
            with operators.noted():
                definition = torch.library.Library(space, "DEF")
                definition.define("twice(Tensor x) -> Tensor")
                library = torch.library.Library(space, "IMPL", its_key)
                library.impl("twice", lambda x: x * len(x.tolist()), key)
            ops = audited(lambda: getattr(torch.ops, space).twice(torch.randn(40)))
            self.assertEqual(ops["aten.mul"].calls, 1, key)
            self.assertEqual(ops["python.tolist"].largest, 40, key)
            self.assertNotIn(f"python.{space}::twice", ops)

    def test_what_runs_above_the_counter_is_seen_as_well(self):
        with operators.noted():
            library = torch.library.Library("elementreadstest6", "DEF")
            library.define("twice(Tensor x) -> Tensor")
            library.impl("twice", lambda x: x.clone(), "CPU")
            library.impl("twice", lambda x: x * len(x.untyped_storage().tolist()), "Autograd")
        ops = audited(lambda: torch.ops.elementreadstest6.twice(torch.randn(40)))
        self.assertEqual((ops["aten.mul"].calls, ops["python.storage.tolist"].largest), (1, 160))

    def test_the_newer_form_of_registration(self):
        with operators.noted():
            torch.library.define("elementreadstest4::twice", "(Tensor x) -> Tensor")
            torch.library.impl("elementreadstest4::twice", "default")(lambda x: x * 2)
        self.assertEqual(audited(lambda: torch.ops.elementreadstest4.twice(torch.randn(40)))["aten.mul"].calls, 1)

    def test_an_operator_of_torch_that_is_registered_anew(self):
        with operators.noted(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            library = torch.library.Library("aten", "IMPL")
            library.impl("special_erfcx", lambda x: x.exp() * 2, "CPU")
        ops = audited(lambda: torch.special.erfcx(torch.randn(40)))
        self.assertEqual((ops["aten.exp"].calls, ops["aten.mul"].calls), (1, 1))

    def test_one_that_wants_the_dispatchers_keys_is_of_unknown_make(self):
        with operators.noted():
            library = torch.library.Library("elementreadstest5", "DEF")
            library.define("twice(Tensor x) -> Tensor")
            library.impl("twice", lambda keys, x: x * 2, "CPU", with_keyset=True)
        ops = audited(lambda: torch.ops.elementreadstest5.twice(torch.randn(40)))
        self.assertEqual(ops["python.elementreadstest5::twice"].largest, 40)


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

    def test_complex_numbers_are_not_whole(self):
        x = torch.randn(64)
        self.assertNotIn(self.NAME, audited(lambda: x.to(torch.complex64).real.double()))
        pairs = torch.empty(64, dtype=torch.cfloat)
        self.assertNotIn(self.NAME, audited(lambda: torch.view_as_real(pairs.copy_(x)).half()))
        self.assertEqual(audited(lambda: x.int().to(torch.complex64))[self.NAME].largest, 64)

    def test_memory_is_let_go_of(self):
        x, alive = torch.randn(64), []

        def many():
            for _ in range(200):
                alive.append(StorageWeakRef(x.int().untyped_storage()))
            return [storage for storage in alive if not storage.expired()]

        counter = AtenCounter()
        with counter:
            self.assertEqual(many(), [])
        self.assertLess(len(counter._rounded), 100)

    def test_new_numbers_at_an_old_address_are_new(self):
        x, whole = torch.randn(64), torch.arange(64)

        def reused():
            for _ in range(50):
                x.long()
                whole.clone().float()  # gets the memory of the one before

        self.assertNotIn(self.NAME, audited(reused))


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
