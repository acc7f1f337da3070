// The engine over a transformer: samples equal the model's own, for every size of the engine.
#include "rollout/factory/make_engine.h"

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
#include "model/layers/packed_batch.h"
#include "model/paged_cache.h"
#include "model/transformer.h"
#include "rollout/engine/sampler.h"
#include "rollout/testing/small_engine_fixture.h"

namespace tritonrl {
namespace {

TEST(TransformerEngine, SamplesDoNotDependOnBatchMemoryChunksOrThreads) {
  const std::shared_ptr<Weights> weights = SmallWeights();
  std::vector<GenerateRequest> requests;
  for (uint64_t id = 0; id < 6; ++id) requests.push_back(Request(id, 1 + static_cast<int>(id)));
  EngineStats stats;
  const SampleMap expected = Generate(weights, requests, {}, {.cpu_threads = 2}, &stats);
  ASSERT_EQ(expected.size(), 21u);
  EXPECT_EQ(stats.preemptions, 0);
  EXPECT_EQ(stats.prompt_tokens, 3 + 8 + 13 + 18 + 3 + 8);
  ExpectSame(expected,
             Generate(weights, requests, MakeEngineConfig("max_num_seqs: 1"), {.cpu_threads = 1}));
  ExpectSame(expected,
             Generate(weights, requests, MakeEngineConfig("max_num_seqs: 5"), {.cpu_threads = 2}));
  ExpectSame(expected, Generate(weights, requests,
                                MakeEngineConfig("max_num_seqs: 5 max_num_batched_tokens: 7"),
                                {.cpu_threads = 2}, &stats));
  EXPECT_EQ(stats.preemptions, 0);
  // Six pages of 16 tokens; one sample may take four.
  const int64_t bytes = 6 * PagedKvCache::PageBytes(SmallConfig(), at::kFloat);
  ExpectSame(expected,
             Generate(weights, requests, MakeEngineConfig("cache_bytes: ", bytes), {}, &stats));
  EXPECT_GT(stats.preemptions, 0);
  EXPECT_GT(stats.recomputed_tokens, 0);
  EXPECT_EQ(stats.num_pages, 6);
  std::reverse(requests.begin(), requests.end());
  ExpectSame(expected,
             Generate(weights, requests, MakeEngineConfig("max_num_seqs: 7"), {.cpu_threads = 3}));
  GenerateRequest part = Request(5, 2);  // Two of a group's six samples, generated alone.
  part.first_index = 3;
  const SampleMap alone = Generate(weights, {part}, {}, {.cpu_threads = 1});
  ASSERT_EQ(alone.size(), 2u);
  ExpectPart(alone, expected);
}

TEST(TransformerEngine, DraftTokensChangeNoBit) {
  const std::shared_ptr<Weights> weights = SmallWeights();
  std::vector<GenerateRequest> requests;
  for (uint64_t id = 0; id < 6; ++id) {
    requests.push_back(Request(id, 3));
    // At low temperature samples repeat themselves.
    requests.back().sampling.temperature = id % 2 == 0 ? 0 : 0.1;
    requests.back().sampling.max_tokens = 100;
    requests.back().sampling.stop_ids.clear();
  }
  EngineStats plain, speculating;
  const SampleMap expected =
      Generate(weights, requests, MakeEngineConfig("max_num_seqs: 32"), {}, &plain);
  ExpectSame(expected, Generate(weights, requests,
                                MakeEngineConfig("max_num_seqs: 32 num_speculative_tokens: 8"), {},
                                &speculating));
  EXPECT_GT(speculating.accepted_tokens, 200);
  EXPECT_LT(speculating.decode_steps, plain.decode_steps);
  const int64_t page = PagedKvCache::PageBytes(SmallConfig(), at::kFloat);
  ExpectSame(expected,
             Generate(weights, requests,
                      MakeEngineConfig("max_num_seqs: 7 num_speculative_tokens: 8 cache_bytes: ",
                                       20 * page),
                      {.cpu_threads = 2}, &speculating));
  EXPECT_GT(speculating.preemptions, 0);
}

TEST(TransformerEngine, KeptPrefixesChangeNoBit) {
  const std::shared_ptr<Weights> weights = SmallWeights();
  absl::StatusOr<std::unique_ptr<Engine>> engine =
      MakeBatchedEngine(weights, MakeEngineConfig("max_num_seqs: 4 enable_prefix_caching: true"));
  ASSERT_TRUE(engine.ok());
  for (uint64_t id = 1; id < 5; ++id) {
    GenerateRequest request = Request(id, 2);
    std::vector<int32_t> prompt(50, 9);
    prompt.insert(prompt.end(), request.prompt.begin(), request.prompt.end());
    request.prompt = prompt;
    const SampleMap expected = Generate(weights, {request}, MakeEngineConfig("max_num_seqs: 4"));
    ASSERT_TRUE((*engine)->Submit(request).ok());
    SampleMap samples;
    for (int i = 0; i < 2; ++i) {
      absl::StatusOr<Sample> sample = (*engine)->Next(absl::Now() + absl::Seconds(60));
      ASSERT_TRUE(sample.ok());
      samples[{id, sample->index}] = *std::move(sample);
    }
    ExpectSame(expected, samples);
  }
  EXPECT_EQ((*engine)->Stats().cached_tokens, 3 * 48) << "three pages of 16";
}

// The expected samples come from the simplest engine: it computes the whole sequence for each
// token.
TEST(TransformerEngine, SamplesAreThoseOfAFullRecomputation) {
  const std::shared_ptr<Weights> weights = SmallWeights();
  const std::vector<GenerateRequest> requests = {Request(1, 3), Request(2, 2), Request(7, 3)};
  const Transformer transformer(SmallConfig(), weights);
  PagedKvCache cache(SmallConfig(), 8, at::kCPU, at::kFloat);
  const std::vector<int32_t> pages = {3, 1, 0, 2, 4, 7, 6, 5};
  Sampler sampler;
  double worst = 0;
  for (const auto& [name, sample] :
       Generate(weights, requests, MakeEngineConfig("max_num_seqs: 4"))) {
    const GenerateRequest& request =
        *std::find_if(requests.begin(), requests.end(),
                      [id = name.first](const GenerateRequest& r) { return r.id == id; });
    std::vector<int32_t> sequence = request.prompt;
    for (int t = 0; t < static_cast<int>(sample.tokens.size()); ++t) {
      const double uniform = TokenUniform(request.key, sample.index, t);
      const auto draw = [&](const at::Tensor& logits) {
        const at::Tensor row = logits.select(0, logits.size(0) - 1).contiguous();
        return *sampler.Draw({row.const_data_ptr<float>(), static_cast<size_t>(row.numel())},
                             request.sampling, uniform);
      };
      const TokenDraw same = draw(transformer.Step(
          {{.tokens = sequence, .count = std::ssize(sequence), .pages = pages, .draws = 1}},
          &cache));
      ASSERT_EQ(same.token, sample.tokens[t]);
      ASSERT_EQ(same.log_prob, sample.log_probs[t]) << "bit for bit";
      const TokenDraw forward = draw(transformer.Logits(PackSequences({sequence})));
      ASSERT_EQ(forward.token, sample.tokens[t]);
      worst = std::max<double>(worst, std::abs(forward.log_prob - sample.log_probs[t]));
      sequence.push_back(sample.tokens[t]);
    }
  }
  EXPECT_LT(worst, 1e-5);
}

TEST(TransformerEngine, LogProbsAreTheLearners) {
  const std::shared_ptr<Weights> weights = SmallWeights();
  const std::vector<GenerateRequest> requests = {Request(1, 4), Request(2, 4), Request(3, 4)};
  const Transformer transformer(SmallConfig(), weights);
  double worst = 0;
  double sum = 0;
  int64_t tokens = 0;
  for (const auto& [name, sample] :
       Generate(weights, requests, MakeEngineConfig("max_num_seqs: 8"), {.cpu_threads = 2})) {
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

TEST(TransformerEngine, PromptLogProbsAreTheLearners) {
  const std::shared_ptr<Weights> weights = SmallWeights();
  const Transformer transformer(SmallConfig(), weights);
  std::map<int, std::vector<GenerateRequest::PromptLogProbs>> by_chunk;
  for (const int step_tokens : {5, 16, 200}) {  // one chunk, and many
    std::vector<GenerateRequest> requests;
    std::vector<GenerateRequest::PromptLogProbs>& told = by_chunk[step_tokens];
    told.resize(4);
    for (uint64_t id = 0; id < 4; ++id) {
      GenerateRequest request = Request(id, 2);
      request.top_prompt_log_probs = 4;
      request.on_prompt_log_probs = [&told, id](const auto& prompt) { told[id] = *prompt; };
      requests.push_back(request);
    }
    Generate(weights, requests,
             MakeEngineConfig("max_num_seqs: 4 max_num_batched_tokens: ", step_tokens),
             {.cpu_threads = 2});
    double worst = 0;
    for (const GenerateRequest& request : requests) {
      const PackedBatch batch = PackSequences({request.prompt});
      const at::Tensor expected =
          transformer.Forward(batch, NextTokenTargets(batch), 1.0, nullptr).log_probs;
      ASSERT_EQ(told[request.id].size(), request.prompt.size() - 1);
      for (size_t t = 0; t < told[request.id].size(); ++t) {
        const TokenLogProbs& found = told[request.id][t];
        EXPECT_EQ(found.token.token, request.prompt[t + 1]);
        EXPECT_EQ(found.top.size(), 4u);
        worst = std::max<double>(
            worst, std::abs(found.token.log_prob - expected.const_data_ptr<float>()[t]));
        EXPECT_EQ(found.token.log_prob, by_chunk[5][request.id][t].token.log_prob)
            << "to the bit, however the prompt is cut";
      }
    }
    EXPECT_LT(worst, 2e-4);
    RecordProperty(absl::StrCat("worst_difference_", step_tokens), absl::StrCat(worst));
  }
}

TEST(TransformerEngine, GreedyIsTheArgmaxOfAFullRecomputation) {
  const std::shared_ptr<Weights> weights = SmallWeights();
  GenerateRequest request = Request(2, 1);
  request.sampling.temperature = 0;
  request.sampling.stop_ids.clear();
  const SampleMap samples = Generate(weights, {request}, {}, {.cpu_threads = 2});
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

}  // namespace
}  // namespace tritonrl
