"""The comparison on the device against the rules told element by element in plain Python (exec/compare/tensor_compare.cc)."""

import math
import os
import sys
import unittest

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "python")]

import compare

INF, NAN = math.inf, math.nan
FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2]
INTEGERS = [torch.int64, torch.uint64, torch.int32, torch.uint16, torch.int8, torch.uint8, torch.bool]
COMPLEX = [torch.complex64, torch.complex128]


def absolute(value):
    return math.hypot(value.real, value.imag) if isinstance(value, complex) else abs(value)


def parts(value):
    return (value.real, value.imag) if isinstance(value, complex) else (value,)


def is_nan(value):
    return any(math.isnan(part) for part in parts(value))


def is_inf(value):
    return any(math.isinf(part) for part in parts(value))


def minus(b, a):
    """b - a, for complex numbers part by part."""
    gone = [y - x for x, y in zip(parts(a), parts(b))]
    return complex(*gone) if len(gone) == 2 else gone[0]


class Rules:
    """What CompareElements and CompareExactly say."""

    def __init__(self):
        self.largest, self.bad, self.first, self.nan = 0.0, 0, 0, False
        self.want = self.got = None
        self.error = self.tolerance = 0.0
        self.share, self.share_error, self.share_tolerance = None, 0.0, 0.0

    def note_bad(self, index, a, b, error, tolerance):
        if self.bad == 0:
            self.first, self.want, self.got, self.error, self.tolerance = index, a, b, error, tolerance
        self.bad += 1
        self.nan = self.nan or (is_nan(b) and not is_nan(a))

    def near(self, index, a, b, atol, rtol):
        error, tolerance = absolute(minus(b, a)), atol + rtol * absolute(a)
        if error <= tolerance and math.isfinite(error):
            self.largest = max(self.largest, error)
            return
        if a == b or (is_nan(a) and is_nan(b)):
            return
        self.largest = max(self.largest, INF if math.isnan(error) else error)
        if error <= tolerance and not is_inf(a):
            return
        self.note_bad(index, a, b, error, tolerance)

    def exactly(self, index, own, exact, slack, b, atol, rtol):
        error, tolerance = abs(b - exact), atol + rtol * abs(exact) + slack
        if error <= tolerance and math.isfinite(error):
            self.largest = max(self.largest, error)
            if tolerance > 0 and (self.share is None or error / tolerance > self.share):
                self.share, self.share_error, self.share_tolerance = error / tolerance, error, tolerance
            return
        if not math.isfinite(own) or not math.isfinite(exact):
            if b in (own, exact) or (math.isnan(b) and (math.isnan(own) or math.isnan(exact))):
                return
        self.largest = max(self.largest, INF if math.isnan(error) else error)
        self.note_bad(index, exact, b, error, tolerance)


def numbers(tensor):
    """The elements as Python's float64 or complex numbers."""
    if tensor.is_complex():
        return tensor.to(torch.complex128).tolist()
    if tensor.is_floating_point():
        return tensor.double().tolist()
    return [float(value) for value in tensor.tolist()]


def raw(tensor):
    return tensor.contiguous().view(torch.uint8).clone()


def pairs(dtype, count, generator):
    """(wanted, there): mostly near, some far, and every pair of special values."""
    if dtype == torch.bool:
        a = torch.randint(0, 2, (count,), generator=generator, dtype=torch.uint8).view(dtype)
        b = torch.randint(0, 3, (count,), generator=generator, dtype=torch.uint8).view(dtype)  # 2 is true as well
        return a, b
    if not dtype.is_floating_point and not dtype.is_complex:
        top = {torch.uint64: 1 << 62}.get(dtype) or torch.iinfo(dtype).max
        a = torch.randint(0, top, (count,), generator=generator, dtype=torch.int64).to(dtype)
        b = (a.to(torch.int64) + torch.randint(-1, 2, (count,), generator=generator)).to(dtype)
        return a, b
    special = torch.tensor([0.0, -0.0, 1.0, 1e-3, INF, -INF, NAN, 240.0], dtype=torch.float64)
    grid = torch.cartesian_prod(special, special)
    if dtype.is_complex:
        some = torch.randperm(4096, generator=generator)[:900]
        grid = torch.view_as_complex(torch.cartesian_prod(*[special] * 4)[some].reshape(-1, 2, 2))
        a = torch.complex(torch.randn(count, generator=generator), torch.randn(count, generator=generator))
    else:
        a = torch.randn(count, generator=generator, dtype=torch.float64)
    far = torch.randint(0, 12, (count,), generator=generator) == 0
    b = a * torch.where(far, 1.3, 1.0001)
    return torch.cat([a, grid[:, 0]]).to(dtype), torch.cat([b, grid[:, 1]]).to(dtype)


class CompareTest(unittest.TestCase):
    def check(self, found, rules, what):
        for name in ("bad", "first", "nan", "largest", "error", "tolerance", "share", "share_error", "share_tolerance"):
            mine, theirs = getattr(found, name), getattr(rules, name)
            if isinstance(theirs, float):
                mine, theirs = float(f"{mine:.13e}"), float(f"{theirs:.13e}")
            self.assertTrue(mine == theirs or (mine != mine and theirs != theirs), (what, name, mine, theirs))
        if rules.bad:
            for mine, theirs in ((found.want, rules.want), (found.got, rules.got)):
                self.assertEqual([repr(part) for part in mine], [repr(part) for part in parts(theirs)], what)

    def test_all_types_and_special_values(self):
        generator = torch.Generator().manual_seed(1)
        for dtype in FLOATS + INTEGERS + COMPLEX:
            for atol, rtol in ((0.01, 0.01), (0.0, 0.0), (0.0, 0.2), (1.7976931348623157e308, 0.0), (1.0, 10.0)):
                want, got = pairs(dtype, 700, generator)
                rules = Rules()
                for index, (a, b) in enumerate(zip(numbers(want), numbers(got))):
                    rules.near(index, a, b, atol, rtol)
                self.check(compare.compare(want, raw(got), atol, rtol), rules, (dtype, atol, rtol))

    def test_nothing_wrong_and_nothing_there(self):
        for dtype in FLOATS:
            want = torch.linspace(-2, 2, 50).to(dtype)
            found = compare.compare(want, raw(want), 0.0, 0.0)
            self.assertEqual((found.bad, found.largest), (0, 0.0))
        empty = compare.compare(torch.empty(0), torch.empty(0, dtype=torch.uint8), 0.0, 0.0)
        self.assertEqual((empty.bad, empty.largest, empty.message()["want"]), (0, 0.0, ["0.0"]))

    def test_large_integers_are_as_exact_as_doubles(self):
        for values, other, bad in (([2**53], [2**53 + 1], 0), ([2**53], [2**53 + 2], 1), ([-(2**63)], [2**63 - 1], 1)):
            want, got = (torch.tensor(v, dtype=torch.int64) for v in (values, other))
            self.assertEqual(compare.compare(want, raw(got), 0.5, 0.0).bad, bad)
        want, got = (torch.tensor(v, dtype=torch.uint64) for v in ([2**64 - 1], [2**64 - 1025]))
        self.assertEqual(compare.compare(want, raw(got), 1.0, 0.0).want, (float(2**64),))

    def test_against_float64_results(self):
        generator = torch.Generator().manual_seed(2)
        special = [0.0, 1.0, INF, -INF, NAN]
        grid = torch.cartesian_prod(*[torch.tensor(special, dtype=torch.float64)] * 3)
        for dtype in compare.JUDGED:
            for absolute_, relative in ((1e-3, 1e-3), (0.0, 0.0)):
                exact = torch.cat([torch.randn(900, generator=generator, dtype=torch.float64), grid[:, 0]]).float()
                own = torch.cat([exact[:900].double() * 1.0001, grid[:, 1]]).to(dtype)
                far = torch.randint(0, 9, (900,), generator=generator) == 0
                got = torch.cat([exact[:900].double() * torch.where(far, 1.3, 1.0002), grid[:, 2]]).to(dtype)
                slack = torch.rand(len(exact), generator=generator) * 1e-2
                rules = Rules()
                for index, values in enumerate(zip(*map(numbers, (own, exact, slack, got)))):
                    rules.exactly(index, *values, absolute_, relative)
                found = compare.compare_exactly(own, exact, slack, raw(got), absolute_, relative)
                self.check(found, rules, (dtype, absolute_))
        with self.assertRaises(ValueError):
            compare.compare_exactly(torch.zeros(1).int(), exact, slack, torch.zeros(4, dtype=torch.uint8), 0, 0)

    def test_stretches_make_no_difference(self):
        generator = torch.Generator().manual_seed(3)
        whole = compare._STRETCH
        try:
            for dtype in (torch.float32, torch.complex64):
                want, got = pairs(dtype, 500, generator)
                found = []
                for compare._STRETCH in (whole, 16 * 7):
                    found.append(compare.compare(want, raw(got), 0.01, 0.01).message())
                self.assertEqual(*found)
            exact, got = torch.randn(500), torch.randn(500)
            found = []
            for compare._STRETCH in (whole, 16 * 7):
                found.append(compare.compare_exactly(exact, exact, exact.abs(), raw(got), 0.1, 0.1).message())
            self.assertEqual(*found)
        finally:
            compare._STRETCH = whole

    def test_what_is_compared_is_read_once(self):
        want = torch.arange(8.0)
        memory = raw(want)
        ((first, behind, private),) = compare._stretches(torch.float32, memory, 8)
        memory.zero_()
        self.assertEqual((first, behind, private.tolist()), (0, 8, want.tolist()))

    def test_messages_hold_json_numbers_only(self):
        found = compare.compare(torch.tensor([1.0]), raw(torch.tensor([NAN])), 0.1, 0.1).message()
        self.assertEqual((found["largest"], found["want"], found["got"], found["nan"]), ("inf", ["1.0"], ["nan"], True))
        self.assertEqual((found["error"], found["tolerance"], found["share"]), ("nan", "0.2", None))


class SameTest(unittest.TestCase):
    def same(self, whole, kept, share=1e-2, offset=5):
        """`whole` lies at an odd place, `kept` at another."""
        memory = torch.cat([torch.zeros(offset, dtype=torch.uint8), raw(whole)])
        return compare.same([(whole.dtype, whole.numel(), offset, 0)], memory, raw(kept), share)

    def test_bits_or_a_share_of_the_largest(self):
        x = torch.tensor([1.0, -100.0, NAN, 0.0])
        self.assertTrue(self.same(x, x))
        # Not finite: no tolerance, though NaN is like NaN.
        self.assertFalse(self.same(x, torch.tensor([1.5, -100.0, NAN, 0.0])))
        x[2] = 3
        self.assertTrue(self.same(x, x + 0.9))
        self.assertFalse(self.same(x, x + 1.1))
        self.assertFalse(self.same(x, torch.tensor([1.0, -100.0, NAN, 0.0])))
        self.assertFalse(self.same(torch.tensor([INF, 1.0]), torch.tensor([INF, 1.001])))
        self.assertTrue(self.same(torch.tensor([0.0, -0.0]), torch.tensor([-0.0, 0.0])))

    def test_the_first_ones_size_counts(self):
        small, large = torch.tensor([1.0, 100.0]), torch.tensor([1.0, 101.005])
        self.assertFalse(self.same(small, large))
        self.assertTrue(self.same(large, small))
        self.assertTrue(self.same(torch.tensor([3 + 4j]), torch.tensor([3 + 4.04j])))
        self.assertFalse(self.same(torch.tensor([3 + 4j]), torch.tensor([3 + 4.06j])))

    def test_integers_and_no_elements(self):
        self.assertTrue(self.same(torch.tensor([1000, 5]), torch.tensor([1000, 15])))
        self.assertFalse(self.same(torch.tensor([1000, 5]), torch.tensor([1000, 16])))
        self.assertTrue(self.same(torch.empty(0), torch.empty(0)))

    def test_the_largest_element_of_many(self):
        whole = compare._STRETCH
        try:
            compare._STRETCH = 64
            x = torch.zeros(50)
            x[37] = 100.0
            self.assertTrue(self.same(x, x + 0.9))
            x[48] = INF
            self.assertFalse(self.same(x, torch.where(x.isinf(), x, x + 0.9)))
        finally:
            compare._STRETCH = whole


class FollowTest(unittest.TestCase):
    def test_sums_are_those_of_the_elements(self):
        first, first_got, want, got = torch.randn(4, 1000).unbind()
        got[7], want[8], first_got[9] = NAN, INF, NAN
        before = compare.in_steps(first, 3), compare.in_steps(first_got, 3)
        for offset in (0, 3):  # not aligned
            memory = torch.zeros(4096, dtype=torch.uint8)
            memory[offset : offset + 4000] = got.view(torch.uint8)
            raw = memory[offset : offset + 4000]
            self.assertTrue(compare.raw_in_steps(want, raw, 3)[:2].equal(got[:6:3].double()))
            elements, *sums = compare.follow(before, want, raw, 3, 0.25)
            counted, expected = 0, [0.0] * 4
            for i in range(0, 1000, 3):
                a, b, c, d = (float(t[i]) for t in (first, first_got, want, got))
                if all(map(math.isfinite, (a, b, c, d))):
                    counted += 1
                    terms = ((c - a) ** 2, (c - a) * (d - b), (d - b) ** 2, 0.25**2 * (a * a + c * c) / 3)
                    expected = [x + y for x, y in zip(expected, terms)]
            self.assertEqual(elements, counted)
            for one, other in zip(sums, expected):
                self.assertAlmostEqual(one, other, places=6)

    def test_another_shape_follows_nothing(self):
        want = torch.randn(10)
        first = compare.in_steps(want, 1), compare.in_steps(want, 1)
        self.assertEqual(compare.follow(first, want[:5], want[:5].view(torch.uint8), 1, 0.0)[0], 0)


if __name__ == "__main__":
    unittest.main()
