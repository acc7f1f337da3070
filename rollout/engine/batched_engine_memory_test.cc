// The engine with too little memory, steps of every size, and steps launched ahead.

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rollout/testing/fake_model_runner.h"

namespace tritonrl {
namespace {

// Groups of all kinds; prompts end within a page and at its end.
std::map<uint64_t, GenerateRequest> Mixture() {
  std::map<uint64_t, GenerateRequest> requests;
  for (uint64_t id = 0; id < 14; ++id) {
    GenerateRequest request = Request(id, 1 + static_cast<int>(id * 5 % 7), 40);
    for (uint64_t i = 0; i < id * 3 % 23; ++i) request.prompt.push_back(static_cast<int32_t>(i));
    if (id % 3 == 0) request.sampling.stop_ids.clear();
    if (id % 7 == 5) request.sampling.max_tokens = 1;
    requests[id] = request;
  }
  return requests;
}

// Runs the mixture; each sample must equal the same sample generated alone.
EngineStats RunMixture(const FakeModelRunner::Options& options) {
  SCOPED_TRACE(testing::Message() << options.num_pages << " pages, " << options.max_num_seqs
                                  << " running, steps of " << options.max_num_batched_tokens << ", "
                                  << options.in_flight << " in flight");
  const auto requests = Mixture();
  auto owned = std::make_unique<FakeModelRunner>(options);
  const FakeModelRunner* runner = owned.get();
  BatchedEngine engine(std::move(owned), {});
  for (const auto& [id, request] : requests) EXPECT_TRUE(engine.Submit(request).ok());
  while (engine.Outstanding() > 0) {
    absl::StatusOr<Sample> sample = engine.Next(Soon());
    if (!sample.ok()) {
      ADD_FAILURE() << sample.status();
      break;
    }
    ExpectSame(*sample, Reference(requests.at(sample->request_id), sample->index));
  }
  EXPECT_EQ(runner->speculated > 0, options.in_flight > 1);
  return engine.Stats();
}

TEST(BatchedEngineMemory, SmallMemoryChangesNoSample) {
  for (int in_flight : {1, 2, 3}) {
    // The longest sample alone takes 16 pages.
    for (int pages : {16, 17, 25, 40}) {
      const EngineStats stats = RunMixture({.num_pages = pages, .in_flight = in_flight});
      EXPECT_GT(stats.preemptions, 0) << pages;
      EXPECT_GT(stats.recomputed_tokens, 0);
      EXPECT_LE(stats.peak_pages, pages);
      EXPECT_EQ(stats.num_pages, pages);
    }
    const EngineStats stats = RunMixture({.in_flight = in_flight});
    EXPECT_EQ(stats.preemptions, 0);
    EXPECT_EQ(stats.recomputed_tokens, 0);
    EXPECT_GT(stats.shared_tokens, 0);
  }
}

TEST(BatchedEngineMemory, SmallChunksWhileSamplesWaitChangeNoSample) {
  int64_t steps = 0, steps_without = 0;
  for (int in_flight : {1, 2, 3}) {
    for (int pages : {16, 25, 40}) {
      for (int bound : {1, 8, 24}) {
        const EngineStats stats =
            RunMixture({.num_pages = pages, .in_flight = in_flight, .prefill_budget = bound});
        EXPECT_GT(stats.recomputed_tokens, 0) << pages << " pages, " << bound;
        steps += stats.decode_steps;
      }
      steps_without += 3 * RunMixture({.num_pages = pages, .in_flight = in_flight}).decode_steps;
    }
  }
  EXPECT_GT(steps, steps_without) << "the bound reaches the scheduler";
}

TEST(BatchedEngineMemory, ChunkedPrefillAndFewBatchSlotsChangeNoSample) {
  for (int in_flight : {1, 2}) {
    for (int max_num_seqs : {1, 3, 16}) {
      for (int tokens : {max_num_seqs, max_num_seqs + 5, 64}) {
        RunMixture({.max_num_seqs = max_num_seqs,
                    .max_num_batched_tokens = tokens,
                    .in_flight = in_flight});
        RunMixture({.max_num_seqs = max_num_seqs,
                    .num_pages = 20,
                    .max_num_batched_tokens = tokens,
                    .in_flight = in_flight});
      }
    }
  }
}

TEST(BatchedEngineMemory, GroupsOfMoreSamplesThanRun) {
  for (int in_flight : {1, 2}) {
    BatchedEngine engine(std::make_unique<FakeModelRunner>(
                             FakeModelRunner::Options{.max_num_seqs = 4, .in_flight = in_flight}),
                         {});
    const GenerateRequest request = Request(3, 50, 20);
    ASSERT_TRUE(engine.Submit(request).ok());
    for (int i = 0; i < 50; ++i) {
      absl::StatusOr<Sample> sample = engine.Next(Soon());
      ASSERT_TRUE(sample.ok()) << sample.status();
      ExpectSame(*sample, Reference(request, sample->index));
    }
    EXPECT_EQ(engine.Stats().prompt_tokens, 3);
    EXPECT_EQ(engine.Stats().recomputed_tokens, 0) << "first tokens are drawn at once";
  }
}

TEST(BatchedEngineMemory, WhatCanNeverFitIsRefused) {
  BatchedEngine engine(std::make_unique<FakeModelRunner>(FakeModelRunner::Options{.num_pages = 5}),
                       {});
  // 3 + 18 - 1 positions are 5 pages of 4: the last token is not fed back.
  ASSERT_TRUE(engine.Submit(Request(1, 1, 18)).ok());
  const absl::Status status = engine.Submit(Request(2, 1, 19));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("request 2: prompt of 3 tokens and max_tokens 19 do not fit the "
                                  "cache of 20 tokens"),
            absl::string_view::npos)
      << status;
  ExpectSame(*engine.Next(Soon()), Reference(Request(1, 1, 18), 0));
}

// Cancels one request just before a launch, for every launch in turn. Next returns each of its
// samples once, the other samples do not change, and no page is lost.
TEST(BatchedEngineMemory, CancellationAtEveryStage) {
  for (int in_flight : {1, 2}) {
    for (int stage = 0; stage < 90; stage += 1 + stage / 30) {
      auto owned = std::make_unique<FakeModelRunner>(FakeModelRunner::Options{
          .max_num_seqs = 4, .num_pages = 20, .max_num_batched_tokens = 6, .in_flight = in_flight});
      FakeModelRunner* runner = owned.get();
      std::atomic<Engine*> engine_pointer = nullptr;
      absl::Notification gate;
      runner->gate = &gate;
      runner->before_launch = [&](int launch) {
        if (launch == stage) engine_pointer.load()->Cancel(1);
      };
      BatchedEngine engine(std::move(owned), {});
      engine_pointer = &engine;
      std::map<uint64_t, GenerateRequest> requests;
      for (uint64_t id = 0; id < 3; ++id) {
        requests[id] = Request(id, 5, 25);
        requests[id].prompt.resize(9 + id, static_cast<int32_t>(id));
        requests[id].sampling.stop_ids.clear();
        ASSERT_TRUE(engine.Submit(requests[id]).ok());
      }
      gate.Notify();
      std::map<uint64_t, int> count;
      for (int i = 0; i < 15; ++i) {
        absl::StatusOr<Sample> sample = engine.Next(Soon());
        ASSERT_TRUE(sample.ok()) << sample.status();
        ++count[sample->request_id];
        Sample expected = Reference(requests[sample->request_id], sample->index);
        if (sample->finish_reason == FinishReason::kCancelled) {
          ASSERT_EQ(sample->request_id, 1u);
          ASSERT_LE(sample->tokens.size(), expected.tokens.size());
          expected.tokens.resize(sample->tokens.size());
          expected.log_probs.resize(sample->tokens.size());
          expected.finish_reason = FinishReason::kCancelled;
        }
        ExpectSame(*sample, expected);
      }
      EXPECT_EQ(count, (std::map<uint64_t, int>{{0, 5}, {1, 5}, {2, 5}}));
      // A sample that needs all 20 pages runs without preemption.
      const EngineStats before = engine.Stats();
      GenerateRequest large = Request(1, 1, 78);
      large.sampling.stop_ids.clear();
      ASSERT_TRUE(engine.Submit(large).ok());
      ExpectSame(*engine.Next(Soon()), Reference(large, 0));
      EXPECT_EQ(engine.Stats().recomputed_tokens, before.recomputed_tokens);
    }
  }
}

// A weight update may begin when Next has returned the last sample: the steps launched ahead must
// have run by then.
TEST(BatchedEngineMemory, NothingIsInFlightWhenTheLastSampleIsOut) {
  auto owned = std::make_unique<FakeModelRunner>(FakeModelRunner::Options{.in_flight = 3});
  FakeModelRunner* runner = owned.get();
  BatchedEngine engine(std::move(owned), {});
  for (uint64_t id = 0; id < 20; ++id) {
    ASSERT_TRUE(engine.Submit(Request(id, 3)).ok());
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(engine.Next(Soon()).ok());
    ASSERT_TRUE(engine.BeginWeightUpdate().ok());
    EXPECT_EQ(runner->launched, runner->collected);
    engine.EndWeightUpdate(id);
  }
}

}  // namespace
}  // namespace tritonrl
