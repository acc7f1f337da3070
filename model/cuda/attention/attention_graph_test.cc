// What cuDNN's front end says of the graphs, which it tells without a GPU.

#include "model/cuda/attention/attention_graph.h"

#include <gtest/gtest.h>

#include <string>

namespace tritonrl {
namespace {

constexpr int kHopper = 90, kAmpere = 80;

// Heads as Qwen3-8B's lie in fused rows.
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

// Empty if the front end takes the graph for that compute capability, else its reason.
std::string Refusal(const AttentionShape& shape, int capability) {
  const AttentionPlan plan = MakeAttentionGraph(shape, capability);
  auto error = plan.graph->validate();
  return error.is_good() ? "" : error.get_message();
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

// Why CudnnAttention goes one by one on some GPUs and does not give cuDNN single tokens: if one of
// these fails, cuDNN has learnt it. Heads that do not fit are refused with a reason.
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
