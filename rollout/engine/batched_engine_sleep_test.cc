// Sleep mode: the KV cache's memory is free during weight updates.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "rollout/testing/fake_model_runner.h"

namespace tritonrl {
namespace {

using ::testing::HasSubstr;
using KvPolicy = Engine::KvPolicy;

// An engine in sleep mode, over a runner that loses the cache's contents.
class BatchedEngineRelease : public testing::Test {
 protected:
  void Start(const FakeModelRunner::Options& runner_options = {}, EngineConfig config = {},
             const BatchedEngine::Limits& limits = {}) {
    auto owned = std::make_unique<FakeModelRunner>(runner_options);
    runner_ = owned.get();
    config.set_enable_sleep_mode(true);
    engine_ = std::make_unique<BatchedEngine>(std::move(owned), config, limits);
  }

  // Takes all outstanding samples. Updates that leave the weights unchanged must not change them.
  void TakeAll(const std::map<uint64_t, GenerateRequest>& requests) {
    while (engine_->Outstanding() > 0) {
      const absl::StatusOr<Sample> sample = engine_->Next(Soon());
      ASSERT_TRUE(sample.ok()) << sample.status();
      if (sample->finish_reason == FinishReason::kCancelled) continue;
      ExpectSame(*sample, Reference(requests.at(sample->request_id), sample->index));
    }
  }

  FakeModelRunner* runner_ = nullptr;
  std::unique_ptr<BatchedEngine> engine_;
};

TEST_F(BatchedEngineRelease, BetweenStepsOfTraining) {
  for (int in_flight : {1, 2}) {
    Start({.num_pages = 60, .in_flight = in_flight},
          MakeEngineConfig("enable_prefix_caching: true"));
    EXPECT_TRUE(runner_->held);
    const std::map<uint64_t, GenerateRequest> requests = {{1, Request(1, 4)}, {2, Request(2, 3)}};
    for (int step = 1; step <= 4; ++step) {
      for (const auto& [id, request] : requests) ASSERT_TRUE(engine_->Submit(request).ok());
      TakeAll(requests);
      EXPECT_EQ(runner_->releases, step - 1);
      ASSERT_TRUE(engine_->BeginWeightUpdate().ok());
      EXPECT_FALSE(runner_->held);
      EXPECT_EQ(engine_->BeginWeightUpdate().code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_EQ(engine_->Submit(Request(3, 1)).code(), absl::StatusCode::kFailedPrecondition);
      engine_->EndWeightUpdate(step);
      EXPECT_TRUE(runner_->held);
      EXPECT_EQ(runner_->releases, step);
      EXPECT_EQ(runner_->takes, step);
    }
    EXPECT_EQ(engine_->Stats().cached_tokens, 0) << "of pages that were lost";
    EXPECT_GT(engine_->Stats().sleep_seconds, 0);
    EXPECT_GT(engine_->Stats().wake_seconds, 0);
  }
}

TEST_F(BatchedEngineRelease, NotUnderSamplesThatBeginRefuses) {
  absl::Notification gate;
  Start();
  runner_->gate = &gate;
  ASSERT_TRUE(engine_->Submit(Request(1, 2)).ok());
  EXPECT_EQ(engine_->BeginWeightUpdate().code(), absl::StatusCode::kFailedPrecondition);
  gate.Notify();
  TakeAll({{1, Request(1, 2)}});
  EXPECT_EQ(runner_->releases, 0);
}

TEST_F(BatchedEngineRelease, OnlyIfAsked) {
  auto owned = std::make_unique<FakeModelRunner>(FakeModelRunner::Options{});
  FakeModelRunner* runner = owned.get();
  BatchedEngine engine(std::move(owned), {});
  ASSERT_TRUE(engine.BeginWeightUpdate().ok());
  engine.EndWeightUpdate(1);
  ASSERT_TRUE(engine.PauseForWeightUpdate(KvPolicy::kInvalidate).ok());
  engine.EndWeightUpdate(2);
  EXPECT_EQ(runner->releases, 0);
  EXPECT_EQ(runner->takes, 0);
}

// A step computes nine of the prompt's 61 tokens; the update comes before the fourth step.
TEST_F(BatchedEngineRelease, UnderAPromptThatIsPartlyComputed) {
  for (int in_flight : {1, 2}) {
    Start({.max_num_seqs = 3, .max_num_batched_tokens = 9, .in_flight = in_flight});
    absl::Notification moment;
    runner_->before_launch = [&](int launch) {
      if (launch != 3) return;
      moment.Notify();
      while (!absl::IsFailedPrecondition(engine_->Submit(Request(1, 1)))) {
        absl::SleepFor(absl::Milliseconds(1));
      }
    };
    GenerateRequest request = Request(1, 3, 20);
    for (int32_t i = 0; i < 58; ++i) request.prompt.push_back(i % 20);
    ASSERT_TRUE(engine_->Submit(request).ok());
    moment.WaitForNotification();
    ASSERT_TRUE(engine_->PauseForWeightUpdate(KvPolicy::kInvalidate).ok());
    EXPECT_FALSE(runner_->held);
    engine_->EndWeightUpdate(1);
    TakeAll({{1, request}});
    EXPECT_GT(engine_->Stats().recomputed_tokens, 0);
  }
}

// Updates that leave the weights unchanged, at random moments and of each KvPolicy, change no
// sample.
TEST_F(BatchedEngineRelease, AtAnyMoment) {
  int released = 0;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const bool little = seed % 2 == 0;
    Start({.max_num_seqs = little ? 4 : 16,
           .num_pages = little ? 40 : 400,
           .max_num_batched_tokens = little ? 10 : 64,
           .in_flight = 1 + static_cast<int>(seed % 3)},
          MakeEngineConfig("num_speculative_tokens: ", seed % 3 == 1 ? 3 : 0,
                           " always_speculate: true enable_prefix_caching: ", seed > 2));
    Philox random(seed);
    std::map<uint64_t, GenerateRequest> requests;
    for (uint64_t id = 0; id < 40; ++id) {
      GenerateRequest request = Request(id, 1 + static_cast<int>(random.Below(4)));
      const auto length = static_cast<int32_t>(random.Below(30));
      for (int32_t i = 0; i < length; ++i) request.prompt.push_back(i % 5);
      requests[id] = request;
      ASSERT_TRUE(engine_->Submit(request).ok());
      absl::SleepFor(absl::Microseconds(random.Below(300)));
      if (random.Below(2) == 0) continue;
      const auto kv_policy = random.Below(3) == 0 ? KvPolicy::kKeep : KvPolicy::kInvalidate;
      ASSERT_TRUE(engine_->PauseForWeightUpdate(kv_policy).ok());
      EXPECT_EQ(runner_->held, kv_policy == KvPolicy::kKeep);
      if (random.Below(4) == 0) engine_->Cancel(random.Below(id + 1));
      engine_->EndWeightUpdate(id);
      if (random.Below(4) == 0) TakeAll(requests);
    }
    TakeAll(requests);
    released += runner_->releases;
  }
  EXPECT_GT(released, 20);
}

TEST_F(BatchedEngineRelease, SamplesCancelledInAPauseComeOutAfterIt) {
  Start({.in_flight = 2});
  GenerateRequest request = Request(1, 3, 90);
  request.sampling.stop_ids.clear();
  absl::Notification gate;
  runner_->gate = &gate;
  ASSERT_TRUE(engine_->Submit(request).ok());
  std::thread later([&] {
    while (!absl::IsFailedPrecondition(engine_->Submit(Request(1, 1)))) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    gate.Notify();
  });
  ASSERT_TRUE(engine_->PauseForWeightUpdate(KvPolicy::kInvalidate).ok());
  later.join();
  engine_->CancelSample(1, 1);
  EXPECT_EQ(engine_->Next(absl::Now() + absl::Milliseconds(20)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  engine_->EndWeightUpdate(1);
  int cancelled = 0;
  for (int i = 0; i < 3; ++i) {
    const absl::StatusOr<Sample> sample = engine_->Next(Soon());
    ASSERT_TRUE(sample.ok()) << sample.status();
    cancelled += sample->finish_reason == FinishReason::kCancelled ? 1 : 0;
    EXPECT_EQ(sample->finish_reason == FinishReason::kCancelled, sample->index == 1);
  }
  EXPECT_EQ(cancelled, 1);
}

TEST_F(BatchedEngineRelease, AnEngineWithoutItsMemoryCanBeDestroyed) {
  Start();
  ASSERT_TRUE(engine_->BeginWeightUpdate().ok());
  engine_.reset();
  Start();
  ASSERT_TRUE(engine_->Submit(Request(1, 3, 90)).ok());
  ASSERT_TRUE(engine_->PauseForWeightUpdate(KvPolicy::kInvalidate).ok());
  EXPECT_FALSE(runner_->held);
  engine_.reset();
}

TEST_F(BatchedEngineRelease, MemoryThatBecomesFreeLaterIsTakenThen) {
  Start();
  ASSERT_TRUE(engine_->Submit(Request(1, 2)).ok());
  ASSERT_TRUE(engine_->PauseForWeightUpdate(KvPolicy::kInvalidate).ok());
  runner_->taken_by_others = 2;
  engine_->EndWeightUpdate(1);
  EXPECT_TRUE(runner_->held);
  EXPECT_EQ(runner_->takes, 3);
  TakeAll({{1, Request(1, 2)}});
}

TEST_F(BatchedEngineRelease, WithoutItTheEngineFailsWithASentence) {
  Start({}, {}, {.wake_timeout = absl::Milliseconds(150)});
  ASSERT_TRUE(engine_->Submit(Request(1, 2)).ok());
  ASSERT_TRUE(engine_->PauseForWeightUpdate(KvPolicy::kInvalidate).ok());
  runner_->taken_by_others = -1;
  engine_->EndWeightUpdate(1);
  EXPECT_GT(runner_->takes, 1);
  absl::StatusOr<Sample> sample = engine_->Next(Soon());
  while (sample.ok()) sample = engine_->Next(Soon());  // samples that ended before the failure
  EXPECT_EQ(sample.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(sample.status().message()),
              HasSubstr("the memory that the engine released for it has not become free: others"));
  EXPECT_EQ(engine_->Submit(Request(2, 1)), sample.status());
  EXPECT_EQ(engine_->BeginWeightUpdate(), sample.status());
  EXPECT_EQ(engine_->PauseForWeightUpdate(KvPolicy::kKeep), sample.status());
}

TEST_F(BatchedEngineRelease, MemoryThatCannotBeGivenBackEndsTheEngine) {
  Start();
  runner_->fail_release = true;
  const absl::Status begun = engine_->BeginWeightUpdate();
  EXPECT_EQ(begun.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(engine_->Submit(Request(1, 1)), begun);
  engine_->EndWeightUpdate(1);
  EXPECT_EQ(engine_->Next(Soon()).status(), begun);
}

}  // namespace
}  // namespace tritonrl
