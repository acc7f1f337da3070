#include "model/transformer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full_like.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "model/testing/test_util.h"

namespace tritonrl {
namespace {

constexpr double kTemperature = 0.8;

struct Step {
  ForwardResult result;
  std::shared_ptr<Gradients> gradients;
};

// Runs Forward, and Backward of the loss sum(w * log_probs) with fixed w.
Step RunStep(const Transformer& model, const PackedBatch& batch, const at::Tensor& targets) {
  Step step;
  Activations saved;
  step.result = model.Forward(batch, targets, kTemperature, &saved);
  step.gradients = std::make_shared<Gradients>(*model.weights());
  model.Backward(saved, RandomTensor({batch.num_tokens()}, 9).to(at::kFloat), step.gradients.get());
  return step;
}

Transformer::Options WithThreads(int threads, bool force_aten = false) {
  Transformer::Options options;
  options.cpu_threads = threads;
  options.force_aten = force_aten;
  return options;
}

// A model with every bias and YaRN.
ModelConfig BiasedConfig() {
  ModelConfig config = SmallConfig(ModelFamily::kLlama, false);
  config.attention_bias = config.mlp_bias = true;
  config.rope_scaling = {
      .type = RopeType::kYarn, .factor = 4, .original_max_positions = 64, .attention_factor = 1.2};
  return config;
}

TEST(TransformerTest, EveryGradientAgainstFiniteDifferences) {
  for (const ModelConfig& config : {SmallConfig(ModelFamily::kQwen3, true),
                                    SmallConfig(ModelFamily::kLlama, false), BiasedConfig()}) {
    const auto weights = SmallWeights(config, 1, at::kDouble);
    const Transformer model(config, weights);
    const PackedBatch batch = PackSequences(RandomTokens(config, {13, 6}, 2));
    const at::Tensor targets = NextTokenTargets(batch, {3, 1});
    const at::Tensor w = RandomTensor({batch.num_tokens()}, 9).to(at::kFloat);
    const Step step = RunStep(model, batch, targets);
    for (const ParameterInfo& info : weights->layout().parameters) {
      const at::Tensor& parameter = weights->Get(info.name);
      const at::Tensor direction = RandomTensor(info.shape, 5), kept = parameter.clone();
      double loss[2];
      const double size = 1e-3;
      for (int side = 0; side < 2; ++side) {
        parameter.copy_(kept + direction * (side == 0 ? size : -size));
        // log_probs are fp32: the sum is in fp64, and the step is well above their rounding.
        const at::Tensor p = model.Forward(batch, targets, kTemperature, nullptr).log_probs;
        loss[side] = (p.to(at::kDouble) * w.to(at::kDouble)).sum().item<double>();
      }
      parameter.copy_(kept);
      const double expected = (loss[0] - loss[1]) / (2 * size);
      const double actual =
          (step.gradients->Get(info.name).to(at::kDouble) * direction).sum().item<double>();
      EXPECT_NEAR(actual, expected, 2e-3 * (1 + std::fabs(expected))) << info.name;
    }
  }
}

TEST(TransformerTest, KernelsAgreeWithAten) {
  for (const ModelConfig& config : {SmallConfig(ModelFamily::kQwen3, true),
                                    SmallConfig(ModelFamily::kQwen3, false), BiasedConfig()}) {
    const auto weights = SmallWeights(config, 1);
    const PackedBatch batch = PackSequences(RandomTokens(config, {60, 1, 0, 121}, 2));
    const at::Tensor targets = NextTokenTargets(batch, {10, 1, 1, 50});
    const Step kernels = RunStep(Transformer(config, weights, WithThreads(2)), batch, targets);
    const Step aten = RunStep(Transformer(config, weights, WithThreads(2, true)), batch, targets);
    EXPECT_LT(MaxDifference(kernels.result.log_probs, aten.result.log_probs), 3e-5);
    EXPECT_LT(MaxDifference(kernels.result.entropy, aten.result.entropy), 3e-5);
    for (const ParameterInfo& info : weights->layout().parameters) {
      EXPECT_LT(
          RelativeDifference(kernels.gradients->Get(info.name), aten.gradients->Get(info.name)),
          3e-5)
          << info.name;
    }
  }
}

TEST(TransformerTest, ForwardBackwardIsForwardThenBackward) {
  using Sum = Transformer::GradientWrite;
  for (const ModelConfig& config : {SmallConfig(ModelFamily::kQwen3, true),
                                    SmallConfig(ModelFamily::kQwen3, false), BiasedConfig()}) {
    const Transformer model(config, SmallWeights(config, 1), WithThreads(2));
    const PackedBatch batch = PackSequences(RandomTokens(config, {60, 1, 0, 121}, 2));
    const at::Tensor targets = NextTokenTargets(batch, {10, 1, 1, 50});
    const Step expected = RunStep(model, batch, targets);
    const at::Tensor d = RandomTensor({batch.num_tokens()}, 9).to(at::kFloat);
    const auto loss = [&](const at::Tensor& rows, const at::Tensor&, const at::Tensor&) {
      return d.index_select(0, rows);
    };
    Gradients gradients(*model.weights());
    const ForwardResult result =
        model.ForwardBackward(batch, targets, kTemperature, loss, Sum::kAccumulate, &gradients);
    EXPECT_TRUE(SameBits(result.log_probs, expected.result.log_probs));
    EXPECT_TRUE(SameBits(result.entropy, expected.result.entropy));
    EXPECT_TRUE(SameBits(gradients.flat(), expected.gradients->flat()));
    model.ForwardBackward(batch, targets, kTemperature, loss, Sum::kAccumulate, &gradients);
    EXPECT_LT(RelativeDifference(gradients.flat(), expected.gradients->flat() * 2), 1e-6);

    for (const ParameterInfo& info : gradients.layout().parameters) {
      gradients.Get(info.name).fill_(std::nan(""));
    }
    model.ForwardBackward(batch, targets, kTemperature, loss, Sum::kOverwrite, &gradients);
    EXPECT_TRUE(gradients.flat().equal(expected.gradients->flat()));
    const at::Tensor none = targets.clone().fill_(-1);
    model.ForwardBackward(batch, none, kTemperature, loss, Sum::kOverwrite, &gradients);
    EXPECT_EQ(gradients.flat().abs().max().item<float>(), 0.0f);
  }
}

TEST(TransformerTest, WhatIsSaidToBeFinalStaysAsItIs) {
  using Sum = Transformer::GradientWrite;
  for (const bool tied : {true, false}) {
    const ModelConfig config = SmallConfig(ModelFamily::kQwen3, tied);
    const Transformer model(config, SmallWeights(config, 1), WithThreads(2));
    const PackedBatch batch = PackSequences(RandomTokens(config, {60, 21}, 2));
    Gradients gradients(*model.weights());
    std::vector<std::pair<int64_t, at::Tensor>> said;
    const auto run = [&](const at::Tensor& targets, Sum sum) {
      said.clear();
      model.ForwardBackward(
          batch, targets, kTemperature,
          [](const at::Tensor& rows, const at::Tensor& log_probs, const at::Tensor&) {
            return at::full_like(log_probs, -0.5);
          },
          sum, &gradients,
          [&](int64_t offset) {
            said.emplace_back(offset, gradients.flat().slice(0, offset).clone());
          });
      std::vector<int64_t> offsets;
      for (const auto& [offset, part] : said) {
        EXPECT_TRUE(SameBits(part, gradients.flat().slice(0, offset))) << offset;
        EXPECT_TRUE(offsets.empty() || offset < offsets.back());
        offsets.push_back(offset);
      }
      return offsets;
    };
    const at::Tensor targets = NextTokenTargets(batch);
    const std::vector<int64_t> offsets = run(targets, Sum::kOverwrite);
    EXPECT_EQ(static_cast<int64_t>(offsets.size()), config.num_layers + 2);
    EXPECT_EQ(offsets.back(), 0);
    EXPECT_GT(said[0].second.abs().max().item<float>(), 0.0f);
    EXPECT_EQ(run(targets, Sum::kAccumulate), offsets);
    EXPECT_EQ(run(targets.clone().fill_(-1), Sum::kOverwrite), offsets);
  }
}

TEST(TransformerTest, RowsWithoutTargetAreZeroAndGradientsAccumulate) {
  const ModelConfig config = SmallConfig();
  const Transformer model(config, SmallWeights(config, 1));
  const PackedBatch batch = PackSequences(RandomTokens(config, {30, 20}, 2));
  const at::Tensor targets = NextTokenTargets(batch, {10, 5});
  Activations saved;
  const ForwardResult result = model.Forward(batch, targets, 1.0, &saved);
  const at::Tensor none = targets.lt(0);
  EXPECT_EQ(result.log_probs.masked_select(none).abs().max().item<float>(), 0.0f);
  EXPECT_LT(result.log_probs.masked_select(none.logical_not()).max().item<float>(), 0.0f);
  EXPECT_GT(result.entropy.masked_select(none.logical_not()).min().item<float>(), 0.0f);
  const at::Tensor d = RandomTensor({50}, 3).to(at::kFloat);
  Gradients once(*model.weights()), twice(*model.weights());
  model.Backward(saved, d, &once);
  model.Backward(saved, d, &twice);
  model.Backward(saved, d, &twice);
  EXPECT_LT(RelativeDifference(twice.flat(), once.flat() * 2), 1e-6);
  twice.Zero();
  EXPECT_EQ(twice.flat().abs().max().item<float>(), 0.0f);
}

TEST(TransformerTest, EmptyBatchesAndBatchesWithoutTargets) {
  const ModelConfig config = SmallConfig();
  const Transformer model(config, SmallWeights(config, 1));
  for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{}, {0}, {1}, {1, 1}}) {
    const PackedBatch batch = PackSequences(RandomTokens(config, lengths, 2));
    const Step step = RunStep(model, batch, NextTokenTargets(batch));
    EXPECT_EQ(step.result.log_probs.numel(), batch.num_tokens());
    EXPECT_EQ(step.gradients->flat().abs().max().item<float>(), 0.0f);
  }
}

TEST(TransformerTest, PackingChangesNoBit) {
  const ModelConfig config = SmallConfig();
  const Transformer model(config, SmallWeights(config, 1));
  const auto sequences = RandomTokens(config, {33, 5, 100, 64}, 2);
  const PackedBatch packed = PackSequences(sequences);
  const ForwardResult all = model.Forward(packed, NextTokenTargets(packed), 1.0, nullptr);
  for (size_t i = 0; i < sequences.size(); ++i) {
    const PackedBatch alone = PackSequences({sequences[i]});
    const ForwardResult one = model.Forward(alone, NextTokenTargets(alone), 1.0, nullptr);
    EXPECT_TRUE(
        SameBits(one.log_probs, all.log_probs.slice(0, packed.offsets[i], packed.offsets[i + 1])));
  }
}

TEST(TransformerTest, ThreadsChangeNoBit) {
  const ModelConfig config = SmallConfig();
  const auto weights = SmallWeights(config, 1);
  const PackedBatch batch = PackSequences(RandomTokens(config, {90, 200, 17}, 2));
  const at::Tensor targets = NextTokenTargets(batch);
  const Step one = RunStep(Transformer(config, weights, WithThreads(1)), batch, targets);
  for (int threads : {2, 5}) {
    const Step more = RunStep(Transformer(config, weights, WithThreads(threads)), batch, targets);
    EXPECT_TRUE(SameBits(one.result.log_probs, more.result.log_probs));
    EXPECT_TRUE(SameBits(one.gradients->flat(), more.gradients->flat()));
  }
}

TEST(TransformerTest, Bfloat16FollowsFp32) {
  const ModelConfig config = SmallConfig();
  const auto wide = SmallWeights(config, 1);
  const auto narrow = SmallWeights(config, 1, at::kBFloat16);
  wide->flat().copy_(narrow->flat());
  const PackedBatch batch = PackSequences(RandomTokens(config, {40, 25}, 2));
  const at::Tensor targets = NextTokenTargets(batch);
  const Step a = RunStep(Transformer(config, wide), batch, targets);
  const Step b = RunStep(Transformer(config, narrow), batch, targets);
  EXPECT_LT(RelativeDifference(b.result.log_probs, a.result.log_probs), 0.05);
  EXPECT_LT((b.gradients->flat() - a.gradients->flat()).norm().item<double>(),
            0.05 * a.gradients->flat().norm().item<double>());
}

TEST(TransformerTest, MistakesOfTheCallerAreRefused) {
  const ModelConfig config = SmallConfig();
  const Transformer model(config, SmallWeights(config, 1));
  const PackedBatch batch = PackSequences(RandomTokens(config, {300}, 2));
  EXPECT_ANY_THROW(model.Forward(batch, NextTokenTargets(batch), 1.0, nullptr));  // too long
  const PackedBatch unknown = PackSequences({std::vector<int32_t>{5, 101}});
  EXPECT_ANY_THROW(model.Forward(unknown, NextTokenTargets(unknown), 1.0, nullptr));
}

}  // namespace
}  // namespace tritonrl
