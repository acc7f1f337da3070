"""Names of older generated programs: the launch grids they give, and who gets them."""

import os
import sys
import types
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "workers", "python")]

from client import older_inductor


class GridTest(unittest.TestCase):
    def test_sizes_and_blocks(self):
        grid = older_inductor.grid
        self.assertEqual(grid(256)({"XBLOCK": 256}), (1, 1, 1))
        self.assertEqual(grid(257)({"XBLOCK": 256}), (2, 1, 1))
        self.assertEqual(grid(32, 6)({"XBLOCK": 8, "YBLOCK": 16}), (1, 2, 1))
        self.assertEqual(grid(3, 32, 6)({"XBLOCK": 4, "YBLOCK": 32, "ZBLOCK": 1}), (2, 1, 3))
        self.assertEqual(grid(7)({}), (7, 1, 1))

    def test_rows_beyond_the_limit_go_to_the_third_axis(self):
        x, y, z = older_inductor.grid(200000, 5)({"XBLOCK": 8, "YBLOCK": 1})
        self.assertEqual((x, z), (1, 4))
        self.assertLessEqual(y, older_inductor.MAX_Y_GRID)
        self.assertGreaterEqual(y * z, 200000)

    def test_wrong_number_of_sizes(self):
        for sizes in ((), (1, 2, 3, 4)):
            with self.assertRaises(AssertionError):
                older_inductor.grid(*sizes)

    def test_split_scan(self):
        self.assertEqual(older_inductor.split_scan_grid(6, 100)({"XBLOCK": 1, "RBLOCK": 32}), (4, 6, 1))


class ProvideTest(unittest.TestCase):
    def provide(self, source, **names):
        module = types.SimpleNamespace(**names)
        with mock.patch.dict(sys.modules, {older_inductor.MODULE: module}):
            older_inductor.provide_names(source)
        return module

    def test_only_for_programs_that_ask_and_only_what_is_missing(self):
        asks = f"from {older_inductor.MODULE} import grid"
        self.assertIs(self.provide(asks).grid, older_inductor.grid)
        self.assertEqual(self.provide(asks, grid="its own").grid, "its own")
        self.assertFalse(hasattr(self.provide("import triton"), "grid"))


if __name__ == "__main__":
    unittest.main()
