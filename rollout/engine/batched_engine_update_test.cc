// Weight updates during generation, and samples that end before the rest of their group.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "rollout/testing/fake_model_runner.h"

namespace tritonrl {
namespace {

using KvPolicy = Engine::KvPolicy;

// Expects the sample that results from drawing it alone: each span's tokens from the weights of the
// span's version, with cache entries of the weights that `kv_policy` demands.
void ExpectDrawnAsVersionsSay(const Sample& sample, const GenerateRequest& request,
                              KvPolicy kv_policy) {
  Sampler sampler;
  std::vector<int32_t> tokens = request.prompt, entries;
  size_t t = 0;
  for (const WeightVersionSpan& run : sample.versions) {
    const int weights = static_cast<int>(run.version);
    for (int64_t i = 0; i < run.tokens; ++i, ++t) {
      if (kv_policy == KvPolicy::kInvalidate) entries.clear();
      while (entries.size() < tokens.size()) {
        entries.push_back(CacheEntry(tokens[entries.size()], weights));
      }
      const TokenDraw draw =
          *sampler.Draw(FakeLogits(entries), request.sampling,
                        TokenUniform(request.key, sample.index, static_cast<int>(t)));
      ASSERT_EQ(sample.tokens.at(t), draw.token) << t;
      ASSERT_EQ(sample.log_probs.at(t), draw.log_prob) << t;
      tokens.push_back(draw.token);
    }
  }
  EXPECT_EQ(t, sample.tokens.size());
}

// Updates the weights twice while two groups run. Returns the number of samples with tokens of
// several versions.
int UpdateUnderSamples(KvPolicy kv_policy, const FakeModelRunner::Options& options,
                       bool enable_sleep_mode = false) {
  auto owned = std::make_unique<FakeModelRunner>(options);
  FakeModelRunner* runner = owned.get();
  absl::Notification early, late;
  BatchedEngine engine(std::move(owned),
                       MakeEngineConfig("enable_sleep_mode: ", enable_sleep_mode));
  // Waits until the test has requested the update.
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
    EXPECT_TRUE(engine.PauseForWeightUpdate(kv_policy).ok());
    EXPECT_EQ(engine.PauseForWeightUpdate(kv_policy).code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(runner->launched, runner->collected) << "steps are in flight";
    EXPECT_EQ(runner->held, !enable_sleep_mode || kv_policy == KvPolicy::kKeep);
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
    ExpectDrawnAsVersionsSay(*sample, requests.at(sample->request_id), kv_policy);
  }
  return mixed;
}

TEST(BatchedEngineUpdate, PausedSamplesGoOnFromTheNewWeights) {
  for (bool release : {false, true}) {
    for (int in_flight : {1, 2, 3}) {
      EXPECT_EQ(UpdateUnderSamples(KvPolicy::kInvalidate, {.in_flight = in_flight}, release), 8);
      // Recomputed in chunks while other samples decode, with memory for three of the eight
      // samples.
      UpdateUnderSamples(KvPolicy::kInvalidate, {.num_pages = 80, .in_flight = in_flight}, release);
      UpdateUnderSamples(KvPolicy::kInvalidate,
                         {.max_num_seqs = 3, .max_num_batched_tokens = 9, .in_flight = in_flight},
                         release);
    }
  }
}

TEST(BatchedEngineUpdate, OrKeepWhatTheOldOnesMade) {
  for (bool release : {false, true}) {
    for (int in_flight : {1, 2, 3}) {
      EXPECT_EQ(UpdateUnderSamples(KvPolicy::kKeep, {.in_flight = in_flight}, release), 8);
    }
  }
}

TEST(BatchedEngineUpdate, AnIdleEnginePausesToo) {
  BatchedEngine engine(std::make_unique<FakeModelRunner>(FakeModelRunner::Options{}), {});
  for (int version = 1; version < 50; ++version) {
    ASSERT_TRUE(engine.PauseForWeightUpdate(KvPolicy::kInvalidate).ok());
    EXPECT_EQ(engine.Submit(Request(1, 1)).code(), absl::StatusCode::kFailedPrecondition);
    engine.EndWeightUpdate(version);
  }
  ASSERT_TRUE(engine.Submit(Request(1, 1)).ok());
  const absl::StatusOr<Sample> sample = engine.Next(Soon());
  ExpectSame(*sample, Reference(Request(1, 1), 0));
  EXPECT_EQ(sample->versions.at(0).version, 49u);
}

TEST(BatchedEngineUpdate, APausedEngineCanBeDestroyed) {
  BatchedEngine engine(std::make_unique<FakeModelRunner>(FakeModelRunner::Options{}), {});
  ASSERT_TRUE(engine.Submit(Request(1, 3, 90)).ok());
  ASSERT_TRUE(engine.PauseForWeightUpdate(KvPolicy::kInvalidate).ok());
}

TEST(BatchedEngineCancel, OneSampleOfAGroup) {
  absl::Notification gate;
  auto runner = std::make_unique<FakeModelRunner>(FakeModelRunner::Options{.max_num_seqs = 2});
  runner->gate = &gate;
  BatchedEngine engine(std::move(runner), {});
  GenerateRequest request = Request(1, 4, 50);
  request.first_index = 3;
  request.sampling.stop_ids.clear();
  ASSERT_TRUE(engine.Submit(request).ok());
  engine.CancelSample(1, 4);
  engine.CancelSample(1, 6);
  engine.CancelSample(1, 2);  // no such sample
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
  auto owned = std::make_unique<FakeModelRunner>(FakeModelRunner::Options{.in_flight = 2});
  FakeModelRunner* runner = owned.get();
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
