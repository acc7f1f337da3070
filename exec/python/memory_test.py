"""Bounds, strides, poisoned memory and what is counted of an access."""

import unittest

import torch
import triton
import triton.language as tl

from aten_counter import AtenCounter
from failures import OutOfBounds
from testing import DeviceTest


@triton.jit
def copy(x, o, n, STRIDE: tl.constexpr, MASK: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if MASK:
        tl.store(o + i, tl.load(x + i * STRIDE, mask=i < n), mask=i < n)
    else:
        tl.store(o + i, tl.load(x + i * STRIDE))


@triton.jit
def columns(x, o, R, C, BLOCK: tl.constexpr):
    c = tl.program_id(0)
    r = tl.arange(0, BLOCK)
    tl.store(o + c * R + r, tl.load(x + r * C + c, mask=r < R), mask=r < R)


@triton.jit
def same_row(w, o, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(o + tl.program_id(0) * n + i, tl.load(w + i, mask=i < n), mask=i < n)


@triton.jit
def before_start(x, o):
    tl.store(o, tl.load(x - 1))


@triton.jit
def half_written(x, o, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i), mask=i < n // 2)


class MemoryTest(DeviceTest):
    source_path = __file__

    def test_out_of_bounds_is_found_and_named(self):
        x = torch.randn(1000)
        with self.assertRaises(OutOfBounds) as caught:
            copy[(1,)](x, torch.empty(1024), 1000, STRIDE=1, MASK=False, BLOCK=1024)
        text = str(caught.exception)
        self.assertIn("out-of-bounds load: 24 of 1024", text)
        self.assertIn("element 1000 of a tensor storage with 1000 elements of f32", text)
        self.assertIn("kernel copy", text)
        with open(__file__, encoding="utf-8") as file:
            line = file.read().splitlines()[caught.exception.line - 1]
        self.assertIn("tl.store(o + i, tl.load(x + i * STRIDE))", line)

    def test_out_of_bounds_store_and_negative_index(self):
        with self.assertRaises(OutOfBounds) as caught:
            copy[(1,)](torch.randn(1024), torch.empty(1000), 1024, STRIDE=1, MASK=False, BLOCK=1024)
        self.assertIn("out-of-bounds store", str(caught.exception))
        with self.assertRaises(OutOfBounds):
            before_start[(1,)](torch.randn(4), torch.empty(4))

    def test_masked_lanes_may_point_anywhere(self):
        x, o = torch.randn(1000), torch.empty(1000)
        copy[(1,)](x, o, 1000, STRIDE=1, MASK=True, BLOCK=1024)
        self.assertTrue(torch.equal(o, x))

    def test_views_are_bounded_by_their_storage(self):
        whole = torch.randn(100)
        o = torch.empty(16)
        copy[(1,)](whole[50:66], o, 16, STRIDE=1, MASK=False, BLOCK=16)
        self.assertTrue(torch.equal(o, whole[50:66]))
        before_start[(1,)](whole[50:], o)
        self.assertEqual(o[0], whole[49])
        with self.assertRaises(OutOfBounds):
            copy[(1,)](whole[90:], o, 16, STRIDE=1, MASK=False, BLOCK=16)

    def test_empty_tensor_and_empty_grid(self):
        o = torch.empty(0)
        copy[(1,)](torch.empty(0), o, 0, STRIDE=1, MASK=True, BLOCK=16)
        copy[(0,)](torch.randn(4), o, 4, STRIDE=1, MASK=False, BLOCK=16)
        with self.assertRaises(OutOfBounds):
            copy[(1,)](torch.empty(0), o, 0, STRIDE=1, MASK=False, BLOCK=16)

    def test_float_grid_is_refused_as_by_the_real_launcher(self):
        with self.assertRaises(TypeError):
            copy[(1.0,)](torch.randn(16), torch.empty(16), 16, STRIDE=1, MASK=True, BLOCK=16)

    def test_fresh_memory_is_poisoned(self):
        x = torch.randn(16)
        with AtenCounter():
            o, k = torch.empty_like(x), torch.empty(3, dtype=torch.int32)
        half_written[(1,)](x, o, 16, BLOCK=16)
        self.assertTrue(torch.equal(o[:8], x[:8]))
        self.assertTrue(o[8:].isnan().all())
        self.assertTrue((k == 2**31 - 1).all())

    def test_bytes_and_sectors_of_a_coalesced_copy(self):
        copy[(4,)](torch.randn(1000), torch.empty(1000), 1000, STRIDE=1, MASK=True, BLOCK=256)
        c = self.counters()
        self.assertEqual((c.load_bytes, c.store_bytes), (4000, 4000))
        self.assertEqual((c.sector_bytes, c.unique_bytes), (8000, 8000))

    def test_strided_access_moves_whole_sectors(self):
        copy[(4,)](torch.randn(8 * 1024), torch.empty(1024), 1024, STRIDE=8, MASK=True, BLOCK=256)
        c = self.counters()
        self.assertEqual(c.load_bytes, 4096)
        self.assertEqual(c.unique_bytes, 32 * 1024 + 4096)

    def test_reading_columns_moves_each_sector_again(self):
        columns[(64,)](torch.randn(64, 64), torch.empty(64, 64), 64, 64, BLOCK=64)
        c = self.counters()
        self.assertEqual(c.unique_bytes, 2 * 64 * 64 * 4)
        self.assertEqual(c.sector_bytes, 64 * 64 * 32 + 64 * 64 * 4)

    def test_a_row_that_all_programs_read_counts_once_for_dram(self):
        w = torch.randn(100)
        o = torch.empty(7, 100)
        same_row[(7,)](w, o, 100, BLOCK=128)
        self.assertTrue(torch.equal(o, w.expand(7, 100)))
        c = self.counters()
        self.assertEqual((c.load_bytes, c.store_bytes), (2800, 2800))
        self.assertEqual(c.unique_bytes, 13 * 32 + 88 * 32)  # 400 and 2800 bytes in whole sectors


if __name__ == "__main__":
    unittest.main()
