// Checks the graphs with the validation of cuDNN's front end, which needs no GPU.

#include "model/cuda/attention/attention_graph.h"

#include <gtest/gtest.h>

#include <string>

namespace tritonrl {
namespace {

constexpr int kHopper = 90, kAmpere = 80;

// The heads of Qwen3-8B, with the strides of its fused rows.
AttentionShape Shape8b(bool backward, bool dense) {
  return {.backward = backward,
          .dense = dense,
          .sequences = dense ? 1 : 4,
          .max_length = 4096,
          .heads = 32,
          .keys = 8,
          .dim = 128,
          .strides = {5120, 5120, 6144, 4096, 4096, 6144, 6144, 6144}};
}

// Returns the front end's reason to reject the graph for this compute capability; empty if it
// accepts the graph.
std::string Refusal(const AttentionShape& shape, int capability) {
  return RefusalOf(MakeAttentionGraph(shape, capability));
}

TEST(AttentionPlanTest, PackedAndSingleSequencesAreTaken) {
  for (const bool backward : {false, true}) {
    for (const bool dense : {false, true}) {
      EXPECT_EQ(Refusal(Shape8b(backward, dense), kHopper), "") << backward << dense;
    }
  }
  for (const int64_t length : {2, 127, 300, 18432}) {
    AttentionShape shape = Shape8b(true, true);
    shape.max_length = length;
    shape.deterministic = true;
    EXPECT_EQ(Refusal(shape, kHopper), "") << length;
    EXPECT_EQ(Refusal(shape, kAmpere), "") << length;
  }
}

TEST(AttentionPlanTest, AnOffsetForEachStride) {
  const AttentionPlan forward = MakeAttentionGraph(Shape8b(false, false));
  EXPECT_EQ(forward.offsets.size(), 4);  // 5120, 6144, 4096 and 32 of the log-sum-exps
  EXPECT_TRUE(forward.offsets.contains(32));
  EXPECT_TRUE(MakeAttentionGraph(Shape8b(true, true)).offsets.empty());
}

// The limits of cuDNN because of which CudnnAttention runs one call per sequence on some GPUs and
// handles single tokens itself. If one of these checks fails, cuDNN now supports the case. cuDNN
// also rejects, with a reason, query heads that are no multiple of the key heads.
TEST(AttentionPlanTest, WhatCudnnRefuses) {
  EXPECT_NE(Refusal(Shape8b(true, false), kAmpere), "");
  AttentionShape single = Shape8b(true, true);
  single.max_length = 1;
  EXPECT_NE(Refusal(single, kHopper), "");
  AttentionShape uneven = Shape8b(false, false);
  uneven.keys = 5;
  EXPECT_NE(Refusal(uneven, kHopper), "");
}

}  // namespace
}  // namespace tritonrl
