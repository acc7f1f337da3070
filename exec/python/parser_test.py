"""Reading Triton IR text: structure, unique names, types, lines, and what is refused."""

import unittest

import testing  # noqa: F401  (sets the import path)
from failures import NotExecutable
from ttir_analysis import pointer_origins, waits
from ttir_executor import Kernel
from ttir_parser import parse
from ttir_types import Type, parse_type, split_top

TEXT = """
#loc = loc("/tmp/cand.py":4:0)
#loc1 = loc(unknown)
#loc8 = loc("x"(#loc))
module {
  tt.func public @kernel(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("x"(#loc)), %n: i32 loc("n"(#loc))) attributes {noinline = false} {
    %cst = arith.constant dense<0.000000e+00> : tensor<8xf32> loc(#loc1)
    %c0 = arith.constant 0 : i32 loc(#loc1)
    %c1 = arith.constant 1 : i32 loc(#loc1)
    %i = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32> loc(#loc2)
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>> loc(#loc2)
    %q = tt.addptr %p, %i : tensor<8x!tt.ptr<f32>>, tensor<8xi32> loc(#loc2)
    %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%a = %cst, %b = %q) -> (tensor<8xf32>, tensor<8x!tt.ptr<f32>>)  : i32 {
      %v = tt.load %b : tensor<8x!tt.ptr<f32>> loc(#loc7)
      %s = arith.addf %a, %v : tensor<8xf32> loc(#loc2)
      scf.yield %s, %b : tensor<8xf32>, tensor<8x!tt.ptr<f32>> loc(#loc2)
    } {tt.num_stages = 3 : i32} loc(#loc2)
    %t = "tt.reduce"(%r#0) <{axis = 0 : i32}> ({
    ^bb0(%a: f32 loc(callsite(#loc3 at #loc4)), %b: f32 loc(callsite(#loc3 at #loc4))):
      %s = arith.maxnumf %a, %b : f32 loc(#loc9)
      tt.reduce.return %s : f32 loc(#loc9)
    }) : (tensor<8xf32>) -> f32 loc(#loc9)
    %u = arith.cmpf ogt, %t, %t : f32 loc(#loc2)
    scf.if %u {
      tt.store %x, %t : !tt.ptr<f32> loc(#loc2)
    } else {
      %s = arith.negf %t : f32 loc(#loc2)
      tt.store %x, %s : !tt.ptr<f32> loc(#loc2)
    } loc(#loc2)
    tt.return loc(#loc2)
  } loc(#loc)
} loc(#loc)
#loc2 = loc("/tmp/cand.py":7:20)
#loc3 = loc("/lib/standard.py":100:1)
#loc4 = loc("/tmp/cand.py":9:11)
#loc7 = loc("v"(#loc2))
#loc9 = loc(callsite(#loc3 at #loc4))
"""


class ParserTest(unittest.TestCase):
    def test_structure(self):
        function = parse(TEXT).kernel()
        self.assertEqual(
            [(name, type_.elem, type_.pointee) for name, type_ in function.args],
            [("%x", "ptr", "f32"), ("%n", "i32", "")],
        )
        ops = function.blocks[0].ops
        loop = next(op for op in ops if op.name == "scf.for")
        self.assertEqual(loop.operands, ["%c0", "%n", "%c1", "%cst", "%q"])
        self.assertEqual(loop.results, ["%r#0", "%r#1"])
        self.assertEqual(loop.regions[0][0].args, ["%k", "%a", "%b"])
        self.assertEqual(loop.regions[0][0].terminator.operands, ["%s", "%b"])
        branch = next(op for op in ops if op.name == "scf.if")
        self.assertEqual([len(region[0].ops) for region in branch.regions], [1, 2])
        self.assertEqual(function.types["%t"], Type((), "f32", ""))
        self.assertEqual(function.types["%u"], Type((), "i1", ""))

    def test_names_of_sibling_regions_are_made_unique(self):
        function = parse(TEXT).kernel()
        reduce = next(op for op in function.blocks[0].ops if op.name == "tt.reduce")
        block = reduce.regions[0][0]
        self.assertEqual(block.args, ["%a'", "%b'"])
        self.assertEqual(block.ops[0].operands, block.args)
        self.assertEqual(block.terminator.operands, block.ops[0].results)

    def test_lines(self):
        module = parse(TEXT)
        ops = module.kernel().blocks[0].ops
        reduce = next(op for op in ops if op.name == "tt.reduce")
        self.assertEqual(module.find_line(reduce.loc, "/tmp/cand.py"), 9)  # the caller's line, not the library's
        self.assertEqual(module.find_line("#loc7", "/tmp/cand.py"), 7)
        self.assertEqual(module.find_line("#loc7", "/tmp/other.py"), 0)
        self.assertEqual(module.find_line("#loc1", "/tmp/cand.py"), 0)

    def test_types(self):
        self.assertEqual(parse_type("tensor<16x1x!tt.ptr<f16>>"), Type((16, 1), "ptr", "f16"))
        self.assertEqual(parse_type("tensor<4xbf16>"), Type((4,), "bf16", ""))
        self.assertEqual(parse_type("!tt.ptr<!tt.ptr<f32>>"), Type((), "ptr", "i64"))
        self.assertEqual(split_top("a<b, c>, (d, e), f -> g"), ["a<b, c>", "(d, e)", "f -> g"])

    def test_pointer_origins(self):
        function = parse(TEXT).kernel()
        origins = pointer_origins(function)
        self.assertEqual({origins[name] for name in ("%q", "%b", "%r#1")}, {0})
        self.assertFalse(waits(function))

    def test_unknown_operations_are_refused_by_name(self):
        with self.assertRaises(NotExecutable) as caught:
            Kernel(TEXT.replace("arith.negf", "math.gamma_of"))
        self.assertIn("math.gamma_of", str(caught.exception))
        with self.assertRaises(NotExecutable):
            Kernel("module {\n}\n")


if __name__ == "__main__":
    unittest.main()
