#include "exec/ttir/parser.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "exec/ttir/testing/corpus.h"
#include "gtest/gtest.h"

namespace tritonrl::ttir {
namespace {

// The module of a kernel's body, which must be right.
Module Parse(const std::string& body) {
  auto module = ParseTtir(ModuleAround(body + "\ntt.return"));
  EXPECT_TRUE(module.ok()) << module.status() << "\n" << body;
  return module.ok() ? *std::move(module) : Module();
}

std::string ErrorOf(const std::string& body) {
  const auto module = ParseTtir(ModuleAround(body + "\ntt.return"));
  return module.ok() ? "" : std::string(module.status().message());
}

const Operation& At(const Module& module, size_t index) {
  return module.functions.at(0).body.blocks.at(0).operations.at(index);
}

constexpr char kTensors[] = R"(
  %r = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %pp = tt.addptr %ps, %r : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %x = tt.load %pp : tensor<16x!tt.ptr<f32>>
)";

TEST(ParserTest, ReadsAFunctionsHead) {
  const Module module = Parse("");
  ASSERT_EQ(module.functions.size(), 1u);
  const Function& function = module.functions[0];
  EXPECT_EQ(function.name, "k");
  EXPECT_TRUE(function.is_public);
  ASSERT_EQ(function.arguments.size(), 5u);
  EXPECT_EQ(function.TypeOf(function.arguments[0].value).ToString(), "!tt.ptr<f32>");
  EXPECT_EQ(module.hints.at(function.arguments[0].hints).divisibility, std::vector<int64_t>{16});
  EXPECT_EQ(function.arguments[1].hints, -1);
  EXPECT_EQ(module.locations.PositionOf(function.location).line, 3);
}

TEST(ParserTest, ReadsWordsAndAttributes) {
  const Module module = Parse(absl::StrCat(kTensors, R"(
    %m = arith.cmpi uge, %r, %r : tensor<16xi32>
    %y = tt.load %pp, %m, %x cacheModifier = cg evictionPolicy = evict_first {isVolatile = true} : tensor<16x!tt.ptr<f32>>
    %o = tt.atomic_rmw fadd, release, sys, %pp, %y, %m : (tensor<16x!tt.ptr<f32>>, tensor<16xf32>, tensor<16xi1>) -> tensor<16xf32>
    %s = arith.addf %x, %y fastmath<nnan,contract> : tensor<16xf32>
    %a = arith.addi %r, %r overflow<nsw, nuw> {tt.contiguity = dense<16> : tensor<1xi32>} : tensor<16xi32>
    %h = tt.fp_to_fp %s, rounding = rtz : tensor<16xf32> -> tensor<16xf8E5M2>
    %z = tt.get_num_programs z : i32)"));
  EXPECT_EQ(At(module, 4).attributes.predicate, static_cast<uint8_t>(IntPredicate::kUge));
  const Attributes& load = At(module, 5).attributes;
  EXPECT_EQ(load.cache, CacheModifier::kCg);
  EXPECT_EQ(load.eviction, EvictionPolicy::kFirst);
  EXPECT_TRUE(load.has(kVolatile));
  const Attributes& atomic = At(module, 6).attributes;
  EXPECT_EQ(atomic.atomic, AtomicKind::kFadd);
  EXPECT_EQ(atomic.semantic, MemorySemantic::kRelease);
  EXPECT_EQ(atomic.scope, MemoryScope::kSystem);
  EXPECT_TRUE(At(module, 7).attributes.has(kFastMath));
  EXPECT_TRUE(At(module, 8).attributes.has(kNoSignedWrap));
  EXPECT_EQ(module.hints.at(At(module, 8).attributes.hints).contiguity, std::vector<int64_t>{16});
  EXPECT_EQ(At(module, 9).attributes.rounding, Rounding::kTowardZero);
  EXPECT_EQ(At(module, 10).attributes.axis, 2);
}

TEST(ParserTest, ReadsStringsWithEscapes) {
  const Module module = Parse(R"(
    tt.assert %c, "a \22quoted\22\0A line %x {" : i1
    tt.print " n: " {hex = true, isSigned = array<i32: 1, 0>} : %n, %f : i32, f32
    %d = tt.elementwise_inline_asm "mov.u32 $0, $1;" {constraints = "=r,r", packed_element = 1 : i32, pure = false} %n : i32 -> i32)");
  EXPECT_EQ(At(module, 0).attributes.text, "a \"quoted\"\n line %x {");
  EXPECT_TRUE(At(module, 1).attributes.has(kHex));
  EXPECT_EQ(At(module, 1).attributes.is_signed.size(), 2u);
  EXPECT_EQ(At(module, 2).attributes.text, "mov.u32 $0, $1;");
  EXPECT_EQ(At(module, 2).attributes.constraints, "=r,r");
  EXPECT_FALSE(At(module, 2).attributes.has(kPure));
}

TEST(ParserTest, LoopsTakeTheirInitialValuesAndEndWithAYield) {
  const Module module = Parse(R"(
    %s:2 = scf.for %i = %n to %n step %n iter_args(%a = %f, %b = %n) -> (f32, i32)  : i32 {
      scf.if %c {
        gpu.barrier
      }
      scf.yield %a, %i : f32, i32
    } {tt.num_stages = 3 : i32}
    %t = arith.addf %s#0, %f : f32)");
  const Operation& loop = At(module, 0);
  EXPECT_EQ(loop.operands.size(), 5u);
  EXPECT_EQ(loop.results.size(), 2u);
  EXPECT_EQ(loop.regions[0].blocks[0].arguments.size(), 3u);
  const Operation& branch = loop.regions[0].blocks[0].operations[0];
  EXPECT_EQ(branch.opcode, Opcode::kIf);
  EXPECT_EQ(branch.regions[0].blocks[0].operations.back().opcode, Opcode::kYield);
  EXPECT_TRUE(branch.regions[1].blocks.empty());
  EXPECT_EQ(At(module, 1).operands[0], loop.results[0]);
}

TEST(ParserTest, BranchesNameBlocksInTheOrderOfTheText) {
  const auto module = ParseTtir(ModuleAround(R"(
    cf.cond_br %c, ^bb7(%n : i32), ^bb3
  ^bb3:
    cf.br ^bb7(%n : i32)
  ^bb7(%i: i32 loc(unknown)):  // 2 preds: ^bb0, ^bb3
    tt.return)"));
  ASSERT_TRUE(module.ok()) << module.status();
  const auto& blocks = module->functions[0].body.blocks;
  ASSERT_EQ(blocks.size(), 3u);
  const Operation& branch = blocks[0].operations[0];
  ASSERT_EQ(branch.successors.size(), 2u);
  EXPECT_EQ(branch.successors[0].block, 2);
  EXPECT_EQ(branch.successors[0].first, 1);
  EXPECT_EQ(branch.successors[0].count, 1);
  EXPECT_EQ(branch.successors[1].block, 1);
}

TEST(ParserTest, StoresToADescriptorKeepTheOrderOfTheDefinition) {
  const Module module = Parse(R"(
    %l = arith.extsi %n : i32 to i64
    %d = tt.make_tensor_descriptor %p, [%n, %n], [%l, %l] {padding = 2 : i32} : <f32>, <tensor<16x16xf32>>
    %v = tt.descriptor_load %d[%n, %n] : !tt.tensordesc<tensor<16x16xf32>> -> tensor<16x16xf32>
    tt.descriptor_store %d[%n, %n], %v : !tt.tensordesc<tensor<16x16xf32>>, tensor<16x16xf32>
    tt.descriptor_reduce max, %d[%n, %n], %v : !tt.tensordesc<tensor<16x16xf32>>, tensor<16x16xf32>)");
  EXPECT_EQ(At(module, 1).attributes.padding, Padding::kNan);
  EXPECT_EQ(At(module, 3).operands[1], At(module, 2).results[0]);
  EXPECT_EQ(At(module, 4).operands[1], At(module, 2).results[0]);
  EXPECT_EQ(At(module, 4).attributes.reduce, ReduceKind::kMax);
}

// Each pair says the same in the pretty and in the generic form.
TEST(ParserTest, GenericFormsAreThePrettyOnes) {
  const std::pair<std::string, std::string> pairs[] = {
      {"%y = arith.addi %n, %n overflow<nsw> : i32",
       "%y = \"arith.addi\"(%n, %n) <{overflowFlags = #arith.overflow<nsw>}> : (i32, i32) -> i32"},
      {"%y = arith.cmpf olt, %f, %f : f32",
       "%y = \"arith.cmpf\"(%f, %f) <{fastmath = #arith.fastmath<none>, predicate = 4 : i64}> : "
       "(f32, f32) -> i1"},
      {"%y = arith.constant dense<7> : tensor<4xi32>",
       "%y = \"arith.constant\"() <{value = dense<7> : tensor<4xi32>}> : () -> tensor<4xi32>"},
      {"%y = tt.load %p, %c, %f : !tt.ptr<f32>",
       "%y = \"tt.load\"(%p, %c, %f) <{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : "
       "i32, isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : "
       "(!tt.ptr<f32>, i1, f32) -> f32"},
      {"%y = tt.atomic_rmw exch, relaxed, cta, %q, %n : (!tt.ptr<i32>, i32) -> i32",
       "%y = \"tt.atomic_rmw\"(%q, %n) <{atomic_rmw_op = 10 : i32, scope = 2 : i32, sem = 1 : "
       "i32}> : (!tt.ptr<i32>, i32) -> i32"},
      {"%y = scf.if %c -> (i32) {\n scf.yield %n : i32\n } else {\n scf.yield %n : i32\n }",
       "%y = \"scf.if\"(%c) ({\n \"scf.yield\"(%n) : (i32) -> ()\n}, {\n \"scf.yield\"(%n) : "
       "(i32) -> ()\n}) : (i1) -> i32"},
      {"%y = scf.for %i = %n to %n step %n iter_args(%a = %f) -> (f32) : i32 {\n"
       "scf.yield %a : f32\n}",
       "%y = \"scf.for\"(%n, %n, %n, %f) ({\n^bb0(%i: i32, %a: f32):\n"
       "\"scf.yield\"(%a) : (f32) -> ()\n}) : (i32, i32, i32, f32) -> f32"},
  };
  for (const auto& [pretty, generic] : pairs) {
    const Module a = Parse(pretty);
    const Module b = Parse(generic);
    EXPECT_EQ(ToString(a), ToString(b));
    const Attributes& x = At(a, 0).attributes;
    const Attributes& y = At(b, 0).attributes;
    EXPECT_EQ(x.flags, y.flags) << generic;
    EXPECT_EQ(x.predicate, y.predicate) << generic;
    EXPECT_EQ(x.atomic, y.atomic) << generic;
    EXPECT_EQ(x.semantic, y.semantic) << generic;
    EXPECT_EQ(x.scope, y.scope) << generic;
  }
}

TEST(ParserTest, ReadsAModuleInGenericForm) {
  const auto module = ParseTtir(R"("builtin.module"() ({
    "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f32>, i1) -> (), sym_name = "k", sym_visibility = "public"}> ({
    ^bb0(%p: !tt.ptr<f32>, %c: i1):
      "cf.cond_br"(%c)[^bb1, ^bb2] <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (i1) -> ()
    ^bb1:
      "tt.return"() : () -> ()
    ^bb2:
      "tt.return"() : () -> ()
    }) {noinline = false} : () -> ()
  }) : () -> ()
)");
  ASSERT_TRUE(module.ok()) << module.status();
  const Function& function = module->functions[0];
  EXPECT_EQ(function.name, "k");
  EXPECT_EQ(module->hints.at(function.arguments[0].hints).divisibility, std::vector<int64_t>{16});
  EXPECT_EQ(function.body.blocks.size(), 3u);
}

TEST(ParserTest, AnUnknownOperationIsNamedWithItsSourceLine) {
  EXPECT_EQ(ErrorOf("%x = tt.xyz %n : i32 loc(#loc1)"),
            "not executable: tt.xyz, line 12 of kernel.py");
  EXPECT_EQ(ErrorOf("%x = \"tt.xyz\"(%n) : (i32) -> i32 loc(#loc1)"),
            "not executable: tt.xyz, line 12 of kernel.py");
  EXPECT_EQ(ErrorOf("ttg.local_barrier"),
            "not executable: ttg.local_barrier, line 5 of the TTIR text");
}

TEST(ParserTest, LocationsLeadToTheInnermostPlace) {
  const Module module = Parse(
      "gpu.barrier loc(callsite(\"x\"(\"lib.py\":7:1) at #loc1))\n"
      "gpu.barrier loc(fused[unknown, \"a.py\":2:1, \"b.py\":3:1])\n"
      "gpu.barrier loc(\"name\")\ngpu.barrier loc(unknown)\ngpu.barrier loc(\"acc\"(#loc1))");
  EXPECT_EQ(module.PlaceOf(At(module, 0)), "line 7 of lib.py");
  ASSERT_EQ(module.locations.FramesOf(At(module, 0).location).size(), 2u);
  EXPECT_EQ(module.locations.FramesOf(At(module, 0).location)[1].line, 12);
  EXPECT_EQ(module.PlaceOf(At(module, 1)), "line 2 of a.py");
  EXPECT_EQ(module.PlaceOf(At(module, 2)), "unknown line");
  EXPECT_EQ(module.PlaceOf(At(module, 3)), "unknown line");
  EXPECT_EQ(module.locations.NameOf(At(module, 4).location), "acc");
}

TEST(ParserTest, ErrorsNameLineAndColumn) {
  EXPECT_EQ(ErrorOf("%x = arith.addi %n, %y : i32"),
            "TTIR text line 5, column 21: %y is used before it is defined");
  EXPECT_EQ(ErrorOf("%x = arith.addi %n, %f : i32"),
            "TTIR text line 5, column 21: %f has the type f32 and not i32");
  EXPECT_EQ(ErrorOf("%x = arith.cmpi foo, %n, %n : i32"),
            "TTIR text line 5, column 17: expected a word for predicate but found 'foo'");
  EXPECT_EQ(ErrorOf("%x = arith.addi %n, %n {axis2 = 1 : i32} : i32"),
            "TTIR text line 5, column 25: arith.addi has an attribute \"axis2\" that is unknown or "
            "has a wrong value");
  EXPECT_EQ(ErrorOf("%x, %y = arith.addi %n, %n : i32"),
            "TTIR text line 6, column 1: arith.addi has 1 results but 2 names for them");
  EXPECT_TRUE(absl::StrContains(ErrorOf("%n = arith.addi %n, %n : i32"), "%n is defined twice"));
  EXPECT_TRUE(absl::StrContains(ParseTtir(ModuleAround("cf.br ^bb9")).status().message(),
                                "the block ^bb9 is not defined"));
  EXPECT_TRUE(absl::StrContains(ErrorOf("%x = ub.poison : tensor<3xf32>"), "no powers of two"));
  EXPECT_TRUE(absl::StrContains(ErrorOf("%x = ub.poison : tensor<2097152xf32>"), "1048576"));
  EXPECT_TRUE(absl::StrContains(ErrorOf("%x = ub.poison : tensor<4294967295x4294967295xf32>"),
                                "no powers of two"));
  EXPECT_TRUE(absl::StrContains(ErrorOf("%x = ub.poison : tensor<16xf32, #blocked>"), "layout"));
  EXPECT_TRUE(absl::StrContains(ErrorOf("%x = ub.poison : !tt.ptr<f32, 3>"), "global memory"));
}

TEST(ParserTest, AliasesMustEnd) {
  EXPECT_FALSE(ParseTtir("#loc = loc(#loc)\nmodule {\n}\n").ok());
  EXPECT_FALSE(
      ParseTtir("#loc = loc(\"x\"(#loc1))\n#loc1 = loc(callsite(#loc at #loc))\nmodule {\n}").ok());
  EXPECT_FALSE(ParseTtir("#loc = loc(#loc9)\nmodule {\n}\n").ok());
  EXPECT_TRUE(ParseTtir("#loc = loc(unknown)\nmodule {\n} loc(#loc)\n").ok());
}

TEST(ParserTest, RegionsHideTheirNamesFromEachOther) {
  Parse(R"(
    scf.if %c {
      %x = arith.addi %n, %n : i32
    }
    scf.if %c {
      %x = arith.addf %f, %f : f32
    })");
  EXPECT_TRUE(absl::StrContains(ErrorOf(R"(
    scf.if %c {
      %x = arith.addi %n, %n : i32
    }
    %y = arith.addi %x, %n : i32)"),
                                "%x is used before it is defined"));
}

}  // namespace
}  // namespace tritonrl::ttir
