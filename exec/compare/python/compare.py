"""Compares a candidate's output with the expected one where both are, element by element in float64, by the same rules
as exec/compare/tensor_compare.cc. In stretches, so that little memory is taken beside what is compared.
"""

import math

import torch

from plain_torch import plain_torch

_STRETCH = 256 << 20  # bytes of float64 that one intermediate tensor takes at most
# The types that have a float64 result.
JUDGED = (torch.float16, torch.bfloat16, torch.float32)


class Difference:
    """What was found in all elements; struct Difference of exec/compare/tensor_compare.cc. Numbers are tuples of a real and,
    for complex types, an imaginary part."""

    def __init__(self, parts=1):
        self.largest = 0.0
        self.bad = 0
        self.first = 0  # index of the first bad element
        self.want = self.got = (0.0,) * parts
        self.nan = False  # NaN where a number is expected
        self.error = self.tolerance = 0.0  # of the first bad element
        self.share = None  # the largest error / tolerance, and what it was made of
        self.share_error = self.share_tolerance = 0.0

    def note_largest(self, *values):
        self.largest = max(self.largest, *values)

    def note_share(self, share, error, tolerance):
        if share >= 0 and (self.share is None or share > self.share):
            self.share, self.share_error, self.share_tolerance = share, error, tolerance

    def note_bad(self, start, bad, want, got, error, tolerance):
        """`bad` marks elements of a stretch that begins at `start`."""
        count = int(bad.sum())
        if count == 0:
            return
        if self.bad == 0:
            at = int(bad.to(torch.uint8).argmax())
            self.first = start + at
            self.want = tuple(float(part[at]) for part in want)
            self.got = tuple(float(part[at]) for part in got)
            self.error, self.tolerance = float(error[at]), float(tolerance[at])
        self.bad += count
        self.nan = self.nan or bool((bad & _is_nan(got) & ~_is_nan(want)).any())

    def message(self):
        """For the supervisor: numbers that may be infinite or NaN as text."""
        return {
            "largest": repr(self.largest),
            "bad": self.bad,
            "first": self.first,
            "want": [repr(part) for part in self.want],
            "got": [repr(part) for part in self.got],
            "nan": self.nan,
            "error": repr(self.error),
            "tolerance": repr(self.tolerance),
            "share": None if self.share is None else repr(self.share),
            "share_error": repr(self.share_error),
            "share_tolerance": repr(self.share_tolerance),
        }


def _parts(flat):
    """The elements as float64: (real,) or (real, imaginary)."""
    if flat.dtype == torch.bool:
        return ((flat.view(torch.uint8) != 0).double(),)
    if flat.is_complex():
        pairs = torch.view_as_real(flat)
        return pairs[:, 0].double(), pairs[:, 1].double()
    return (flat.double(),)


def _size(parts):
    return parts[0].abs() if len(parts) == 1 else torch.hypot(*parts)


def _is_nan(parts):
    return parts[0].isnan() if len(parts) == 1 else parts[0].isnan() | parts[1].isnan()


def _is_inf(parts):
    return parts[0].isinf() if len(parts) == 1 else parts[0].isinf() | parts[1].isinf()


def _equal(a, b):
    same = a[0] == b[0]
    return same if len(a) == 1 else same & (a[1] == b[1])


def _greatest(error, where):
    """The largest error of those elements, NaN counted as infinite; 0 without any."""
    chosen = torch.where(where, error, 0.0)
    return float(chosen.masked_fill_(chosen.isnan(), math.inf).max())


def _stretches(dtype, raw, elements):
    """(first, behind, private copy of the elements between as `dtype`) over bytes that another process may write."""
    length = _STRETCH // (16 if dtype.is_complex else 8)
    for first in range(0, elements, length):
        behind = min(elements, first + length)
        yield first, behind, raw[first * dtype.itemsize : behind * dtype.itemsize].clone().view(dtype)


def _same_bytes(a, b):
    """As larger elements where that is possible, which are faster to compare."""
    fits = all(x.numel() % 8 == 0 and x.storage_offset() % 8 == 0 for x in (a, b))
    return a.view(torch.int64).equal(b.view(torch.int64)) if fits else a.equal(b)


@plain_torch()
def compare(want, raw, atol, rtol):
    """Difference of `raw`, bytes of elements like those of the flat tensor `want`, from it: right is what lies within
    atol + rtol * |want|; NaN where NaN is wanted, and infinity where that very one is."""
    result = Difference(2 if want.is_complex() else 1)
    if _same_bytes(want.view(torch.uint8), raw):
        return result
    for first, behind, got in _stretches(want.dtype, raw, want.numel()):
        a, b = _parts(want[first:behind]), _parts(got)
        error = _size(tuple(y - x for x, y in zip(a, b)))
        tolerance = _size(a).mul_(rtol).add_(atol)
        within = error <= tolerance
        near = within & error.isfinite()
        all_near, top = torch.stack([near.all().double(), error.max()]).tolist()
        if all_near:
            result.note_largest(top)
            continue
        rest = ~(near | _equal(a, b) | (_is_nan(a) & _is_nan(b)))
        result.note_largest(_greatest(error, near), _greatest(error, rest))
        result.note_bad(first, rest & ~(within & ~_is_inf(a)), a, b, error, tolerance)
    return result


@plain_torch()
def compare_exactly(want, exact, slack, raw, absolute, relative):
    """Difference of `raw` from the float64 result `exact` (as float32), within absolute + relative * |exact| + slack by
    element. Where `exact` or the reference's own result `want` is not finite, either may be there."""
    if want.dtype not in JUDGED:
        raise ValueError(f"a tensor of type {want.dtype} has no float64 result")
    result = Difference()
    for first, behind, got in _stretches(want.dtype, raw, want.numel()):
        a, b = exact[first:behind].double(), got.double()
        error = (b - a).abs_()
        tolerance = a.abs().mul_(relative).add_(absolute).add_(slack[first:behind].double())
        near = (error <= tolerance) & error.isfinite()
        share = torch.where(near & (tolerance > 0), error / tolerance, -1.0)
        at = share.argmax()
        all_near, top, *of_share = torch.stack(
            [near.all().double(), error.max(), share[at], error[at], tolerance[at]]
        ).tolist()
        result.note_share(*of_share)
        if all_near:
            result.note_largest(top)
            continue
        own = want[first:behind].double()
        overflow = ~own.isfinite() | ~a.isfinite()
        alike = (b == own) | (b == a) | (b.isnan() & (own.isnan() | a.isnan()))
        bad = ~(near | (overflow & alike))
        result.note_largest(_greatest(error, near), _greatest(error, bad))
        result.note_bad(first, bad, (a,), (b,), error, tolerance)
    return result


@plain_torch()
def in_steps(flat, step):
    """Each `step`th element, as float64."""
    return flat[::step].double()


@plain_torch()
def follow(first, want, raw, step, rounding):
    """(elements, variation, covariance, own variation, rounding) of exec/compare/input_sensitivity.h, of each `step`th
    element of the tensor that lies in `raw`; `first` are those elements in the first call, as wanted and as they were."""
    got, want = raw_in_steps(want, raw, step), in_steps(want, step)
    if want.shape != first[0].shape or got.shape != first[1].shape:
        return 0, 0.0, 0.0, 0.0, 0.0
    change, own = want - first[0], got - first[1]
    finite = change.isfinite() & own.isfinite()
    squares = want**2 + first[0] ** 2
    sums = (change**2, change * own, own**2, rounding**2 * squares / 3)
    numbers = torch.stack([finite.sum().double(), *(torch.where(finite, x, 0.0).sum() for x in sums)]).tolist()
    return (int(numbers[0]), *numbers[1:])


@plain_torch()
def raw_in_steps(want, raw, step):
    """Each `step`th element of a tensor like `want` that lies in `raw`, as float64."""
    return raw.view(-1, want.element_size())[::step].clone().view(want.dtype).view(-1).double()


@plain_torch()
def same(leaves, whole, kept, share):
    """Whether two results of a candidate, bytes each, are the same bit for bit, or each tensor to within `share` of the
    largest absolute element of `whole`'s. `leaves`: [(dtype, elements, offset in whole, offset in kept)]."""
    leaves = [leaf for leaf in leaves if leaf[1]]
    copies = [_part(whole, dtype, elements, offset) for dtype, elements, offset, _ in leaves]
    others = [_part(kept, dtype, elements, offset) for dtype, elements, _, offset in leaves]
    if all(a.view(torch.uint8).equal(b.view(torch.uint8)) for a, b in zip(copies, others)):
        return True
    for a, b in zip(copies, others):
        size = _largest(a)
        atol = share * size if math.isfinite(size) else 0.0
        if compare(a, b.view(torch.uint8), atol, 0.0).bad:
            return False
    return True


def _part(memory, dtype, elements, offset):
    """A private copy."""
    return memory[offset : offset + elements * dtype.itemsize].clone().view(dtype)


def _largest(flat):
    """The largest absolute element; infinite if one is not finite."""
    largest, length = 0.0, _STRETCH // 16
    for first in range(0, flat.numel(), length):
        size = float(_size(_parts(flat[first : first + length])).max())
        if not math.isfinite(size):
            return math.inf
        largest = max(largest, size)
    return largest
