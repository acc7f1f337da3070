// For every set of recomputed tensors, results and gradients have the same bits, and the kept
// tensors take the bytes that the plan predicts.

#include <gtest/gtest.h>

#include <vector>

#include "model/layers/activations.h"
#include "model/memory/step_memory.h"
#include "model/testing/test_util.h"
#include "model/transformer.h"

namespace tritonrl {
namespace {

struct Step {
  ForwardResult result;
  at::Tensor gradients;
};

class RecomputeTest : public testing::TestWithParam<ModelFamily> {
 protected:
  Transformer Model(bool force_aten) const {
    Transformer::Options options;
    options.cpu_threads = 2;
    options.force_aten = force_aten;
    return Transformer(config_, weights_, options);
  }

  Step TwoPasses(const Transformer& model) const {
    Activations saved;
    const ForwardResult result = model.Forward(batch_, targets_, 0.8, &saved);
    Gradients gradients(*weights_), again(*weights_);
    model.Backward(saved, d_, &gradients);
    model.Backward(saved, d_, &again);  // Backward leaves `saved` unchanged
    EXPECT_TRUE(SameBits(gradients.flat(), again.flat()));
    return {result, gradients.flat()};
  }

  Step OnePass(const Transformer& model) const {
    Gradients gradients(*weights_);
    const ForwardResult result = model.ForwardBackward(
        batch_, targets_, 0.8,
        [&](const at::Tensor& rows, const at::Tensor&, const at::Tensor&) {
          return d_.index_select(0, rows);
        },
        Transformer::GradientWrite::kAccumulate, &gradients);
    return {result, gradients.flat()};
  }

  const ModelConfig config_ = SmallConfig(GetParam(), GetParam() == ModelFamily::kQwen3);
  const std::shared_ptr<Weights> weights_ = SmallWeights(config_, 1);
  const PackedBatch batch_ = PackSequences(RandomTokens(config_, {60, 1, 0, 77}, 2));
  const at::Tensor targets_ = NextTokenTargets(batch_, {10, 1, 1, 50});
  const at::Tensor d_ = RandomTensor({batch_.num_tokens()}, 9).to(at::kFloat);
};

// Returns every set for all layers alike, and one choice with a different set in each layer.
std::vector<std::vector<RecomputeSet>> Choices(int64_t layers) {
  std::vector<RecomputeSet> sets;
  for (unsigned bits = 0; bits < 1U << kLayerTensors.size(); ++bits) {
    RecomputeSet& set = sets.emplace_back();
    for (size_t i = 0; i < kLayerTensors.size(); ++i) {
      if ((bits >> i & 1) != 0) set = set.With(kLayerTensors[i]);
    }
  }
  EXPECT_EQ(sets.back(), RecomputeSet::All());
  std::vector<std::vector<RecomputeSet>> choices;
  for (const RecomputeSet set : sets) choices.emplace_back(layers, set);
  std::vector<RecomputeSet>& mixed = choices.emplace_back();
  for (int64_t i = 0; i < layers; ++i) mixed.push_back(sets[(11 * i + 5) % sets.size()]);
  return choices;
}

TEST_P(RecomputeTest, SameBitsWhateverIsDropped) {
  for (const bool aten : {false, true}) {
    Transformer model = Model(aten);
    const Step expected = OnePass(model);
    for (const std::vector<RecomputeSet>& layers : Choices(config_.num_layers)) {
      model.set_recompute(layers);
      for (const Step& step : {TwoPasses(model), OnePass(model)}) {
        ASSERT_TRUE(SameBits(step.result.log_probs, expected.result.log_probs));
        ASSERT_TRUE(SameBits(step.result.entropy, expected.result.entropy));
        ASSERT_TRUE(SameBits(step.gradients, expected.gradients));
      }
    }
  }
}

int64_t Bytes(const LayerActivations& layer) {
  int64_t bytes = 0;
  for (const at::Tensor* tensor :
       {&layer.input, &layer.rstd1, &layer.normed1.value, &layer.qkv, &layer.qk, &layer.qk_rstd,
        &layer.attention, &layer.lse, &layer.post_attention, &layer.rstd2, &layer.normed2.value,
        &layer.gate_up, &layer.activated.value}) {
    if (tensor->defined()) bytes += static_cast<int64_t>(tensor->nbytes());
  }
  return bytes;
}

TEST_P(RecomputeTest, KeepsTheBytesThatThePlanCounts) {
  Transformer model = Model(false);
  const StepShape shape = {.tokens = batch_.num_tokens(), .element_bytes = 4};
  for (const std::vector<RecomputeSet>& layers : Choices(config_.num_layers)) {
    model.set_recompute(layers);
    Activations saved;
    model.Forward(batch_, targets_, 0.8, &saved);
    for (size_t i = 0; i < layers.size(); ++i) {
      EXPECT_EQ(Bytes(saved.layers[i]), SavedActivationBytes(config_, shape, layers[i])) << i;
    }
  }
}

TEST_P(RecomputeTest, OneSetALayerOrNone) {
  Transformer model = Model(false);
  EXPECT_ANY_THROW(model.set_recompute(std::vector<RecomputeSet>(config_.num_layers + 1)));
  model.set_recompute(std::vector<RecomputeSet>(config_.num_layers, RecomputeSet::All()));
  model.set_recompute({});
  Activations saved;
  model.Forward(batch_, targets_, 0.8, &saved);
  EXPECT_TRUE(saved.layers[0].gate_up.defined());
}

INSTANTIATE_TEST_SUITE_P(Families, RecomputeTest,
                         testing::Values(ModelFamily::kQwen3, ModelFamily::kLlama),
                         [](const testing::TestParamInfo<ModelFamily>& info) {
                           return info.param == ModelFamily::kQwen3 ? "Qwen3" : "Llama";
                         });

}  // namespace
}  // namespace tritonrl
