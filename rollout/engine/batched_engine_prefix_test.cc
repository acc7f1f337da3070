// Prefix caching: prompts that share a prefix with earlier prompts or samples.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <vector>

#include "rollout/testing/fake_model_runner.h"

namespace tritonrl {
namespace {

// A prompt of up to 24 tokens, composed of two kinds of blocks so that prefixes recur.
GenerateRequest FromBlocks(uint64_t id, Philox* random) {
  GenerateRequest request = Request(id, 1 + static_cast<int>(random->Below(3)), 30);
  request.prompt.clear();
  const uint64_t blocks = 1 + random->Below(6);
  for (uint64_t block = 0; block < blocks; ++block) {
    const auto kind = static_cast<int32_t>(random->Below(2));
    for (int32_t t = 0; t < FakeModelRunner::kPage; ++t) request.prompt.push_back(10 * kind + t);
  }
  if (random->Below(2) == 0) request.prompt.pop_back();
  return request;
}

EngineStats RunAlike(const FakeModelRunner::Options& runner_options, int num_speculative_tokens) {
  SCOPED_TRACE(testing::Message() << runner_options.num_pages << " pages, "
                                  << runner_options.in_flight << " in flight, "
                                  << num_speculative_tokens << " draft tokens");
  BatchedEngine engine(std::make_unique<FakeModelRunner>(runner_options),
                       MakeEngineConfig("num_speculative_tokens: ", num_speculative_tokens,
                                        " always_speculate: true enable_prefix_caching: true"));
  Philox random(2);
  std::map<uint64_t, GenerateRequest> requests;
  for (uint64_t id = 0; id < 60; ++id) {
    requests[id] = FromBlocks(id, &random);
    EXPECT_TRUE(engine.Submit(requests[id]).ok());
    while (engine.Outstanding() > 12) {
      const absl::StatusOr<Sample> sample = engine.Next(Soon());
      if (!sample.ok()) {
        ADD_FAILURE() << sample.status();
        return {};
      }
      ExpectSame(*sample, Reference(requests.at(sample->request_id), sample->index));
    }
  }
  return engine.Stats();
}

TEST(BatchedEnginePrefix, SamplesAreTheSameAndPromptsComputedOnce) {
  for (int in_flight : {1, 2}) {
    for (int num_speculative_tokens : {0, 4}) {
      for (int pages : {14, 30, 200}) {
        const EngineStats stats =
            RunAlike({.num_pages = pages, .in_flight = in_flight}, num_speculative_tokens);
        EXPECT_GT(stats.cached_tokens, pages == 14 ? 0 : 100);
      }
    }
  }
}

GenerateRequest Conversation(uint64_t id, const std::vector<int32_t>& prompt) {
  GenerateRequest request = Request(id, 1, 12);
  request.sampling.stop_ids.clear();
  request.prompt = prompt;
  return request;
}

TEST(BatchedEnginePrefix, ASecondTurnFindsTheFirst) {
  BatchedEngine engine(std::make_unique<FakeModelRunner>(FakeModelRunner::Options{}),
                       MakeEngineConfig("enable_prefix_caching: true"));
  std::vector<int32_t> prompt = {1, 2, 3, 4, 5};
  ASSERT_TRUE(engine.Submit(Conversation(1, prompt)).ok());
  const absl::StatusOr<Sample> answer = engine.Next(Soon());
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(engine.Stats().cached_tokens, 0);
  prompt.insert(prompt.end(), answer->tokens.begin(), answer->tokens.end());
  prompt.insert(prompt.end(), {8, 9});
  ASSERT_TRUE(engine.Submit(Conversation(2, prompt)).ok());
  ExpectSame(*engine.Next(Soon()), Reference(Conversation(2, prompt), 0));
  EXPECT_EQ(engine.Stats().cached_tokens, 16) << "5 + 12 tokens, without the last, in pages of 4";
}

TEST(BatchedEnginePrefix, NothingOutlivesAnUpdateOfTheWeights) {
  auto owned = std::make_unique<FakeModelRunner>(FakeModelRunner::Options{});
  FakeModelRunner* runner = owned.get();
  BatchedEngine engine(std::move(owned), MakeEngineConfig("enable_prefix_caching: true"));
  const std::vector<int32_t> prompt = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  for (uint64_t round = 0; round < 4; ++round) {
    ASSERT_TRUE(engine.Submit(Conversation(1, prompt)).ok());
    const absl::StatusOr<Sample> sample = engine.Next(Soon());
    ASSERT_TRUE(sample.ok());
    // The expected draw reads only cache entries of the current weights.
    std::vector<int32_t> entries;
    for (const int32_t token : prompt) entries.push_back(CacheEntry(token, runner->weights));
    const TokenDraw first = *Sampler().Draw(FakeLogits(entries), SamplingSettings(),
                                            TokenUniform(Conversation(1, prompt).key, 0, 0));
    EXPECT_EQ(sample->tokens.at(0), first.token);
    EXPECT_EQ(sample->log_probs.at(0), first.log_prob);
    ASSERT_TRUE(round % 2 == 0 ? engine.BeginWeightUpdate().ok()
                               : engine.PauseForWeightUpdate(Engine::KvPolicy::kKeep).ok());
    runner->weights = static_cast<int>(round) + 1;
    engine.EndWeightUpdate(7);  // a version may repeat
  }
  EXPECT_EQ(engine.Stats().cached_tokens, 0);
}

// A sample that continues over an update with KvPolicy::kKeep leaves nothing in the prefix cache.
TEST(BatchedEnginePrefix, NorDoesWhatRanWhileTheyChanged) {
  auto owned = std::make_unique<FakeModelRunner>(FakeModelRunner::Options{.in_flight = 2});
  FakeModelRunner* runner = owned.get();
  BatchedEngine engine(std::move(owned), MakeEngineConfig("enable_prefix_caching: true"));
  absl::Notification moment;
  runner->before_launch = [&](int launch) {
    if (launch != 8) return;
    moment.Notify();
    while (!absl::IsFailedPrecondition(engine.Submit(Request(1, 1)))) {
      absl::SleepFor(absl::Milliseconds(1));
    }
  };
  GenerateRequest request = Conversation(1, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  request.sampling.max_tokens = 40;
  ASSERT_TRUE(engine.Submit(request).ok());
  moment.WaitForNotification();
  ASSERT_TRUE(engine.PauseForWeightUpdate(Engine::KvPolicy::kKeep).ok());
  runner->weights = 1;
  engine.EndWeightUpdate(1);
  ASSERT_EQ(engine.Next(Soon())->versions.size(), 2u);
  ASSERT_TRUE(engine.Submit(request).ok());
  ASSERT_TRUE(engine.Next(Soon()).ok());
  EXPECT_EQ(engine.Stats().cached_tokens, 0);
}

}  // namespace
}  // namespace tritonrl
