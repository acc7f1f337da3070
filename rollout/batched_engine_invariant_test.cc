// The engine over a batch-invariant runner: what has been decoded is never computed again, nor read
// by others, whatever else runs.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rollout/hash_runner.h"

namespace tritonrl {
namespace {

struct Setting {
  HashRunner::Options runner;
  int max_guesses = 0;
  bool keep_prefixes = false;
};

// Groups of all lengths, of which some begin alike and some go on from another one's samples.
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

// How many samples are others than alone.
int Different(const Setting& setting, EngineStats* stats) {
  const auto requests = Mixture();
  BatchedEngine engine(std::make_unique<HashRunner>(setting.runner),
                       {.max_guesses = setting.max_guesses,
                        .always_guess = true,
                        .keep_prefixes = setting.keep_prefixes});
  int different = 0;
  for (const auto& [id, request] : requests) {
    EXPECT_TRUE(engine.Submit(request).ok());
    // Some come when others have left their tokens.
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
    for (const int max_step_tokens : {9, 64}) {
      for (const int max_guesses : {0, 4}) {
        for (const bool keep_prefixes : {false, true}) {
          SCOPED_TRACE(testing::Message() << pages << " pages, steps of " << max_step_tokens << ", "
                                          << max_guesses << " guesses, prefixes " << keep_prefixes);
          EngineStats stats;
          EXPECT_EQ(Different({.runner = {.max_running = 9,
                                          .num_pages = pages,
                                          .max_step_tokens = max_step_tokens,
                                          .in_flight = 2,
                                          .mark_decoded = true,
                                          .batch_invariant = true},
                               .max_guesses = max_guesses,
                               .keep_prefixes = keep_prefixes},
                              &stats),
                    0);
          EXPECT_EQ(stats.preemptions, 0);
          EXPECT_EQ(stats.guessed_tokens > 0, max_guesses > 0);
          EXPECT_EQ(stats.cached_tokens > 0, keep_prefixes);
        }
      }
    }
  }
}

// What the rule is for: without it little memory, or prefixes, change samples.
TEST(BatchedEngineInvariant, WithoutTheRuleTheyAreNot) {
  EngineStats stats;
  EXPECT_GT(
      Different({.runner = {.max_running = 9, .num_pages = 24, .mark_decoded = true}}, &stats), 0);
  EXPECT_GT(stats.preemptions, 0);
  EXPECT_GT(Different({.runner = {.max_running = 9, .mark_decoded = true}, .keep_prefixes = true},
                      &stats),
            0);
  EXPECT_EQ(stats.preemptions, 0);
}

TEST(BatchedEngineInvariant, WeightsDoNotChangeUnderSamples) {
  auto owned = std::make_unique<HashRunner>(HashRunner::Options{.batch_invariant = true});
  absl::Notification gate;
  owned->gate = &gate;
  BatchedEngine engine(std::move(owned), {});
  ASSERT_TRUE(engine.Submit(Request(1, 1)).ok());
  for (const auto old_cache : {Engine::OldCache::kForget, Engine::OldCache::kKeep}) {
    const absl::Status status = engine.PauseForWeightUpdate(old_cache);
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_NE(status.message().find("batch-invariant"), absl::string_view::npos) << status;
  }
  gate.Notify();
  ExpectSame(*engine.Next(Soon()), Reference(Request(1, 1), 0));
  ASSERT_TRUE(engine.PauseForWeightUpdate(Engine::OldCache::kForget).ok()) << "none is left";
  engine.EndWeightUpdate(1);
  ASSERT_TRUE(engine.Submit(Request(2, 1)).ok());
  EXPECT_EQ(engine.Next(Soon())->versions.at(0).version, 1u);
}

}  // namespace
}  // namespace tritonrl
