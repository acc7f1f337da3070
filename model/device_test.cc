// The ATen path on every device of this machine (the CPU, and a GPU where there is one), and the
// GPU's own kernels, against the CPU kernels: training step, decoding, and bfloat16.

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "model/decode_cache.h"
#include "model/device_fixture.h"
#include "model/test_util.h"
#include "model/transformer.h"

namespace tritonrl {
namespace {

class DeviceTest : public testing::TestWithParam<std::string> {
 protected:
  at::Device device() const { return at::Device(GetParam()); }

  // `weights` on the tested device, to be run through ATen or the device's kernels.
  Transformer OnDevice(const Weights& weights, at::ScalarType dtype, bool aten = true,
                       int64_t chunk = 0) const {
    auto moved = std::make_shared<Weights>(weights.config(), device(), dtype);
    moved->flat().copy_(weights.flat());
    Transformer::Options options;
    options.force_aten = aten;
    options.head_chunk_rows = chunk;
    return Transformer(weights.config(), moved, options);
  }
};

struct Step {
  at::Tensor log_probs, entropy, gradients;
};

Step RunStep(const Transformer& model, const std::vector<std::vector<int32_t>>& sequences) {
  const at::Device device = model.weights()->device();
  const PackedBatch batch = PackSequences(sequences, device);
  Activations saved;
  Gradients gradients(*model.weights());
  const ForwardResult result = model.Forward(batch, NextTokenTargets(batch), 0.8, &saved);
  model.Backward(saved, RandomTensor({batch.num_tokens()}, 9).to(at::kFloat).to(device),
                 &gradients);
  return {result.log_probs.cpu(), result.entropy.cpu(), gradients.flat().cpu()};
}

TEST_P(DeviceTest, TrainingStep) {
  for (ModelFamily family : {ModelFamily::kQwen3, ModelFamily::kLlama}) {
    ModelConfig config = SmallConfig(family, family == ModelFamily::kQwen3);
    config.head_dim = 32;  // fused attention of GPUs wants multiples of 8
    const auto weights = SmallWeights(config, 1);
    const auto sequences = RandomTokens(config, {70, 1, 0, 133, 32}, 2);
    const Step expected = RunStep(Transformer(config, weights), sequences);
    const Step actual = RunStep(OnDevice(*weights, at::kFloat), sequences);
    EXPECT_LT(MaxDifference(actual.log_probs, expected.log_probs), 1e-4);
    EXPECT_LT(MaxDifference(actual.entropy, expected.entropy), 1e-4);
    for (const ParameterInfo& info : weights->layout().parameters) {
      EXPECT_LT(RelativeDifference(actual.gradients.narrow(0, info.offset, info.size),
                                   expected.gradients.narrow(0, info.offset, info.size)),
                2e-4)
          << info.name;
    }
    const Step rounded = RunStep(OnDevice(*weights, at::kBFloat16), sequences);
    EXPECT_LT(RelativeDifference(rounded.log_probs, expected.log_probs), 0.1);
    EXPECT_LT((rounded.gradients - expected.gradients).norm().item<double>(),
              0.2 * expected.gradients.norm().item<double>());
  }
}

// Forward, loss and backward in one; small chunks of the head, so that there are several.
Step RunFused(const Transformer& model, const std::vector<std::vector<int32_t>>& sequences) {
  const at::Device device = model.weights()->device();
  const PackedBatch batch = PackSequences(sequences, device);
  Gradients gradients(*model.weights());
  for (const ParameterInfo& info : gradients.layout().parameters) {
    gradients.Get(info.name).fill_(std::nan(""));
  }
  const at::Tensor d = RandomTensor({batch.num_tokens()}, 9).to(at::kFloat).to(device);
  const ForwardResult result = model.ForwardBackward(
      batch, NextTokenTargets(batch), 0.8,
      [&](const at::Tensor& rows, const at::Tensor&, const at::Tensor&) {
        return d.index_select(0, rows);
      },
      Transformer::GradientSum::kReplace, &gradients);
  return {result.log_probs.cpu(), result.entropy.cpu(), gradients.flat().cpu()};
}

TEST_P(DeviceTest, KernelsOfTheDevice) {
  for (ModelFamily family : {ModelFamily::kQwen3, ModelFamily::kLlama}) {
    const ModelConfig config = KernelConfig(family, family == ModelFamily::kQwen3);
    const auto weights = SmallWeights(config, 1);
    const auto sequences = RandomTokens(config, {70, 1, 0, 133, 32}, 2);
    const Step expected = RunStep(Transformer(config, weights), sequences);
    const Transformer exact = OnDevice(*weights, at::kFloat, false, 50);
    for (const Step& actual : {RunStep(exact, sequences), RunFused(exact, sequences)}) {
      EXPECT_LT(MaxDifference(actual.log_probs, expected.log_probs), 1e-4);
      EXPECT_LT(MaxDifference(actual.entropy, expected.entropy), 1e-4);
      for (const ParameterInfo& info : weights->layout().parameters) {
        EXPECT_LT(RelativeDifference(actual.gradients.narrow(0, info.offset, info.size),
                                     expected.gradients.narrow(0, info.offset, info.size)),
                  2e-4)
            << info.name;
      }
    }
    const Transformer rounded = OnDevice(*weights, at::kBFloat16, false);
    const Step first = RunFused(rounded, sequences), second = RunFused(rounded, sequences);
    EXPECT_LT(RelativeDifference(first.log_probs, expected.log_probs), 0.1);
    // What bf16 costs by itself: the same through ATen.
    const Step aten = RunStep(OnDevice(*weights, at::kBFloat16), sequences);
    EXPECT_LT((first.gradients - expected.gradients).norm().item<double>(),
              1.5 * (aten.gradients - expected.gradients).norm().item<double>());
    EXPECT_TRUE(first.log_probs.equal(second.log_probs));
    EXPECT_TRUE(SameBits(first.gradients, second.gradients));
  }
}

// Kernels of the device once more on the same operands: the same bits.
TEST_P(DeviceTest, RecomputedIsTheSame) {
  for (ModelFamily family : {ModelFamily::kQwen3, ModelFamily::kLlama}) {
    const ModelConfig config = KernelConfig(family);
    const auto weights = SmallWeights(config, 1);
    const auto sequences = RandomTokens(config, {70, 1, 0, 133, 32}, 2);
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      Transformer model = OnDevice(*weights, type, false);
      const Step expected = RunFused(model, sequences);
      std::vector<RecomputeSet> sets = {RecomputeSet::All()};
      for (const LayerTensor tensor : kLayerTensors) {
        sets.push_back(RecomputeSet().With(tensor));
        sets.push_back(RecomputeSet::All().Without(tensor));
      }
      for (const RecomputeSet set : sets) {
        model.set_recompute(std::vector<RecomputeSet>(config.num_layers, set));
        const Step actual = RunFused(model, sequences);
        ASSERT_TRUE(SameBits(actual.log_probs, expected.log_probs));
        ASSERT_TRUE(SameBits(actual.gradients, expected.gradients));
      }
    }
  }
}

TEST_P(DeviceTest, Decoding) {
  const ModelConfig config = SmallConfig();
  const auto weights = SmallWeights(config, 1);
  const Transformer kernels(config, weights), aten = OnDevice(*weights, at::kFloat);
  DecodeCache expected_cache(config, 5, 64, at::kCPU, at::kFloat);
  DecodeCache cache(config, 5, 64, device(), at::kFloat);
  const auto prompts = RandomTokens(config, {25, 9}, 4);
  const std::vector<std::vector<int64_t>> slots = {{0, 3}, {1}};
  const at::Tensor expected = kernels.Prefill(PackSequences(prompts), slots, &expected_cache);
  const at::Tensor actual = aten.Prefill(PackSequences(prompts, device()), slots, &cache);
  EXPECT_LT(MaxDifference(actual.cpu(), expected), 1e-4);
  for (int64_t t = 0; t < 20; ++t) {
    const std::vector<int64_t> tokens = {t, t + 1, t + 2}, positions = {25 + t, 9 + t, 25 + t};
    const at::Tensor one = kernels.DecodeStep(tokens, {0, 1, 3}, positions, &expected_cache);
    const at::Tensor other = aten.DecodeStep(tokens, {0, 1, 3}, positions, &cache);
    ASSERT_LT(MaxDifference(other.cpu(), one), 1e-4) << t;
  }
}

std::string DeviceName(const testing::TestParamInfo<std::string>& info) {
  return DeviceLabel(info.param);
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceTest, testing::ValuesIn(TestedDevices()), DeviceName);

}  // namespace
}  // namespace tritonrl
