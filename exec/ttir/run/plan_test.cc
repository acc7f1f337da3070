#include "exec/ttir/run/plan.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace tritonrl::ttir {
namespace {

Step StepOf(std::vector<int32_t> in, std::vector<int32_t> out) {
  Step step;
  step.in.assign(in.begin(), in.end());
  step.out.assign(out.begin(), out.end());
  return step;
}

bool Overlap(const Plan& plan, const std::vector<Buffer>& buffers, int a, int b) {
  return plan.offsets[a] < plan.offsets[b] + buffers[b].bytes &&
         plan.offsets[b] < plan.offsets[a] + buffers[a].bytes;
}

TEST(PlanTest, ABufferIsFreeBehindItsLastUse) {
  const std::vector<Buffer> buffers(3, Buffer{4096, 1});
  Code prologue;
  Code body;
  body.steps.push_back(StepOf({}, {0}));
  body.steps.push_back(StepOf({0}, {1}));
  body.steps.push_back(StepOf({1}, {2}));
  const Plan plan = PlanBuffers(buffers, &prologue, &body);
  EXPECT_FALSE(Overlap(plan, buffers, 0, 1));
  EXPECT_FALSE(Overlap(plan, buffers, 1, 2));
  EXPECT_TRUE(Overlap(plan, buffers, 0, 2));
  EXPECT_EQ(plan.arena_bytes, 2 * (4096 + kPlaceGap));
  EXPECT_EQ(body.steps[1].in[0], plan.offsets[0]);
}

TEST(PlanTest, WhatALoopReadsSurvivesAllIterations) {
  const std::vector<Buffer> buffers(3, Buffer{4096, 1});
  Code prologue;
  Code body;
  body.steps.push_back(StepOf({}, {0}));
  Step loop;
  loop.codes.resize(1);
  loop.codes[0].steps.push_back(StepOf({0}, {1}));  // the last use in the text
  loop.codes[0].steps.push_back(StepOf({1}, {2}));
  loop.codes[0].steps.push_back(StepOf({2}, {}));
  body.steps.push_back(std::move(loop));
  const Plan plan = PlanBuffers(buffers, &prologue, &body);
  EXPECT_FALSE(Overlap(plan, buffers, 0, 1));
  EXPECT_FALSE(Overlap(plan, buffers, 0, 2));
}

TEST(PlanTest, ValuesOfSeveralBlocksOfAGraphSurviveIt) {
  const std::vector<Buffer> buffers(2, Buffer{4096, 1});
  Code prologue;
  Code body;
  Step graph;
  graph.is_graph = true;
  graph.codes.resize(3);
  graph.codes[0].steps.push_back(StepOf({}, {0}));
  graph.codes[1].steps.push_back(StepOf({0}, {}));
  graph.codes[2].steps.push_back(StepOf({}, {1}));  // runs between the two others, perhaps
  body.steps.push_back(std::move(graph));
  const Plan plan = PlanBuffers(buffers, &prologue, &body);
  EXPECT_FALSE(Overlap(plan, buffers, 0, 1));
}

TEST(PlanTest, BuffersOfThePrologueAndScalarsKeepTheirPlaces) {
  const std::vector<Buffer> buffers = {{4096, 0}, {4096, 1}, {4, 1}, {4, 1}};
  Code prologue;
  prologue.steps.push_back(StepOf({}, {0}));
  Code body;
  body.steps.push_back(StepOf({0}, {2}));
  body.steps.push_back(StepOf({2}, {3}));
  body.steps.push_back(StepOf({3}, {1}));
  const Plan plan = PlanBuffers(buffers, &prologue, &body);
  for (int a = 0; a < 4; ++a) {
    for (int b = 0; b < a; ++b) EXPECT_FALSE(Overlap(plan, buffers, a, b)) << a << " and " << b;
  }
}

TEST(PlanTest, RenamingReachesInnerCodes) {
  Code code;
  Step outer = StepOf({1}, {2});
  outer.codes.resize(1);
  outer.codes[0].steps.push_back(StepOf({2}, {3}));
  code.steps.push_back(std::move(outer));
  RenameBuffer(2, 5, &code);
  EXPECT_TRUE(Touches(code, 5));
  EXPECT_FALSE(Touches(code, 2));
  EXPECT_EQ(code.steps[0].codes[0].steps[0].in[0], 5);
}

}  // namespace
}  // namespace tritonrl::ttir
