#include "model/memory/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "base/file.h"
#include "base/runfiles.h"
#include "model/testing/test_util.h"

namespace tritonrl {
namespace {

constexpr double kGib = 1 << 30;

ModelConfig Shape(const std::string& name) {
  const auto path = Runfile("model/configs/" + name + ".json");
  EXPECT_TRUE(path.ok()) << path.status();
  const auto text = ReadFile(*path);
  EXPECT_TRUE(text.ok()) << text.status();
  const auto config = ParseModelConfig(*text, *path);
  EXPECT_TRUE(config.ok()) << config.status();
  return *config;
}

MemoryLimit Limit(double gib, int64_t reserve = kDefaultReserve) {
  return {static_cast<int64_t>(gib * kGib), reserve};
}

int64_t LayersWith(const MemoryPlan& plan, LayerTensor tensor) {
  return std::count_if(plan.layers.begin(), plan.layers.end(),
                       [&](RecomputeSet set) { return set.Has(tensor); });
}

ResidentMemory WeightsAndGradients(const ModelConfig& config) {
  ResidentMemory held = ResidentMemoryForTraining(config, {});
  held.optimizer = 0;
  return held;
}

TEST(MemoryPlanTest, PeaksMeasuredOnAnH200) {
  const ModelConfig config = Shape("qwen3_8b");
  // The expected values are the allocator's peaks of step_bench and update_bench with bf16 weights
  // (docs/performance.md). The first were measured when norms and SwiGLU were always recomputed.
  const std::vector<RecomputeSet> cheap(
      config.num_layers, RecomputeSet().With(LayerTensor::kActivated).With(LayerTensor::kNorms));
  const auto peak = [&](const StepShape& step, const ResidentMemory& held) {
    return static_cast<double>(held.total() + PeakStepMemory(config, step, cheap).bytes) / kGib;
  };
  const StepShape long_step = {.tokens = 16384, .deterministic = false};
  EXPECT_NEAR(peak(long_step, WeightsAndGradients(config)), 101.143, 0.02);

  // Two GPUs hold half of the optimizer state and of the gradients each.
  const ResidentMemory half = ResidentMemoryForTraining(
      config,
      {.ranks = 2, .zero_stage = 2, .ring_buffer_bytes = static_cast<int64_t>(2.695 * kGib)});
  EXPECT_NEAR(peak({.tokens = 8192, .deterministic = false}, half), 107.52, 0.2);

  // Nothing is recomputed.
  for (const auto& [tokens, gib] : {std::pair(16384, 123.641), {4096, 66.706}}) {
    const auto plan = PlanMemory(config, {.tokens = tokens, .deterministic = false},
                                 WeightsAndGradients(config), {});
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_NEAR(static_cast<double>(plan->peak_bytes) / kGib, gib, 0.02);
    EXPECT_EQ(plan->recompute_share, 0);
  }
  // Deterministic attention copies each sequence.
  for (const auto& [step, gib] :
       {std::pair(StepShape{.tokens = 12000}, 103.327),
        {StepShape{.tokens = 16384, .target_rows = 16379, .max_length = 8192}, 123.639}}) {
    const auto plan = PlanMemory(config, step, WeightsAndGradients(config), {});
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_NEAR(static_cast<double>(plan->peak_bytes) / kGib, gib, 0.02);
  }
  const auto shared = PlanMemory(config, {.tokens = 8192, .deterministic = false}, half, {});
  ASSERT_TRUE(shared.ok()) << shared.status();
  EXPECT_NEAR(static_cast<double>(shared->peak_bytes) / kGib, 118.767, 0.2);
}

// In this model attention takes the most memory.
TEST(MemoryPlanTest, CopiesOfASequenceAreCounted) {
  ModelConfig config = Shape("qwen3_8b");
  config.intermediate_size = 128;
  const std::vector<RecomputeSet> all(config.num_layers, RecomputeSet::All());
  const auto peak = [&](int64_t longest, bool per_sequence) {
    const StepShape step = {.tokens = 18432,
                            .target_rows = 1,
                            .max_length = longest,
                            .deterministic = false,
                            .per_sequence = per_sequence};
    return PeakStepMemory(config, step, all).bytes;
  };
  // The difference is the copy of q, k, v, out, their gradients and the log-sum-exps; cuDNN's own
  // memory is the same in both.
  EXPECT_EQ(peak(18432, true) - peak(18432, false), 18432 * (2 * (6144 + 4096) * 2 + 32 * 4));
  // One more token adds a sixteenth of 16,384 rows to the copy.
  EXPECT_GT(peak(9217, true), peak(9216, true));
  EXPECT_EQ(peak(9217, true), peak(10240, true));
}

// Longer sequences are divided into more calls, which take less memory each, but shorter sequences
// must still fit.
TEST(MemoryPlanTest, LongerSequencesToComeNeverNeedLess) {
  ModelConfig config = Shape("qwen3_8b");
  config.intermediate_size = 128;
  const std::vector<RecomputeSet> all(config.num_layers, RecomputeSet::All());
  int64_t before = 0;
  for (int64_t longest = 128; longest <= 18432; longest += 128) {
    const StepShape step = {.tokens = 18432, .target_rows = 1, .max_length = longest};
    const int64_t peak = PeakStepMemory(config, step, all).bytes;
    EXPECT_GE(peak, before) << longest;
    before = peak;
  }
}

TEST(MemoryPlanTest, BytesOfALayerAtQwen8B) {
  const ModelConfig config = Shape("qwen3_8b");
  const StepShape step = {.tokens = 3};
  EXPECT_EQ(SavedActivationBytes(config, step, RecomputeSet()), 3 * 137'512);
  EXPECT_EQ(TensorBytes(config, step, LayerTensor::kActivated), 3 * 24'576);
  EXPECT_EQ(TensorBytes(config, step, LayerTensor::kNorms), 3 * 16'384);
  EXPECT_EQ(TensorBytes(config, step, LayerTensor::kRotatedHeads), 3 * 10'400);
  EXPECT_EQ(TensorBytes(config, step, LayerTensor::kGateUp), 3 * 49'152);
  EXPECT_EQ(TensorBytes(config, step, LayerTensor::kPostAttention), 3 * 8'192);
  EXPECT_EQ(TensorBytes(config, step, LayerTensor::kQkv), 3 * 12'288);
  EXPECT_EQ(TensorBytes(config, step, LayerTensor::kAttention), 3 * 8'320);
  EXPECT_EQ(SavedActivationBytes(config, step, RecomputeSet::All()), 3 * 8'200);
}

// At ZeRO-1 the longest batch cannot keep all of SwiGLU's outputs; nothing else is recomputed.
TEST(MemoryPlanTest, NothingIsRecomputedOnAnH200) {
  const ModelConfig config = Shape("qwen3_8b");
  for (const int64_t tokens : {16384, 18432}) {
    const ResidentMemory held = ResidentMemoryForTraining(config, {.ranks = 8, .zero_stage = 2});
    const auto plan = PlanMemory(config, {.tokens = tokens}, held, Limit(139.8));
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->layers, std::vector<RecomputeSet>(36));
    EXPECT_LT(static_cast<double>(plan->peak_bytes), 137.8 * kGib);
    EXPECT_TRUE(
        absl::StrContains(DescribePlan(config, {.tokens = tokens}, held, Limit(139.8), *plan),
                          "nothing is recomputed"));
  }
  const ResidentMemory held =
      ResidentMemoryForTraining(config, {.ranks = 8, .zero_stage = 1, .state_bytes = 16});
  const auto plan = PlanMemory(config, {.tokens = 18432}, held, Limit(139.8));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_GT(LayersWith(*plan, LayerTensor::kActivated), 0);
  for (const LayerTensor tensor : kLayerTensors) {
    if (tensor == LayerTensor::kActivated) continue;
    EXPECT_EQ(LayersWith(*plan, tensor), 0);
  }
  EXPECT_LT(plan->recompute_share, 0.005);
}

TEST(MemoryPlanTest, LongestBatchOfThePaperFits80GB) {
  const ModelConfig config = Shape("qwen3_8b");
  const ResidentMemory held = ResidentMemoryForTraining(config, {.ranks = 8, .zero_stage = 1});
  const StepShape step = {.tokens = 18432};
  const MemoryLimit limit = Limit(79.1);
  const auto plan = PlanMemory(config, step, held, limit);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_LE(plan->peak_bytes, limit.bytes - limit.reserve);
  EXPECT_EQ(plan->peak_bytes, held.total() + PeakStepMemory(config, step, plan->layers).bytes);
  // Cheap tensors are dropped first; attention, the most expensive one, is kept.
  EXPECT_GE(LayersWith(*plan, LayerTensor::kActivated), 35);
  EXPECT_GE(LayersWith(*plan, LayerTensor::kNorms), 35);
  EXPECT_GE(LayersWith(*plan, LayerTensor::kRotatedHeads), 35);
  EXPECT_GE(LayersWith(*plan, LayerTensor::kGateUp), 35);
  EXPECT_EQ(LayersWith(*plan, LayerTensor::kAttention), 0);
  EXPECT_GT(plan->recompute_share, 0.05);
  EXPECT_LT(plan->recompute_share, 0.25);
  const std::string text = DescribePlan(config, step, held, limit, *plan);
  EXPECT_TRUE(absl::StrContains(text, "gate and up projections")) << text;
}

TEST(MemoryPlanTest, NoDropIsIdle) {
  const ModelConfig config = Shape("qwen3_8b");
  const ResidentMemory held = WeightsAndGradients(config);
  const StepShape step = {.tokens = 16384};
  double before = 1;
  for (const double gib : {60.0, 64.0, 72.0, 80.0, 88.0, 96.0, 101.0, 112.0, 128.0}) {
    const MemoryLimit limit = Limit(gib, 0);
    const auto plan = PlanMemory(config, step, held, limit);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_LE(plan->peak_bytes, limit.bytes);
    EXPECT_LE(plan->recompute_share, before);
    before = plan->recompute_share;
    // If any single dropped tensor is kept instead, the step no longer fits.
    for (size_t i = 0; i < plan->layers.size(); ++i) {
      for (const LayerTensor tensor : kLayerTensors) {
        if (!plan->layers[i].Has(tensor)) continue;
        std::vector<RecomputeSet> layers = plan->layers;
        layers[i] = layers[i].Without(tensor);
        EXPECT_GT(held.total() + PeakStepMemory(config, step, layers).bytes, limit.bytes) << gib;
      }
    }
  }
  EXPECT_EQ(before, 0);
}

TEST(MemoryPlanTest, ABatchThatCannotFitIsRefusedWithTheNumbers) {
  const ModelConfig config = Shape("qwen3_8b");
  const ResidentMemory held = ResidentMemoryForTraining(config, {.ranks = 8, .zero_stage = 1});
  const auto refused = PlanMemory(config, {.tokens = 65536}, held, Limit(79.1));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  const std::string message(refused.status().message());
  for (const char* const part :
       {"65536 tokens needs at least", "weights 15.26 GiB", "gradients 30.51 GiB",
        "optimizer 11.44 GiB", "there are 79.10 GiB", "at most "}) {
    EXPECT_TRUE(absl::StrContains(message, part)) << message;
  }
  const int64_t largest = LargestBatch(config, {}, held, Limit(79.1));
  EXPECT_TRUE(absl::StrContains(message, absl::StrCat("at most ", largest, " tokens fit")));
  EXPECT_TRUE(PlanMemory(config, {.tokens = largest}, held, Limit(79.1)).ok());
  EXPECT_FALSE(PlanMemory(config, {.tokens = largest + 1}, held, Limit(79.1)).ok());

  const ResidentMemory whole = ResidentMemoryForTraining(config, {});
  const auto none = PlanMemory(config, {.tokens = 1}, whole, Limit(79.1));
  EXPECT_TRUE(absl::StrContains(none.status().message(), "not even one token")) << none.status();
}

TEST(MemoryPlanTest, StagesShareWhatTheySay) {
  const ModelConfig config = SmallConfig();
  const int64_t p = config.NumParameters();
  const ResidentMemory none = ResidentMemoryForTraining(config, {.ranks = 4});
  EXPECT_EQ(none.total(), p * (2 + 4 + 12));
  const ResidentMemory one = ResidentMemoryForTraining(config, {.ranks = 4, .zero_stage = 1});
  EXPECT_EQ(one.gradients, 4 * p);
  EXPECT_EQ(one.optimizer, 3 * p);
  const ResidentMemory two = ResidentMemoryForTraining(config, {.ranks = 4, .zero_stage = 2});
  EXPECT_EQ(two.gradients, p);
  EXPECT_EQ(
      ResidentMemoryForTraining(config, {.ranks = 4, .zero_stage = 2, .ring_buffer_bytes = 1000})
          .gradients,
      p + 1000);
  EXPECT_EQ(
      ResidentMemoryForTraining(config, {.ranks = 4, .zero_stage = 1, .ring_buffer_bytes = 1000})
          .gradients,
      4 * p);
  EXPECT_EQ(two.weights, 2 * p);
}

TEST(MemoryPlanTest, EveryShapeOnEightNodes) {
  const MemoryLimit limit = Limit(139.8);
  double before = 0;
  for (const char* const name :
       {"qwen3_0p6b", "qwen3_1p7b", "qwen3_4b", "qwen3_8b", "qwen3_14b", "qwen3_32b"}) {
    const ModelConfig config = Shape(name);
    const ResidentMemory held = ResidentMemoryForTraining(config, {.ranks = 64, .zero_stage = 2});
    const auto plan = PlanMemory(config, {.tokens = 18432}, held, limit);
    ASSERT_TRUE(plan.ok()) << name << ": " << plan.status();
    EXPECT_LE(plan->peak_bytes, limit.bytes - limit.reserve) << name;
    EXPECT_GE(plan->recompute_share, before) << name;
    before = plan->recompute_share;
  }
  EXPECT_GT(before, 0);
}

// For short sequences attention is cheap to recompute, so it is dropped before the GEMMs.
TEST(MemoryPlanTest, OrderFollowsTheLengths) {
  const ModelConfig config = Shape("qwen3_8b");
  const ResidentMemory held = WeightsAndGradients(config);
  const auto brief = PlanMemory(config, {.tokens = 16384, .max_length = 512}, held, Limit(95, 0));
  ASSERT_TRUE(brief.ok()) << brief.status();
  EXPECT_GT(LayersWith(*brief, LayerTensor::kAttention), 0);
  EXPECT_EQ(LayersWith(*brief, LayerTensor::kQkv), 0);
}

}  // namespace
}  // namespace tritonrl
