// The engine over a batch-invariant runner: decoded tokens are never recomputed, nor read by other
// samples.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rollout/testing/fake_model_runner.h"

namespace tritonrl {
namespace {

struct Setting {
  FakeModelRunner::Options runner;
  int num_speculative_tokens = 0;
  bool enable_prefix_caching = false;
};

// Groups with prompts of many lengths; some prompts share a prefix, some continue another group's
// sample.
std::map<uint64_t, GenerateRequest> Mixture() {
  std::map<uint64_t, GenerateRequest> requests;
  for (uint64_t id = 0; id < 16; ++id) {
    GenerateRequest request = Request(id, 1 + static_cast<int>(id * 5 % 7), 40);
    request.prompt = {1, 2};
    for (uint64_t i = 0; i < id * 3 % 23; ++i) request.prompt.push_back(static_cast<int32_t>(i));
    if (id % 3 == 0) request.sampling.stop_ids.clear();
    if (id % 4 == 3) {
      const Sample before = Reference(requests.at(id - 1), 0, 0, /*mark_decoded=*/true);
      request.prompt = requests.at(id - 1).prompt;
      request.prompt.insert(request.prompt.end(), before.tokens.begin(), before.tokens.end());
      request.sampling.max_tokens = 20;
    }
    request.sampling.temperature = id % 2 == 0 ? 1.0 : 0.3;
    requests[id] = request;
  }
  return requests;
}

// Returns the number of samples that differ from the same sample generated alone.
int Different(const Setting& setting, EngineStats* stats) {
  const auto requests = Mixture();
  BatchedEngine engine(std::make_unique<FakeModelRunner>(setting.runner),
                       MakeEngineConfig("num_speculative_tokens: ", setting.num_speculative_tokens,
                                        " always_speculate: true enable_prefix_caching: ",
                                        setting.enable_prefix_caching));
  int different = 0;
  for (const auto& [id, request] : requests) {
    EXPECT_TRUE(engine.Submit(request).ok());
    // Some requests arrive after others have left their tokens in the prefix cache.
    while (engine.Outstanding() > (id % 4 == 2 ? 0 : 20)) {
      const absl::StatusOr<Sample> sample = engine.Next(Soon());
      if (!sample.ok()) {
        ADD_FAILURE() << sample.status();
        return -1;
      }
      const Sample alone =
          Reference(requests.at(sample->request_id), sample->index, 0, /*mark_decoded=*/true);
      different += sample->tokens != alone.tokens || sample->log_probs != alone.log_probs;
    }
  }
  *stats = engine.Stats();
  return different;
}

TEST(BatchedEngineInvariant, SamplesAreThoseOfALoneOne) {
  for (const int pages : {24, 30, 200}) {
    for (const int max_num_batched_tokens : {9, 64}) {
      for (const int num_speculative_tokens : {0, 4}) {
        for (const bool enable_prefix_caching : {false, true}) {
          SCOPED_TRACE(testing::Message() << pages << " pages, steps of " << max_num_batched_tokens
                                          << ", " << num_speculative_tokens
                                          << " draft tokens, prefixes " << enable_prefix_caching);
          EngineStats stats;
          EXPECT_EQ(Different({.runner = {.max_num_seqs = 9,
                                          .num_pages = pages,
                                          .max_num_batched_tokens = max_num_batched_tokens,
                                          .in_flight = 2,
                                          .mark_decoded = true,
                                          .batch_invariant = true},
                               .num_speculative_tokens = num_speculative_tokens,
                               .enable_prefix_caching = enable_prefix_caching},
                              &stats),
                    0);
          EXPECT_EQ(stats.preemptions, 0);
          EXPECT_EQ(stats.draft_tokens > 0, num_speculative_tokens > 0);
          EXPECT_EQ(stats.cached_tokens > 0, enable_prefix_caching);
        }
      }
    }
  }
}

// The reason for the rule: without it, little memory or prefix caching changes samples.
TEST(BatchedEngineInvariant, WithoutTheRuleTheyAreNot) {
  EngineStats stats;
  EXPECT_GT(
      Different({.runner = {.max_num_seqs = 9, .num_pages = 24, .mark_decoded = true}}, &stats), 0);
  EXPECT_GT(stats.preemptions, 0);
  EXPECT_GT(Different({.runner = {.max_num_seqs = 9, .mark_decoded = true},
                       .enable_prefix_caching = true},
                      &stats),
            0);
  EXPECT_EQ(stats.preemptions, 0);
}

TEST(BatchedEngineInvariant, WeightsDoNotChangeUnderSamples) {
  auto owned = std::make_unique<FakeModelRunner>(FakeModelRunner::Options{.batch_invariant = true});
  absl::Notification gate;
  owned->gate = &gate;
  BatchedEngine engine(std::move(owned), {});
  ASSERT_TRUE(engine.Submit(Request(1, 1)).ok());
  for (const auto kv_policy : {Engine::KvPolicy::kInvalidate, Engine::KvPolicy::kKeep}) {
    const absl::Status status = engine.PauseForWeightUpdate(kv_policy);
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_NE(status.message().find("batch-invariant"), absl::string_view::npos) << status;
  }
  gate.Notify();
  ExpectSame(*engine.Next(Soon()), Reference(Request(1, 1), 0));
  ASSERT_TRUE(engine.PauseForWeightUpdate(Engine::KvPolicy::kInvalidate).ok()) << "none is left";
  engine.EndWeightUpdate(1);
  ASSERT_TRUE(engine.Submit(Request(2, 1)).ok());
  EXPECT_EQ(engine.Next(Soon())->versions.at(0).version, 1u);
}

}  // namespace
}  // namespace tritonrl
