// The engine over a transformer: shared weights, sleep mode, weight updates, and requests and
// settings that it refuses.
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "model/paged_cache.h"
#include "rollout/factory/make_engine.h"
#include "rollout/testing/small_engine_fixture.h"

namespace tritonrl {
namespace {

TEST(TransformerEngine, SeesTheLearnersWeights) {
  const std::shared_ptr<Weights> weights = SmallWeights();
  absl::StatusOr<std::unique_ptr<Engine>> engine =
      MakeBatchedEngine(weights, MakeEngineConfig("max_num_seqs: 2"));
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

// After each update the cache is a new one at other addresses.
TEST(TransformerEngine, MemoryGivenBackForUpdatesChangesNoSample) {
  const std::shared_ptr<Weights> weights = SmallWeights();
  const SampleMap expected = Generate(weights, {Request(1, 4)}, {});
  absl::StatusOr<std::unique_ptr<Engine>> engine =
      MakeBatchedEngine(weights, MakeEngineConfig("max_num_seqs: 3 enable_sleep_mode: true"));
  ASSERT_TRUE(engine.ok());
  for (uint64_t round = 1; round <= 3; ++round) {
    ASSERT_TRUE((*engine)->Submit(Request(1, 4)).ok());
    if (round == 2) {
      ASSERT_TRUE((*engine)->PauseForWeightUpdate(Engine::KvPolicy::kInvalidate).ok());
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
  EXPECT_GT((*engine)->Stats().sleep_seconds, 0);
}

TEST(TransformerEngine, ARunnerWithoutItsMemoryRunsNoStep) {
  auto runner = MakeModelRunner(SmallWeights(), MakeEngineConfig("max_num_seqs: 2"));
  ASSERT_TRUE(runner.ok()) << runner.status();
  const int pages = (*runner)->num_pages();
  ASSERT_TRUE((*runner)->Sleep().ok());
  EXPECT_TRUE((*runner)->Sleep().ok());
  EXPECT_EQ((*runner)->num_pages(), pages);
  EXPECT_EQ((*runner)->Launch({}).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE((*runner)->Wake().ok());
  EXPECT_TRUE((*runner)->Wake().ok());
  const std::vector<int32_t> tokens = {1, 2}, page = {0};
  ModelStep step;
  step.slices.push_back({.tokens = tokens, .count = 2, .pages = page});
  ASSERT_TRUE((*runner)->Launch(step).ok());
  EXPECT_EQ((*runner)->Sleep().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE((*runner)->Collect().ok());
}

TEST(TransformerEngine, APausedSampleGoesOnAsFromItsTokensUnderTheNewWeights) {
  const std::shared_ptr<Weights> weights = SmallWeights();
  absl::StatusOr<std::unique_ptr<Engine>> engine =
      MakeBatchedEngine(weights, MakeEngineConfig("max_num_seqs: 2"));
  ASSERT_TRUE(engine.ok());
  GenerateRequest request = Request(1, 1);
  request.sampling.temperature = 0;
  request.sampling.max_tokens = 60;
  request.sampling.stop_ids.clear();
  // Holds the engine at the fifth token until the update has been requested.
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
  ASSERT_TRUE((*engine)->PauseForWeightUpdate(Engine::KvPolicy::kInvalidate).ok());
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
  const Sample rest =
      Generate(weights, {request}, MakeEngineConfig("max_num_seqs: 2")).begin()->second;
  ASSERT_EQ(rest.tokens.size() + cut, sample->tokens.size());
  for (size_t t = 0; t < rest.tokens.size(); ++t) {
    EXPECT_EQ(sample->tokens[cut + t], rest.tokens[t]);
    EXPECT_EQ(sample->log_probs[cut + t], rest.log_probs[t]) << "bit for bit";
  }
}

TEST(TransformerEngine, DamagedWeightsEndWithASentence) {
  const std::shared_ptr<Weights> weights = SmallWeights();
  at::Tensor(weights->Get("model.norm.weight")).fill_(std::nan(""));
  absl::StatusOr<std::unique_ptr<Engine>> engine =
      MakeBatchedEngine(weights, MakeEngineConfig("max_num_seqs: 2"));
  ASSERT_TRUE(engine.ok());
  ASSERT_TRUE((*engine)->Submit(Request(1, 1)).ok());
  absl::StatusOr<Sample> sample = (*engine)->Next(absl::Now() + absl::Seconds(60));
  ASSERT_TRUE(sample.ok()) << sample.status();
  EXPECT_EQ(sample->finish_reason, FinishReason::kFailed);
  const absl::Status status = FailureOf(*sample);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_NE(status.message().find("not finite"), absl::string_view::npos) << status;
  EXPECT_EQ((*engine)->Stats().failed_samples, 1);
  // The engine continues.
  EXPECT_TRUE((*engine)->Submit(Request(2, 1)).ok());
}

TEST(TransformerEngine, ImpossibleSizesAreErrors) {
  const std::shared_ptr<Weights> weights = SmallWeights();
  const auto says = [&](const EngineConfig& config, const EngineContext& context,
                        absl::StatusCode code, absl::string_view part) {
    const absl::Status status = MakeBatchedEngine(weights, config, context).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_NE(status.message().find(part), absl::string_view::npos) << status;
  };
  const auto invalid = absl::StatusCode::kInvalidArgument;
  says({}, {.max_length = 129}, invalid, "max_position_embeddings is 128");
  says(MakeEngineConfig("max_num_seqs: -1"), {}, invalid, "max_num_seqs is -1");
  says(MakeEngineConfig("max_num_seqs: 2000000000"), {}, invalid, "max_num_seqs is 2000000000");
  says(MakeEngineConfig("max_num_batched_tokens: -1"), {}, invalid, "max_num_batched_tokens is -1");
  says(MakeEngineConfig("cache_bytes: 100"), {}, invalid, "16 tokens of this model take 8192");
  says(MakeEngineConfig("cache_bytes: ", int64_t{1} << 60), {},
       absl::StatusCode::kResourceExhausted, "1099511627776 MiB");
}

TEST(TransformerEngine, IsBatchInvariantInFp32Alone) {
  EXPECT_TRUE(MakeBatchedEngine(SmallWeights(), MakeEngineConfig("batch_invariant: true")).ok());
  const absl::Status status =
      MakeBatchedEngine(Weights::RandomInit(SmallConfig(), 5, at::kCPU, at::kBFloat16),
                        MakeEngineConfig("batch_invariant: true"))
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("BFloat16 on cpu"), absl::string_view::npos) << status;
}

TEST(TransformerEngine, HasNoEightBitNumbers) {
  const absl::Status cache =
      MakeBatchedEngine(SmallWeights(), MakeEngineConfig("fp8_kv_cache: true")).status();
  EXPECT_EQ(cache.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(cache.message().find("fp8_kv_cache is for bf16 weights on a GPU"),
            absl::string_view::npos)
      << cache;
  const absl::Status weights =
      MakeBatchedEngine(SmallWeights(), MakeEngineConfig("fp8_weights: true")).status();
  EXPECT_EQ(weights.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(weights.message().find("fp8_weights is for"), absl::string_view::npos) << weights;
}

TEST(TransformerEngine, ARequestLargerThanTheMemoryIsRefused) {
  const int64_t bytes = 2 * PagedKvCache::PageBytes(SmallConfig(), at::kFloat);
  absl::StatusOr<std::unique_ptr<Engine>> engine =
      MakeBatchedEngine(SmallWeights(), MakeEngineConfig("cache_bytes: ", bytes));
  ASSERT_TRUE(engine.ok()) << engine.status();
  const absl::Status status = (*engine)->Submit(Request(1, 1));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("do not fit the cache of 32 tokens"), absl::string_view::npos)
      << status;
}

}  // namespace
}  // namespace tritonrl
