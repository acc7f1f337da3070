#include "rollout/make_engine.h"

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "model/packed_batch.h"
#include "model/paged_cache.h"
#include "model/transformer.h"
#include "rollout/sampler.h"

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
                   const std::vector<GenerateRequest>& requests, const EngineOptions& options,
                   EngineStats* stats = nullptr, int max_guesses = 0) {
  absl::StatusOr<std::unique_ptr<Engine>> engine =
      MakeBatchedEngine(weights, options, {.max_guesses = max_guesses, .always_guess = true});
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

TEST(TransformerEngine, SamplesDoNotDependOnBatchMemoryChunksOrThreads) {
  const std::shared_ptr<Weights> weights = SmallWeights();
  std::vector<GenerateRequest> requests;
  for (uint64_t id = 0; id < 6; ++id) requests.push_back(Request(id, 1 + static_cast<int>(id)));
  EngineStats stats;
  const SampleMap expected = Generate(weights, requests, {.cpu_threads = 2}, &stats);
  ASSERT_EQ(expected.size(), 21u);
  EXPECT_EQ(stats.preemptions, 0);
  EXPECT_EQ(stats.prompt_tokens, 3 + 8 + 13 + 18 + 3 + 8);
  ExpectSame(expected, Generate(weights, requests, {.max_running = 1, .cpu_threads = 1}));
  ExpectSame(expected, Generate(weights, requests, {.max_running = 5, .cpu_threads = 2}));
  ExpectSame(expected,
             Generate(weights, requests, {.max_running = 5, .max_step_tokens = 7, .cpu_threads = 2},
                      &stats));
  EXPECT_EQ(stats.preemptions, 0);
  // Six pages of 16 tokens: one sample may take four.
  const int64_t bytes = 6 * PagedCache::PageBytes(SmallConfig(), at::kFloat);
  ExpectSame(expected, Generate(weights, requests, {.cache_bytes = bytes}, &stats));
  EXPECT_GT(stats.preemptions, 0);
  EXPECT_GT(stats.recomputed_tokens, 0);
  EXPECT_EQ(stats.num_pages, 6);
  std::reverse(requests.begin(), requests.end());
  ExpectSame(expected, Generate(weights, requests, {.max_running = 7, .cpu_threads = 3}));
  GenerateRequest part = Request(5, 2);  // Two of the six samples of a group, alone.
  part.first_index = 3;
  const SampleMap alone = Generate(weights, {part}, {.cpu_threads = 1});
  ASSERT_EQ(alone.size(), 2u);
  ExpectSame(alone, expected);
}

TEST(TransformerEngine, GuessesChangeNoBit) {
  const std::shared_ptr<Weights> weights = SmallWeights();
  std::vector<GenerateRequest> requests;
  for (uint64_t id = 0; id < 6; ++id) {
    requests.push_back(Request(id, 3));
    // Cold enough to repeat itself.
    requests.back().sampling.temperature = id % 2 == 0 ? 0 : 0.1;
    requests.back().sampling.max_tokens = 100;
    requests.back().sampling.stop_ids.clear();
  }
  EngineStats plain, guessing;
  const SampleMap expected = Generate(weights, requests, {.max_running = 32}, &plain);
  ExpectSame(expected, Generate(weights, requests, {.max_running = 32}, &guessing, 8));
  EXPECT_GT(guessing.guessed_right, 200);
  EXPECT_LT(guessing.decode_steps, plain.decode_steps);
  const int64_t page = PagedCache::PageBytes(SmallConfig(), at::kFloat);
  ExpectSame(expected, Generate(weights, requests,
                                {.max_running = 7, .cache_bytes = 20 * page, .cpu_threads = 2},
                                &guessing, 8));
  EXPECT_GT(guessing.preemptions, 0);
}

TEST(TransformerEngine, KeptPrefixesChangeNoBit) {
  const std::shared_ptr<Weights> weights = SmallWeights();
  absl::StatusOr<std::unique_ptr<Engine>> engine =
      MakeBatchedEngine(weights, {.max_running = 4}, {.keep_prefixes = true});
  ASSERT_TRUE(engine.ok());
  for (uint64_t id = 1; id < 5; ++id) {
    GenerateRequest request = Request(id, 2);
    std::vector<int32_t> prompt(50, 9);
    prompt.insert(prompt.end(), request.prompt.begin(), request.prompt.end());
    request.prompt = prompt;
    const SampleMap expected = Generate(weights, {request}, {.max_running = 4});
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

// The engine in its simplest form: every token from a computation of the whole sequence.
TEST(TransformerEngine, SamplesAreThoseOfAFullRecomputation) {
  const std::shared_ptr<Weights> weights = SmallWeights();
  const std::vector<GenerateRequest> requests = {Request(1, 3), Request(2, 2), Request(7, 3)};
  const Transformer transformer(SmallConfig(), weights);
  PagedCache cache(SmallConfig(), 8, at::kCPU, at::kFloat);
  const std::vector<int32_t> pages = {3, 1, 0, 2, 4, 7, 6, 5};
  Sampler sampler;
  double worst = 0;
  for (const auto& [name, sample] : Generate(weights, requests, {.max_running = 4})) {
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
      const TokenDraw same = draw(transformer.Step({{sequence, 0, pages, 1}}, &cache));
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
       Generate(weights, requests, {.max_running = 8, .cpu_threads = 2})) {
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
  const SampleMap samples = Generate(weights, {request}, {.cpu_threads = 2});
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
  absl::StatusOr<std::unique_ptr<Engine>> engine = MakeBatchedEngine(weights, {.max_running = 2});
  ASSERT_TRUE(engine.ok());
  ASSERT_TRUE((*engine)->BeginWeightUpdate().ok());
  at::Tensor(weights->flat()).mul_(0.7);
  (*engine)->EndWeightUpdate(1);
  ASSERT_TRUE((*engine)->Submit(Request(1, 1)).ok());
  absl::StatusOr<Sample> sample = (*engine)->Next(absl::Now() + absl::Seconds(60));
  ASSERT_TRUE(sample.ok()) << sample.status();
  EXPECT_EQ(sample->versions.at(0).version, 1u);
  const SampleMap expected = Generate(weights->Clone(), {Request(1, 1)}, {});
  EXPECT_EQ(sample->log_probs, expected.begin()->second.log_probs);
  const SampleMap before = Generate(SmallWeights(), {Request(1, 1)}, {});
  EXPECT_NE(sample->log_probs, before.begin()->second.log_probs);
}

// The cache is another one after each update, at other addresses.
TEST(TransformerEngine, MemoryGivenBackForUpdatesChangesNoSample) {
  const std::shared_ptr<Weights> weights = SmallWeights();
  const SampleMap expected = Generate(weights, {Request(1, 4)}, {});
  absl::StatusOr<std::unique_ptr<Engine>> engine =
      MakeBatchedEngine(weights, {.max_running = 3, .release_memory = true});
  ASSERT_TRUE(engine.ok());
  for (uint64_t round = 1; round <= 3; ++round) {
    ASSERT_TRUE((*engine)->Submit(Request(1, 4)).ok());
    if (round == 2) {
      ASSERT_TRUE((*engine)->PauseForWeightUpdate(Engine::OldCache::kForget).ok());
      (*engine)->EndWeightUpdate(round);
    }
    while ((*engine)->Outstanding() > 0) {
      absl::StatusOr<Sample> sample = (*engine)->Next(absl::Now() + absl::Seconds(60));
      ASSERT_TRUE(sample.ok()) << sample.status();
      EXPECT_EQ(sample->log_probs, expected.at({1, sample->index}).log_probs);
      EXPECT_EQ(sample->tokens, expected.at({1, sample->index}).tokens);
    }
    ASSERT_TRUE((*engine)->BeginWeightUpdate().ok());
    (*engine)->EndWeightUpdate(round);
  }
  EXPECT_GT((*engine)->Stats().release_seconds, 0);
}

TEST(TransformerEngine, ARunnerWithoutItsMemoryRunsNoStep) {
  auto runner = MakeModelRunner(SmallWeights(), {.max_running = 2});
  ASSERT_TRUE(runner.ok()) << runner.status();
  const int pages = (*runner)->num_pages();
  ASSERT_TRUE((*runner)->ReleaseMemory().ok());
  EXPECT_TRUE((*runner)->ReleaseMemory().ok());
  EXPECT_EQ((*runner)->num_pages(), pages);
  EXPECT_EQ((*runner)->Launch({}).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE((*runner)->TakeMemory().ok());
  EXPECT_TRUE((*runner)->TakeMemory().ok());
  const std::vector<int32_t> tokens = {1, 2}, page = {0};
  ModelStep step;
  step.slices.push_back({.tokens = tokens, .count = 2, .pages = page});
  ASSERT_TRUE((*runner)->Launch(step).ok());
  EXPECT_EQ((*runner)->ReleaseMemory().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE((*runner)->Collect().ok());
}

TEST(TransformerEngine, APausedSampleGoesOnAsFromItsTokensUnderTheNewWeights) {
  const std::shared_ptr<Weights> weights = SmallWeights();
  absl::StatusOr<std::unique_ptr<Engine>> engine = MakeBatchedEngine(weights, {.max_running = 2});
  ASSERT_TRUE(engine.ok());
  GenerateRequest request = Request(1, 1);
  request.sampling.temperature = 0;
  request.sampling.max_tokens = 60;
  request.sampling.stop_ids.clear();
  // The fifth token is held up until the update has been asked for.
  absl::Notification some, asked;
  request.on_token = [&, drawn = 0](int, int32_t, float) mutable {
    if (++drawn != 5) return;
    some.Notify();
    asked.WaitForNotification();
  };
  ASSERT_TRUE((*engine)->Submit(request).ok());
  some.WaitForNotification();
  std::thread watch([&] {
    while (!absl::IsFailedPrecondition((*engine)->Submit(request))) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    asked.Notify();
  });
  ASSERT_TRUE((*engine)->PauseForWeightUpdate(Engine::OldCache::kForget).ok());
  watch.join();
  at::Tensor(weights->flat()).mul_(0.7);
  (*engine)->EndWeightUpdate(1);
  absl::StatusOr<Sample> sample = (*engine)->Next(absl::Now() + absl::Seconds(60));
  ASSERT_TRUE(sample.ok()) << sample.status();
  ASSERT_EQ(sample->versions.size(), 2u);
  const auto cut = static_cast<size_t>(sample->versions[0].tokens);

  request.on_token = nullptr;
  request.prompt.insert(request.prompt.end(), sample->tokens.begin(),
                        sample->tokens.begin() + static_cast<int64_t>(cut));
  request.sampling.max_tokens -= static_cast<int>(cut);
  const Sample rest = Generate(weights, {request}, {.max_running = 2}).begin()->second;
  ASSERT_EQ(rest.tokens.size() + cut, sample->tokens.size());
  for (size_t t = 0; t < rest.tokens.size(); ++t) {
    EXPECT_EQ(sample->tokens[cut + t], rest.tokens[t]);
    EXPECT_EQ(sample->log_probs[cut + t], rest.log_probs[t]) << "bit for bit";
  }
}

TEST(TransformerEngine, DamagedWeightsEndWithASentence) {
  const std::shared_ptr<Weights> weights = SmallWeights();
  at::Tensor(weights->Get("model.norm.weight")).fill_(std::nan(""));
  absl::StatusOr<std::unique_ptr<Engine>> engine = MakeBatchedEngine(weights, {.max_running = 2});
  ASSERT_TRUE(engine.ok());
  ASSERT_TRUE((*engine)->Submit(Request(1, 1)).ok());
  absl::StatusOr<Sample> sample = (*engine)->Next(absl::Now() + absl::Seconds(60));
  ASSERT_TRUE(sample.ok()) << sample.status();
  EXPECT_EQ(sample->finish_reason, FinishReason::kFailed);
  const absl::Status status = FailureOf(*sample);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_NE(status.message().find("not finite"), absl::string_view::npos) << status;
  EXPECT_EQ((*engine)->Stats().failed_samples, 1);
  // The engine goes on.
  EXPECT_TRUE((*engine)->Submit(Request(2, 1)).ok());
}

TEST(TransformerEngine, ImpossibleSizesAreErrors) {
  const std::shared_ptr<Weights> weights = SmallWeights();
  const auto says = [&](const EngineOptions& options, absl::StatusCode code,
                        absl::string_view part) {
    const absl::Status status = MakeBatchedEngine(weights, options).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_NE(status.message().find(part), absl::string_view::npos) << status;
  };
  const auto invalid = absl::StatusCode::kInvalidArgument;
  says({.max_length = 129}, invalid, "max_position_embeddings is 128");
  says({.max_running = -1}, invalid, "max_running is -1");
  says({.max_running = 2000000000}, invalid, "max_running is 2000000000");
  says({.max_step_tokens = -1}, invalid, "max_step_tokens -1");
  says({.cache_bytes = 100}, invalid, "16 tokens of this model take 8192");
  says({.cache_bytes = int64_t{1} << 60}, absl::StatusCode::kResourceExhausted,
       "1099511627776 MiB");
}

TEST(TransformerEngine, IsBatchInvariantInFp32Alone) {
  EXPECT_TRUE(MakeBatchedEngine(SmallWeights(), {.batch_invariant = true}).ok());
  const absl::Status status =
      MakeBatchedEngine(Weights::RandomInit(SmallConfig(), 5, at::kCPU, at::kBFloat16),
                        {.batch_invariant = true})
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("BFloat16 on cpu"), absl::string_view::npos) << status;
}

TEST(TransformerEngine, HasNoEightBitNumbers) {
  const absl::Status cache = MakeBatchedEngine(SmallWeights(), {.fp8_cache = true}).status();
  EXPECT_EQ(cache.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(cache.message().find("fp8_cache is for bf16 weights on a GPU"), absl::string_view::npos)
      << cache;
  const absl::Status weights = MakeBatchedEngine(SmallWeights(), {.fp8_weights = true}).status();
  EXPECT_EQ(weights.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(weights.message().find("fp8_weights is for"), absl::string_view::npos) << weights;
}

TEST(TransformerEngine, ARequestLargerThanTheMemoryIsRefused) {
  const int64_t bytes = 2 * PagedCache::PageBytes(SmallConfig(), at::kFloat);
  absl::StatusOr<std::unique_ptr<Engine>> engine =
      MakeBatchedEngine(SmallWeights(), {.cache_bytes = bytes});
  ASSERT_TRUE(engine.ok()) << engine.status();
  const absl::Status status = (*engine)->Submit(Request(1, 1));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("do not fit the cache of 32 tokens"), absl::string_view::npos)
      << status;
}

}  // namespace
}  // namespace tritonrl
