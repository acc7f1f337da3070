#include "tasks/composition.h"

#include <cmath>
#include <map>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tritonrl {
namespace {

constexpr Family kFamilies[] = {Family::kElementwise, Family::kReduction, Family::kNormalization,
                                Family::kMatmul, Family::kLoss};

TEST(CompositionTest, DrawsAreAFunctionOfTheKey) {
  for (Family family : kFamilies) {
    Philox a(5), b(5), c(6);
    const std::string key = DrawComposition(family, 2, &a).Key();
    EXPECT_EQ(key, DrawComposition(family, 2, &b).Key());
    bool differs = false;
    for (int i = 0; i < 20; ++i) differs |= key != DrawComposition(family, 2, &c).Key();
    EXPECT_TRUE(differs);
  }
}

TEST(CompositionTest, LevelsAndCoresFitTheFamily) {
  Philox random(1);
  for (Family family : kFamilies) {
    for (int i = 0; i < 200; ++i) {
      const Composition one = DrawComposition(family, 1, &random);
      EXPECT_EQ(one.level(), 1);
      EXPECT_EQ(one.core_index(), family == Family::kElementwise ? -1 : 0);
      const Composition many = DrawComposition(family, 2, &random);
      EXPECT_EQ(many.level(), 2);
      EXPECT_LE(many.uses.size(), 5);
      const int core = many.core_index();
      EXPECT_EQ(core < 0, family == Family::kElementwise) << many.Key();
      if (family == Family::kMatmul) {
        EXPECT_EQ(core, 0) << many.Key();
      }
      if (family == Family::kLoss) {
        EXPECT_EQ(core + 1, many.uses.size()) << many.Key();
      }
    }
  }
}

TEST(CompositionTest, NoSecondInputBehindAReductionOrProduct) {
  Philox random(2);
  for (Family family : {Family::kReduction, Family::kMatmul, Family::kLoss}) {
    for (int i = 0; i < 300; ++i) {
      const Composition drawn = DrawComposition(family, 2, &random);
      const int from = family == Family::kLoss ? 0 : drawn.core_index() + 1;
      for (size_t k = from; k < drawn.uses.size(); ++k) {
        if (drawn.uses[k].elementwise == nullptr) continue;
        EXPECT_FALSE(drawn.uses[k].elementwise->uses_y()) << drawn.Key();
      }
    }
  }
}

TEST(CompositionTest, OneInTenIsHeldOutInEveryFamilyAndLevel) {
  Philox random(3);
  for (Family family : kFamilies) {
    for (int level : {1, 2}) {
      std::map<std::string, bool> seen;
      for (int i = 0; i < 1500; ++i) {
        const Composition drawn = DrawComposition(family, level, &random);
        seen[drawn.Key()] = IsHeldOut(drawn);
      }
      int held_out = 0;
      for (const auto& [key, held] : seen) held_out += held;
      EXPECT_GE(held_out, 1) << static_cast<int>(family) << " level " << level;
      EXPECT_LE(held_out, seen.size() / 3 + 1);
      if (seen.size() > 500) {
        EXPECT_NEAR(held_out, seen.size() / 10.0, 4 * std::sqrt(seen.size() * 0.09));
      }
    }
  }
}

TEST(CompositionTest, FamiliesFollowTheirWeights) {
  Philox random(4);
  std::map<Family, int> counts;
  for (int i = 0; i < 12000; ++i) ++counts[DrawFamily(&random)];
  EXPECT_NEAR(counts[Family::kElementwise], 3000, 200);
  EXPECT_NEAR(counts[Family::kReduction], 3000, 200);
  EXPECT_NEAR(counts[Family::kNormalization], 3000, 200);
  EXPECT_NEAR(counts[Family::kMatmul], 2000, 200);
  EXPECT_NEAR(counts[Family::kLoss], 1000, 150);
}

TEST(ShapeTest, StaysInRange) {
  Philox random(5);
  int powers = 0;
  for (int i = 0; i < 1000; ++i) {
    const TaskShape rows = DrawShape(Family::kReduction, &random);
    EXPECT_GE(rows.rows, 8);
    EXPECT_LE(rows.rows, 32);
    EXPECT_GE(rows.cols, 33);
    EXPECT_LE(rows.cols, 512);
    powers += (rows.cols & (rows.cols - 1)) == 0;
    const TaskShape product = DrawShape(Family::kMatmul, &random);
    for (int side : {product.rows, product.cols, product.inner}) {
      EXPECT_EQ(side % 16, 0);
      EXPECT_GE(side, 32);
      EXPECT_LE(side, 128);
    }
  }
  EXPECT_NEAR(powers, 505, 70);
}

TEST(OperatorsTest, HardOnesHaveTwoWrongForms) {
  std::set<std::string> hard, names;
  for (const Elementwise& op : ElementwiseOperators()) {
    EXPECT_TRUE(names.insert(op.name).second) << op.name;
    ASSERT_FALSE(op.wrong.empty()) << op.name;
    for (const std::string& wrong : op.wrong) EXPECT_NE(wrong, op.kernel);
    if (op.hard()) hard.insert(op.name);
  }
  EXPECT_EQ(names.size(), 22);
  EXPECT_THAT(hard,
              testing::ElementsAre("clamp", "gelu", "hardswish", "leaky_relu", "softplus", "tanh"));
  for (const Core& core : CoreOperators()) {
    EXPECT_TRUE(names.insert(core.name).second) << core.name;
    EXPECT_EQ(core.kernel.empty(), core.kind == CoreKind::kMatmul) << core.name;
    EXPECT_TRUE(core.kernel.empty() || core.wrong != core.kernel) << core.name;
  }
}

TEST(OperatorsTest, ConstantsAreFilledIn) {
  EXPECT_EQ(WithConstants("min(max(x, $1), $2)", {"-1", "0.5"}), "min(max(x, -1), 0.5)");
  EXPECT_EQ(WithConstants("x", {}), "x");
}

}  // namespace
}  // namespace tritonrl
