#include "rollout/transformer_runner.h"

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "model/packed_batch.h"

namespace tritonrl {
namespace {

ModelConfig SmallConfig() {
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

// Random weights, large enough that the next token depends much on the text.
std::shared_ptr<Weights> SmallWeights() {
  std::shared_ptr<Weights> weights = Weights::RandomInit(SmallConfig(), 11);
  for (const ParameterInfo& parameter : weights->layout().parameters) {
    if (parameter.decay()) at::Tensor(weights->Get(parameter.name)).mul_(12.0);
  }
  return weights;
}

GenerateRequest Request(uint64_t id, int n) {
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

SampleMap Generate(const std::shared_ptr<Weights>& weights,
                   const std::vector<GenerateRequest>& requests, int slots, int threads) {
  TransformerRunner::Options options;
  options.num_slots = slots;
  options.cpu_threads = threads;
  absl::StatusOr<std::unique_ptr<Engine>> engine = MakeBatchedEngine(weights, options);
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
  return samples;
}

// Bit for bit.
void ExpectSame(const SampleMap& a, const SampleMap& b) {
  for (const auto& [name, sample] : a) {
    const auto other = b.find(name);
    ASSERT_NE(other, b.end());
    EXPECT_EQ(sample.tokens, other->second.tokens);
    EXPECT_EQ(sample.log_probs, other->second.log_probs);
    EXPECT_EQ(sample.finish_reason, other->second.finish_reason);
  }
}

TEST(TransformerEngine, SamplesDoNotDependOnBatchSlotsOrThreads) {
  const std::shared_ptr<Weights> weights = SmallWeights();
  std::vector<GenerateRequest> requests;
  for (uint64_t id = 0; id < 6; ++id) requests.push_back(Request(id, 1 + static_cast<int>(id)));
  const SampleMap expected = Generate(weights, requests, 64, 2);
  ASSERT_EQ(expected.size(), 21u);
  ExpectSame(expected, Generate(weights, requests, 1, 1));
  ExpectSame(expected, Generate(weights, requests, 5, 2));
  std::reverse(requests.begin(), requests.end());
  ExpectSame(expected, Generate(weights, requests, 7, 3));
  GenerateRequest part = Request(5, 2);  // Two of the six samples of a group, alone.
  part.first_index = 3;
  const SampleMap alone = Generate(weights, {part}, 64, 1);
  ASSERT_EQ(alone.size(), 2u);
  ExpectSame(alone, expected);
}

TEST(TransformerEngine, LogProbsAreTheLearners) {
  const std::shared_ptr<Weights> weights = SmallWeights();
  const std::vector<GenerateRequest> requests = {Request(1, 4), Request(2, 4), Request(3, 4)};
  const Transformer transformer(SmallConfig(), weights);
  double worst = 0;
  double sum = 0;
  int64_t tokens = 0;
  for (const auto& [name, sample] : Generate(weights, requests, 8, 2)) {
    const GenerateRequest& request = requests[name.first - 1];
    std::vector<int32_t> sequence = request.prompt;
    sequence.insert(sequence.end(), sample.tokens.begin(), sample.tokens.end());
    const PackedBatch batch = PackSequences({sequence});
    const std::vector<int64_t> first_target = {static_cast<int64_t>(request.prompt.size())};
    const ForwardResult result = transformer.Forward(batch, NextTokenTargets(batch, first_target),
                                                     request.sampling.temperature, nullptr);
    const float* log_probs = result.log_probs.const_data_ptr<float>();
    for (size_t t = 0; t < sample.tokens.size(); ++t) {
      const double difference =
          std::abs(log_probs[request.prompt.size() - 1 + t] - sample.log_probs[t]);
      worst = std::max(worst, difference);
      sum += sample.log_probs[t];
      ++tokens;
    }
  }
  EXPECT_GT(tokens, 100);
  EXPECT_LT(worst, 2e-4);
  EXPECT_LT(sum / tokens, -0.3) << "nothing to compare: every token was certain";
  RecordProperty("worst_difference", absl::StrCat(worst));
}

TEST(TransformerEngine, GreedyIsTheArgmaxOfAFullRecomputation) {
  const std::shared_ptr<Weights> weights = SmallWeights();
  GenerateRequest request = Request(2, 1);
  request.sampling.temperature = 0;
  request.sampling.stop_ids.clear();
  const SampleMap samples = Generate(weights, {request}, 4, 2);
  const Transformer transformer(SmallConfig(), weights);
  std::vector<int32_t> sequence = request.prompt;
  std::vector<int32_t> expected;
  for (int t = 0; t < request.sampling.max_tokens; ++t) {
    const at::Tensor logits = transformer.Logits(PackSequences({sequence}));
    const float* row = logits.const_data_ptr<float>() + (logits.size(0) - 1) * logits.size(1);
    expected.push_back(static_cast<int32_t>(std::max_element(row, row + logits.size(1)) - row));
    sequence.push_back(expected.back());
  }
  EXPECT_EQ(samples.begin()->second.tokens, expected);
  EXPECT_EQ(samples.begin()->second.finish_reason, FinishReason::kLength);
}

TEST(TransformerEngine, SeesTheLearnersWeights) {
  const std::shared_ptr<Weights> weights = SmallWeights();
  absl::StatusOr<std::unique_ptr<Engine>> engine = MakeBatchedEngine(weights, {.num_slots = 2});
  ASSERT_TRUE(engine.ok());
  ASSERT_TRUE((*engine)->BeginWeightUpdate().ok());
  at::Tensor(weights->flat()).mul_(0.7);
  (*engine)->EndWeightUpdate(1);
  ASSERT_TRUE((*engine)->Submit(Request(1, 1)).ok());
  absl::StatusOr<Sample> sample = (*engine)->Next(absl::Now() + absl::Seconds(60));
  ASSERT_TRUE(sample.ok()) << sample.status();
  EXPECT_EQ(sample->weights_version, 1u);
  const SampleMap expected = Generate(weights->Clone(), {Request(1, 1)}, 2, 2);
  EXPECT_EQ(sample->log_probs, expected.begin()->second.log_probs);
  const SampleMap before = Generate(SmallWeights(), {Request(1, 1)}, 2, 2);
  EXPECT_NE(sample->log_probs, before.begin()->second.log_probs);
}

TEST(TransformerEngine, DamagedWeightsEndWithASentence) {
  const std::shared_ptr<Weights> weights = SmallWeights();
  at::Tensor(weights->Get("model.norm.weight")).fill_(std::nan(""));
  absl::StatusOr<std::unique_ptr<Engine>> engine = MakeBatchedEngine(weights, {.num_slots = 2});
  ASSERT_TRUE(engine.ok());
  ASSERT_TRUE((*engine)->Submit(Request(1, 1)).ok());
  const absl::Status status = (*engine)->Next(absl::Now() + absl::Seconds(60)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_NE(status.message().find("not finite"), absl::string_view::npos) << status;
}

TEST(TransformerEngine, ImpossibleSizesAreErrors) {
  const std::shared_ptr<Weights> weights = SmallWeights();
  absl::Status status = MakeBatchedEngine(weights, {.num_slots = 2, .max_length = 129}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("max_position_embeddings is 128"), absl::string_view::npos);
  EXPECT_EQ(MakeBatchedEngine(weights, {.num_slots = 0}).status().code(),
            absl::StatusCode::kInvalidArgument);
  status = MakeBatchedEngine(weights, {.num_slots = 2000000000}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("2000000000 slots"), absl::string_view::npos) << status;
}

}  // namespace
}  // namespace tritonrl
