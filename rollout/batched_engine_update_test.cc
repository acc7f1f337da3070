// Weights that change under samples, samples that end alone.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "rollout/hash_runner.h"

namespace tritonrl {
namespace {

using OldCache = Engine::OldCache;

// The sample drawn alone as its versions say: tokens of a run from the weights of its number, with
// cache entries of the weights that the engine is to have made them with.
void ExpectDrawnAsVersionsSay(const Sample& sample, const GenerateRequest& request,
                              OldCache old_cache) {
  Sampler sampler;
  std::vector<int32_t> tokens = request.prompt, entries;
  size_t t = 0;
  for (const VersionRun& run : sample.versions) {
    const int weights = static_cast<int>(run.version);
    for (int64_t i = 0; i < run.tokens; ++i, ++t) {
      if (old_cache == OldCache::kForget) entries.clear();
      while (entries.size() < tokens.size()) {
        entries.push_back(CacheEntry(tokens[entries.size()], weights));
      }
      const TokenDraw draw =
          *sampler.Draw(HashLogits(entries), request.sampling,
                        TokenUniform(request.key, sample.index, static_cast<int>(t)));
      ASSERT_EQ(sample.tokens.at(t), draw.token) << t;
      ASSERT_EQ(sample.log_probs.at(t), draw.log_prob) << t;
      tokens.push_back(draw.token);
    }
  }
  EXPECT_EQ(t, sample.tokens.size());
}

// Updates the weights under two groups, twice. Returns how many samples have tokens of several
// versions.
int UpdateUnderSamples(OldCache old_cache, const HashRunner::Options& options,
                       bool release_memory = false) {
  auto owned = std::make_unique<HashRunner>(options);
  HashRunner* runner = owned.get();
  absl::Notification early, late;
  BatchedEngine engine(std::move(owned), {.release_memory = release_memory});
  // Waits until the update was asked for.
  runner->before_launch = [&](int launch) {
    if (launch != 12 && launch != 25) return;
    (launch == 12 ? early : late).Notify();
    while (!absl::IsFailedPrecondition(engine.Submit(Request(1, 1)))) {
      absl::SleepFor(absl::Milliseconds(1));
    }
  };
  std::map<uint64_t, GenerateRequest> requests;
  for (uint64_t id : {1, 2}) {
    requests[id] = Request(id, 4, 90);
    requests[id].sampling.stop_ids.clear();
    EXPECT_TRUE(engine.Submit(requests[id]).ok());
  }
  int version = 0;
  for (absl::Notification* moment : {&early, &late}) {
    moment->WaitForNotification();
    EXPECT_TRUE(engine.PauseForWeightUpdate(old_cache).ok());
    EXPECT_EQ(engine.PauseForWeightUpdate(old_cache).code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(runner->launched, runner->collected) << "steps are under way";
    EXPECT_EQ(runner->held, !release_memory || old_cache == OldCache::kKeep);
    runner->weights = ++version;
    engine.EndWeightUpdate(version);
    EXPECT_TRUE(runner->held);
  }
  int mixed = 0;
  for (int i = 0; i < 8; ++i) {
    const absl::StatusOr<Sample> sample = engine.Next(Soon());
    EXPECT_TRUE(sample.ok()) << sample.status();
    if (!sample.ok()) return 0;
    EXPECT_EQ(sample->tokens.size(), 90u);
    mixed += sample->versions.size() > 1 ? 1 : 0;
    ExpectDrawnAsVersionsSay(*sample, requests.at(sample->request_id), old_cache);
  }
  return mixed;
}

TEST(BatchedEngineUpdate, PausedSamplesGoOnFromTheNewWeights) {
  for (bool release : {false, true}) {
    for (int in_flight : {1, 2, 3}) {
      EXPECT_EQ(UpdateUnderSamples(OldCache::kForget, {.in_flight = in_flight}, release), 8);
      // Computed again in chunks, while others decode, with memory for three of the eight.
      UpdateUnderSamples(OldCache::kForget, {.num_pages = 80, .in_flight = in_flight}, release);
      UpdateUnderSamples(OldCache::kForget,
                         {.max_running = 3, .max_step_tokens = 9, .in_flight = in_flight}, release);
    }
  }
}

TEST(BatchedEngineUpdate, OrKeepWhatTheOldOnesMade) {
  for (bool release : {false, true}) {
    for (int in_flight : {1, 2, 3}) {
      EXPECT_EQ(UpdateUnderSamples(OldCache::kKeep, {.in_flight = in_flight}, release), 8);
    }
  }
}

TEST(BatchedEngineUpdate, AnIdleEnginePausesToo) {
  BatchedEngine engine(std::make_unique<HashRunner>(HashRunner::Options{}), {});
  for (int version = 1; version < 50; ++version) {
    ASSERT_TRUE(engine.PauseForWeightUpdate(OldCache::kForget).ok());
    EXPECT_EQ(engine.Submit(Request(1, 1)).code(), absl::StatusCode::kFailedPrecondition);
    engine.EndWeightUpdate(version);
  }
  ASSERT_TRUE(engine.Submit(Request(1, 1)).ok());
  const absl::StatusOr<Sample> sample = engine.Next(Soon());
  ExpectSame(*sample, Reference(Request(1, 1), 0));
  EXPECT_EQ(sample->versions.at(0).version, 49u);
}

TEST(BatchedEngineUpdate, APausedEngineCanBeDestroyed) {
  BatchedEngine engine(std::make_unique<HashRunner>(HashRunner::Options{}), {});
  ASSERT_TRUE(engine.Submit(Request(1, 3, 90)).ok());
  ASSERT_TRUE(engine.PauseForWeightUpdate(OldCache::kForget).ok());
}

TEST(BatchedEngineCancel, OneSampleOfAGroup) {
  absl::Notification gate;
  auto runner = std::make_unique<HashRunner>(HashRunner::Options{.max_running = 2});
  runner->gate = &gate;
  BatchedEngine engine(std::move(runner), {});
  GenerateRequest request = Request(1, 4, 50);
  request.first_index = 3;
  request.sampling.stop_ids.clear();
  ASSERT_TRUE(engine.Submit(request).ok());
  engine.CancelSample(1, 4);
  engine.CancelSample(1, 6);
  engine.CancelSample(1, 2);  // there is none
  engine.CancelSample(9, 0);
  gate.Notify();
  for (int i = 0; i < 4; ++i) {
    const absl::StatusOr<Sample> sample = engine.Next(Soon());
    ASSERT_TRUE(sample.ok());
    if (sample->index == 4 || sample->index == 6) {
      EXPECT_EQ(sample->finish_reason, FinishReason::kCancelled);
    } else {
      ExpectSame(*sample, Reference(request, sample->index));
    }
  }
}

TEST(BatchedEngineCancel, ASampleWithoutADistributionEndsAlone) {
  auto owned = std::make_unique<HashRunner>(HashRunner::Options{.in_flight = 2});
  HashRunner* runner = owned.get();
  const GenerateRequest damaged = Request(2, 3);
  runner->damaged = [&](const std::vector<int32_t>& tokens) { return tokens == damaged.prompt; };
  BatchedEngine engine(std::move(owned), {});
  ASSERT_TRUE(engine.Submit(Request(1, 3)).ok());
  ASSERT_TRUE(engine.Submit(damaged).ok());
  std::set<uint64_t> good;
  for (int i = 0; i < 6; ++i) {
    const absl::StatusOr<Sample> sample = engine.Next(Soon());
    ASSERT_TRUE(sample.ok()) << sample.status();
    if (sample->request_id == 2) {
      EXPECT_EQ(sample->finish_reason, FinishReason::kFailed);
      EXPECT_TRUE(sample->tokens.empty() && sample->versions.empty());
      EXPECT_FALSE(FailureOf(*sample).ok());
    } else {
      EXPECT_TRUE(FailureOf(*sample).ok());
    }
  }
  EXPECT_EQ(engine.Stats().failed_samples, 3);
  EXPECT_EQ(engine.Outstanding(), 0);
}

}  // namespace
}  // namespace tritonrl
