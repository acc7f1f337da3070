// Compares the ATen path on every device of this machine (the CPU and any GPUs), and the GPU's own
// kernels, with the CPU kernels: training step, decoding and bfloat16.

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "model/cuda/gemm/gemm.h"
#include "model/paged_cache.h"
#include "model/testing/device_fixture.h"
#include "model/testing/test_util.h"
#include "model/transformer.h"

namespace tritonrl {
namespace {

class DeviceTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string missing = MissingDevice(device()); !missing.empty()) {
      GTEST_SKIP() << missing;
    }
  }

  at::Device device() const { return at::Device(GetParam()); }

  // Returns a model with `weights` on the tested device that runs through ATen or the device's
  // kernels.
  Transformer OnDevice(const Weights& weights, at::ScalarType dtype, bool aten = true,
                       int64_t chunk = 0, bool fp8 = false) const {
    auto moved = std::make_shared<Weights>(weights.config(), device(), dtype);
    moved->flat().copy_(weights.flat());
    Transformer::Options options;
    options.force_aten = aten;
    options.head_chunk_rows = chunk;
    options.gpu.fp8_projections = fp8;
    return Transformer(weights.config(), moved, options);
  }
};

constexpr ModelFamily kFamilies[] = {ModelFamily::kQwen3, ModelFamily::kQwen2, ModelFamily::kLlama};

// Qwen2 has biases in query, key and value projections; Llama gets all that its configuration
// allows, Qwen3 none.
ModelConfig WithBiases(ModelConfig config) {
  if (config.family == ModelFamily::kLlama) config.attention_bias = config.mlp_bias = true;
  return config;
}

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
  for (ModelFamily family : kFamilies) {
    ModelConfig config = WithBiases(SmallConfig(family, family == ModelFamily::kQwen3));
    config.head_dim = 32;  // fused attention on GPUs needs a multiple of 8
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

// Runs ForwardBackward on gradients of NaN, all of which it must overwrite.
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
      Transformer::GradientWrite::kOverwrite, &gradients);
  return {result.log_probs.cpu(), result.entropy.cpu(), gradients.flat().cpu()};
}

TEST_P(DeviceTest, KernelsOfTheDevice) {
  for (ModelFamily family : kFamilies) {
    const ModelConfig config = WithBiases(KernelConfig(family, family == ModelFamily::kQwen3));
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
    // The error of bf16 itself is that of the same step through ATen.
    const Step aten = RunStep(OnDevice(*weights, at::kBFloat16), sequences);
    EXPECT_LT((first.gradients - expected.gradients).norm().item<double>(),
              1.5 * (aten.gradients - expected.gradients).norm().item<double>());
    EXPECT_TRUE(first.log_probs.equal(second.log_probs));
    EXPECT_TRUE(SameBits(first.gradients, second.gradients));
  }
}

// Recompute with the device's kernels gives the same bits, also with FP8 copies of kept or
// recomputed activations.
TEST_P(DeviceTest, RecomputedIsTheSame) {
  for (ModelFamily family : kFamilies) {
    const ModelConfig config = WithBiases(KernelConfig(family));
    const auto weights = SmallWeights(config, 1);
    const auto sequences = RandomTokens(config, {70, 1, 0, 133, 32}, 2);
    using Types = std::pair<at::ScalarType, bool>;  // type, and whether FP8
    for (const auto& [type, fp8] :
         {Types(at::kFloat, false), {at::kBFloat16, false}, {at::kBFloat16, true}}) {
      if (fp8 && device().is_cuda() && !CudaHasFp8(at::Device(at::kCUDA, 0))) continue;
      Transformer model = OnDevice(*weights, type, false, 0, fp8);
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
  PagedKvCache expected_cache(config, 8, at::kCPU, at::kFloat);
  PagedKvCache cache(config, 8, device(), at::kFloat);
  const auto prompts = RandomTokens(config, {25, 9}, 4);
  const std::vector<std::vector<int32_t>> pages = {{5, 0, 2}, {7, 1}, {5, 6, 4}};
  const std::vector<SequenceSlice> chunks = {SliceOf(prompts[0], 0, pages[0]),
                                             SliceOf(prompts[1], 0, pages[1])};
  const at::Tensor expected = kernels.Step(chunks, &expected_cache);
  EXPECT_LT(MaxDifference(aten.Step(chunks, &cache).cpu(), expected), 1e-4);
  for (PagedKvCache* each : {&expected_cache, &cache}) each->CopyPage(0, 6);
  for (int32_t t = 0; t < 20; ++t) {
    const std::vector<int32_t> tokens[] = {{t}, {t + 1}, {t + 2}};
    const std::vector<SequenceSlice> slices = {SliceOf(tokens[0], 25 + t, pages[0]),
                                               SliceOf(tokens[1], 9 + t, pages[1]),
                                               SliceOf(tokens[2], 25 + t, pages[2])};
    const at::Tensor one = kernels.Step(slices, &expected_cache);
    ASSERT_LT(MaxDifference(aten.Step(slices, &cache).cpu(), one), 1e-4) << t;
  }
}

std::string DeviceName(const testing::TestParamInfo<std::string>& info) {
  return DeviceLabel(info.param);
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceTest, testing::ValuesIn(TestedDevices()), DeviceName);

}  // namespace
}  // namespace tritonrl
