// Effect of FP8 keys, values and weights on log-probabilities: compares the mini policy's samples
// under the exact model and under the rounding of rollout/cuda (paged_kv_layout.h, fp8_weights.h),
// emulated in ATen.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/runfiles.h"
#include "model/layers/decoder_layer.h"
#include "model/layers/fp8.h"
#include "model/layers/packed_batch.h"
#include "model/layers/rotary.h"
#include "model/transformer.h"
#include "rollout/factory/make_engine.h"

namespace tritonrl {
namespace {

constexpr double kCap = 2;  // the usual objective.importance_sampling_cap

// Rounds each row by itself, from bf16, as LaunchQuantizeRows does.
at::Tensor RoundRows(const at::Tensor& x) {
  std::vector<at::Tensor> rows;
  for (const at::Tensor& row : x.to(at::kBFloat16).to(at::kFloat).unbind(0)) {
    rows.push_back(RoundToFp8ByAten(row, Fp8Format::kE4M3));
  }
  return at::stack(rows);
}

// Rounds without a scale, as LaunchQkvToCache does.
at::Tensor RoundCached(const at::Tensor& x) {
  const double most = 448;
  return x.to(at::kBFloat16)
      .to(at::kFloat)
      .clamp(-most, most)
      .to(at::kFloat8_e4m3fn)
      .to(at::kFloat);
}

struct Rounding {
  bool cache = false, weights = false;
};

// The transformer on one sequence in fp32.
class PlainModel {
 public:
  PlainModel(const Weights& weights, const Rounding& rounding)
      : weights_(weights),
        config_(weights.config()),
        rounding_(rounding),
        rotary_(MakeRotaryTable(config_, at::kCPU, at::kFloat)) {}

  // Log-probabilities of tokens 1, 2, ... at temperature 1.
  at::Tensor LogProbs(const std::vector<int32_t>& tokens) const {
    const at::Tensor ids = at::tensor(std::vector<int64_t>(tokens.begin(), tokens.end()));
    const at::Tensor& embedding = weights_.Get("model.embed_tokens.weight");
    at::Tensor x = embedding.index_select(0, ids);
    for (int64_t i = 0; i < config_.num_layers; ++i) {
      const DecoderLayerParameters layer(weights_, i);
      x = x + Multiply(Attention(layer, Normed(x, layer.input_norm)), layer.o);
      const at::Tensor normed = Normed(x, layer.post_norm);
      const at::Tensor gated = at::silu(Multiply(normed, layer.gate)) * Multiply(normed, layer.up);
      x = x + Multiply(gated, layer.down);
    }
    const at::Tensor& head =
        config_.tie_word_embeddings ? embedding : weights_.Get("lm_head.weight");
    const at::Tensor logits = at::linear(Normed(x, weights_.Get("model.norm.weight")), head);
    const int64_t count = ids.size(0) - 1;
    return logits.narrow(0, 0, count)
        .log_softmax(-1)
        .gather(1, ids.narrow(0, 1, count).unsqueeze(1))
        .squeeze(1);
  }

 private:
  at::Tensor Multiply(const at::Tensor& x, const at::Tensor& weight) const {
    return rounding_.weights ? at::linear(RoundRows(x), RoundRows(weight)) : at::linear(x, weight);
  }

  at::Tensor Normed(const at::Tensor& x, const at::Tensor& weight) const {
    return x * at::rsqrt(x.square().mean(-1, /*keepdim=*/true) + config_.rms_norm_eps) * weight;
  }

  // x: [T, heads, D]
  at::Tensor Turned(const at::Tensor& x) const {
    const int64_t rows = x.size(0), half = config_.head_dim / 2;
    const at::Tensor cos = rotary_.cos.narrow(0, 0, rows).unsqueeze(1);
    const at::Tensor sin = rotary_.sin.narrow(0, 0, rows).unsqueeze(1);
    const at::Tensor a = x.narrow(2, 0, half), b = x.narrow(2, half, half);
    return at::cat({a * cos - b * sin, b * cos + a * sin}, 2);
  }

  at::Tensor Attention(const DecoderLayerParameters& layer, const at::Tensor& x) const {
    const int64_t rows = x.size(0), dim = config_.head_dim;
    const auto heads = [&](const at::Tensor& weight) {
      return Multiply(x, weight).view({rows, -1, dim});
    };
    at::Tensor q = Turned(Normed(heads(layer.q), layer.q_norm));
    at::Tensor k = Turned(Normed(heads(layer.k), layer.k_norm));
    at::Tensor v = heads(layer.v);
    if (rounding_.cache) {
      k = RoundCached(k);
      v = RoundCached(v);
    }
    const int64_t group = config_.num_heads / config_.num_kv_heads;
    k = k.repeat_interleave(group, 1).transpose(0, 1);
    v = v.repeat_interleave(group, 1).transpose(0, 1);
    at::Tensor scores = q.transpose(0, 1).matmul(k.transpose(1, 2)) / std::sqrt(dim);
    const at::Tensor hidden = at::ones({rows, rows}, at::kBool).triu(1);
    scores = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
    return scores.softmax(-1).matmul(v).transpose(0, 1).reshape({rows, -1});
  }

  const Weights& weights_;
  const ModelConfig& config_;
  const Rounding rounding_;
  const RotaryTable rotary_;
};

struct Text {
  std::vector<int32_t> tokens;
  int64_t prompt = 0;
};

struct Effect {
  double mean = 0, largest = 0;          // of the absolute differences
  double importance = 0, above_cap = 0;  // mean of min(ratio, cap); share above the cap
};

class Fp8EffectTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const auto folder = Runfile("model/mini");
    ASSERT_TRUE(folder.ok()) << folder.status();
    auto model = LoadModel(*folder, at::kCPU);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = new LoadedModel(*std::move(model));
    texts_ = new std::vector<Text>();
    auto engine = MakeBatchedEngine(model_->weights, {}, {.cpu_threads = 2});
    ASSERT_TRUE(engine.ok()) << engine.status();
    const std::vector<std::string> prompts = {"torch.softmax(x, dim=1)\nx: (64, 512)\n",
                                              "torch.relu(x + y)\nx: (256, 256)\ny: (256, 256)\n"};
    for (size_t i = 0; i < prompts.size(); ++i) {
      GenerateRequest request;
      request.id = i;
      request.prompt = model_->tokenizer.Encode(prompts[i]);
      request.n = 4;
      request.sampling.max_tokens = 300;
      request.sampling.stop_ids = model_->stop_ids;
      request.key.task = i;
      ASSERT_TRUE((*engine)->Submit(request).ok());
    }
    while ((*engine)->Outstanding() > 0) {
      const auto sample = (*engine)->Next(absl::Now() + absl::Minutes(1));
      ASSERT_TRUE(sample.ok()) << sample.status();
      Text& text = texts_->emplace_back();
      text.tokens = model_->tokenizer.Encode(prompts[sample->request_id]);
      text.prompt = static_cast<int64_t>(text.tokens.size());
      text.tokens.insert(text.tokens.end(), sample->tokens.begin(), sample->tokens.end());
    }
  }
  static void TearDownTestSuite() {
    delete model_;
    delete texts_;
  }

  // Log-probabilities of all generated tokens.
  static at::Tensor LogProbs(const Rounding& rounding) {
    const PlainModel model(*model_->weights, rounding);
    std::vector<at::Tensor> all;
    for (const Text& text : *texts_) {
      all.push_back(model.LogProbs(text.tokens).slice(0, text.prompt - 1));
    }
    return at::cat(all);
  }

  // Assumes an engine that draws with the rounding and a learner that weighs samples without it.
  static Effect Measure(const char* name, const Rounding& rounding) {
    const at::Tensor exact = LogProbs({}), rounded = LogProbs(rounding);
    const at::Tensor difference = (rounded - exact).abs(), ratio = (exact - rounded).exp();
    const Effect effect = {difference.mean().item<double>(), difference.max().item<double>(),
                           ratio.clamp_max(kCap).mean().item<double>(),
                           ratio.gt(kCap).to(at::kDouble).mean().item<double>()};
    std::cout << absl::StreamFormat(
        "%-18s %d tokens: |difference| mean %.4f, largest %.3f; importance %.4f, above %g: %.4f\n",
        name, exact.size(0), effect.mean, effect.largest, effect.importance, kCap,
        effect.above_cap);
    return effect;
  }

  static LoadedModel* model_;
  static std::vector<Text>* texts_;
};

LoadedModel* Fp8EffectTest::model_ = nullptr;
std::vector<Text>* Fp8EffectTest::texts_ = nullptr;

TEST_F(Fp8EffectTest, ThePlainModelIsTheLearners) {
  const Transformer learner(model_->weights->config(), model_->weights, {.cpu_threads = 2});
  const PlainModel plain(*model_->weights, {});
  for (const Text& text : *texts_) {
    const PackedBatch batch = PackSequences({text.tokens}, at::kCPU);
    const at::Tensor expected =
        learner.Forward(batch, NextTokenTargets(batch, {1}), 1.0, nullptr).log_probs;
    const int64_t count = expected.size(0) - 1;
    const at::Tensor difference = plain.LogProbs(text.tokens) - expected.narrow(0, 0, count);
    EXPECT_LT(difference.abs().max().item<double>(), 1e-4);
  }
}

TEST_F(Fp8EffectTest, IsBounded) {
  const Effect cache = Measure("fp8_kv_cache", {.cache = true});
  const Effect weights = Measure("fp8_weights", {.weights = true});
  const Effect both = Measure("both", {.cache = true, .weights = true});
  for (const Effect& effect : {cache, weights, both}) {
    EXPECT_GT(effect.mean, 0);
    EXPECT_LT(effect.mean, 0.1);
    EXPECT_LT(effect.largest, 3);
    // The cap cuts few of the importance weights by which the learner corrects the difference.
    EXPECT_NEAR(effect.importance, 1, 0.05);
    EXPECT_LT(effect.above_cap, 0.02);
  }
}

}  // namespace
}  // namespace tritonrl
