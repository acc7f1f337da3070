#include "model/memory/step_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/layers/decoder_layer.h"
#include "model/layers/layer_context.h"
#include "model/layers/lm_head.h"
#include "model/testing/test_util.h"

namespace tritonrl {
namespace {

struct Case {
  ModelFamily family;
  bool fp8;
};

// The batch has enough rows that weights are small beside activations. The buffer pool does not
// round up the sizes of the tensors.
class StepMemoryTest : public testing::TestWithParam<Case> {
 protected:
  static constexpr int64_t kTokens = 2048, kLongest = 32;

  static ModelConfig Config() {
    ModelConfig config = SmallConfig(GetParam().family);
    config.hidden_size = 64;
    config.num_layers = 3;
    config.num_heads = 4;
    config.num_kv_heads = 2;
    config.head_dim = 16;
    config.intermediate_size = 96;
    return config;
  }

  // Returns the peak memory of the layers on the CPU, from the embedding's output to its gradient.
  // Checks that at the end only the tensors that must be kept are still allocated.
  size_t Measured(const StepShape& step, const std::vector<RecomputeSet>& sets) const {
    const bool consume = step.consume;
    const SequenceLayout layout = MakeSequenceLayout(batch_);
    const LayerEnvironment environment = {context_,         config_, rotary_,
                                          batch_.positions, layout,  GetParam().fp8};
    context_.pool().ResetPeak();
    const size_t before = context_.pool().taken_bytes();
    std::vector<LayerActivations> saved;
    at::Tensor x =
        EmbeddingForward(context_, weights_->Get("model.embed_tokens.weight"), batch_.tokens);
    for (int64_t i = 0; i < config_.num_layers; ++i) {
      LayerActivations activations;
      activations.recompute = sets[i];
      x = DecoderLayerForward(environment, DecoderLayerParameters(*weights_, i), x, &activations);
      saved.push_back(std::move(activations));
    }
    x.reset();
    Gradients gradients(*weights_);
    const at::Tensor d = context_.Empty({kTokens, config_.hidden_size}, weights_->flat()).zero_();
    for (int64_t i = config_.num_layers - 1; i >= 0; --i) {
      DecoderLayerParameters layer_gradients(gradients, i);
      DecoderLayerBackward(environment, DecoderLayerParameters(*weights_, i), {.consume = consume},
                           &saved[i], d, &layer_gradients);
    }
    int64_t kept = 0;
    for (const RecomputeSet set : sets)
      kept += consume ? 0 : SavedActivationBytes(config_, step, set);
    EXPECT_EQ(static_cast<int64_t>(context_.pool().taken_bytes() - before - d.nbytes()), kept);
    return context_.pool().peak_bytes() - before;
  }

  const ModelConfig config_ = Config();
  const LayerContext context_{1};
  const std::shared_ptr<Weights> weights_ = SmallWeights(config_, 1);
  const RotaryTable rotary_ = MakeRotaryTable(config_, at::kCPU, at::kFloat);
  const PackedBatch batch_ =
      PackSequences(RandomTokens(config_, std::vector<int64_t>(kTokens / kLongest, kLongest), 2));
};

// Forward and backward of layers take the memory that PeakStepMemory predicts, for every set of
// recomputed tensors. The prediction without layers gives the memory that only a GPU takes (such as
// a GEMM's workspace), which is subtracted.
TEST_P(StepMemoryTest, LayersTakeWhatIsCounted) {
  StepShape step = {.tokens = kTokens,
                    .target_rows = 1,
                    .max_length = kLongest,
                    .element_bytes = 4,
                    .fp8 = GetParam().fp8,
                    .fp8_in_hardware = false};
  ModelConfig none = config_;
  none.num_layers = 0;
  for (const bool consume : {true, false}) {
    step.consume = consume;
    const int64_t other = PeakStepMemory(none, step, {}).bytes - kTokens * config_.hidden_size * 4;
    for (unsigned bits = 0; bits < 1U << kLayerTensors.size(); ++bits) {
      RecomputeSet set;
      for (size_t i = 0; i < kLayerTensors.size(); ++i) {
        if ((bits >> i & 1) != 0) set = set.With(kLayerTensors[i]);
      }
      for (const std::vector<RecomputeSet>& sets :
           {std::vector<RecomputeSet>(3, set), std::vector<RecomputeSet>{set, set, {}}}) {
        const double measured = static_cast<double>(Measured(step, sets));
        const StepPeak peak = PeakStepMemory(config_, step, sets);
        EXPECT_NEAR(static_cast<double>(peak.bytes - other), measured, 0.01 * measured)
            << "set " << bits << ", consume " << consume << ", predicted in " << peak.where;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, StepMemoryTest,
                         testing::Values(Case{ModelFamily::kQwen3, false},
                                         Case{ModelFamily::kLlama, false},
                                         Case{ModelFamily::kQwen3, true}),
                         [](const testing::TestParamInfo<Case>& info) {
                           return absl::StrCat(
                               info.param.family == ModelFamily::kQwen3 ? "Qwen3" : "Llama",
                               info.param.fp8 ? "Fp8" : "");
                         });

}  // namespace
}  // namespace tritonrl
