// A small transformer with random weights, and the samples that an engine generates from it, for
// tests on a CPU.
#ifndef TRITONRL_ROLLOUT_TESTING_SMALL_ENGINE_FIXTURE_H_
#define TRITONRL_ROLLOUT_TESTING_SMALL_ENGINE_FIXTURE_H_

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "model/weights/weights.h"
#include "rollout/factory/make_engine.h"
#include "rollout/testing/engine_config_text.h"

namespace tritonrl {

inline ModelConfig SmallConfig() {
  ModelConfig config;
  config.hidden_size = 32;
  config.num_layers = 2;
  config.num_heads = 4;
  config.num_kv_heads = 2;
  config.head_dim = 16;
  config.intermediate_size = 48;
  config.vocab_size = 100;
  config.max_positions = 128;
  config.tie_word_embeddings = true;
  return config;
}

// Random weights, large enough that the next token depends strongly on the preceding tokens.
inline std::shared_ptr<Weights> SmallWeights() {
  std::shared_ptr<Weights> weights = Weights::RandomInit(SmallConfig(), 11);
  for (const ParameterInfo& parameter : weights->layout().parameters) {
    if (parameter.decay()) at::Tensor(weights->Get(parameter.name)).mul_(12.0);
  }
  return weights;
}

inline GenerateRequest Request(uint64_t id, int n) {
  GenerateRequest request;
  request.id = id;
  for (uint64_t i = 0; i < 3 + 5 * (id % 4); ++i) {
    request.prompt.push_back(static_cast<int32_t>((id * 31 + i * 7) % 100));
  }
  request.n = n;
  request.sampling.temperature = 0.8;
  request.sampling.max_tokens = 40;
  request.sampling.stop_ids = {3, 4, 5};
  request.key = {.run_seed = 1, .step = 2, .task = id};
  return request;
}

using SampleMap = std::map<std::pair<uint64_t, int>, Sample>;

inline SampleMap Generate(const std::shared_ptr<Weights>& weights,
                          const std::vector<GenerateRequest>& requests, EngineConfig config,
                          const EngineContext& context = {}, EngineStats* stats = nullptr) {
  config.set_always_speculate(true);
  absl::StatusOr<std::unique_ptr<Engine>> engine = MakeBatchedEngine(weights, config, context);
  EXPECT_TRUE(engine.ok()) << engine.status();
  for (const GenerateRequest& request : requests) {
    const absl::Status status = (*engine)->Submit(request);
    EXPECT_TRUE(status.ok()) << status;
  }
  SampleMap samples;
  while ((*engine)->Outstanding() > 0) {
    absl::StatusOr<Sample> sample = (*engine)->Next(absl::Now() + absl::Seconds(60));
    if (!sample.ok()) {
      ADD_FAILURE() << sample.status();
      break;
    }
    const std::pair<uint64_t, int> name(sample->request_id, sample->index);
    samples[name] = *std::move(sample);
  }
  if (stats != nullptr) *stats = (*engine)->Stats();
  return samples;
}

// Expects that `whole` has each sample of `part` with the same bits.
inline void ExpectPart(const SampleMap& part, const SampleMap& whole) {
  for (const auto& [name, sample] : part) {
    const auto other = whole.find(name);
    ASSERT_NE(other, whole.end());
    EXPECT_EQ(sample.tokens, other->second.tokens);
    EXPECT_EQ(sample.log_probs, other->second.log_probs);
    EXPECT_EQ(sample.finish_reason, other->second.finish_reason);
  }
}

// Expects that `a` and `b` have the same samples with the same bits.
inline void ExpectSame(const SampleMap& a, const SampleMap& b) {
  EXPECT_EQ(a.size(), b.size());
  ExpectPart(a, b);
}

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_TESTING_SMALL_ENGINE_FIXTURE_H_
