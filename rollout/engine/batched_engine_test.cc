#include "rollout/engine/batched_engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "rollout/testing/fake_model_runner.h"

namespace tritonrl {
namespace {

TEST(BatchedEngine, SamplesDependOnTheirKeyAlone) {
  for (int max_num_seqs : {1, 2, 3, 8, 64}) {
    BatchedEngine engine(
        std::make_unique<FakeModelRunner>(FakeModelRunner::Options{.max_num_seqs = max_num_seqs}),
        {});
    int expected = 0;
    std::map<uint64_t, GenerateRequest> requests;
    for (uint64_t id = 0; id < 12; ++id) {
      GenerateRequest request = Request(id, 1 + static_cast<int>(id * 5 % 9));
      request.first_index = static_cast<int>(id % 3);
      if (id % 4 == 1) request.sampling.top_k = 5;
      if (id % 4 == 2) request.sampling.temperature = 0;
      if (id % 4 == 3) request.sampling.max_tokens = 1;
      expected += request.n;
      requests[id] = request;
      ASSERT_TRUE(engine.Submit(request).ok());
    }
    std::set<std::pair<uint64_t, int>> seen;
    for (int i = 0; i < expected; ++i) {
      absl::StatusOr<Sample> sample = engine.Next(Soon());
      ASSERT_TRUE(sample.ok()) << sample.status();
      EXPECT_TRUE(seen.insert({sample->request_id, sample->index}).second);
      ExpectSame(*sample, Reference(requests[sample->request_id], sample->index));
    }
    EXPECT_EQ(engine.Next(Soon()).status().code(), absl::StatusCode::kOutOfRange);
    const EngineStats stats = engine.Stats();
    EXPECT_EQ(stats.finished_samples, expected);
    EXPECT_EQ(stats.prompt_tokens, 36) << "each group's prompt is computed once";
    EXPECT_EQ(stats.recomputed_tokens, 0);
  }
}

TEST(BatchedEngine, TokensAreToldAsTheyAreDrawn) {
  std::map<int, Sample> told;  // Written by the engine's thread, read after all samples are out.
  BatchedEngine engine(
      std::make_unique<FakeModelRunner>(FakeModelRunner::Options{.max_num_seqs = 2}), {});
  GenerateRequest request = Request(3, 5);
  request.first_index = 2;
  request.on_token = [&told](int index, int32_t token, float log_prob) {
    told[index].tokens.push_back(token);
    told[index].log_probs.push_back(log_prob);
  };
  ASSERT_TRUE(engine.Submit(request).ok());
  std::vector<Sample> samples;
  for (int i = 0; i < 5; ++i) {
    absl::StatusOr<Sample> sample = engine.Next(Soon());
    ASSERT_TRUE(sample.ok()) << sample.status();
    samples.push_back(*std::move(sample));
  }
  for (const Sample& sample : samples) {
    EXPECT_EQ(told[sample.index].tokens, sample.tokens);
    EXPECT_EQ(told[sample.index].log_probs, sample.log_probs);
  }
  EXPECT_EQ(told.size(), 5u);
}

TEST(BatchedEngine, FinishedSamplesLeaveAtOnce) {
  absl::Notification gate;  // Opened when all requests are submitted.
  auto runner = std::make_unique<FakeModelRunner>(FakeModelRunner::Options{.max_num_seqs = 4});
  runner->gate = &gate;
  BatchedEngine engine(std::move(runner), {});
  for (uint64_t id = 0; id < 8; ++id) ASSERT_TRUE(engine.Submit(Request(id, 4, 60)).ok());
  gate.Notify();
  int64_t tokens = 0;
  for (int i = 0; i < 32; ++i) {
    absl::StatusOr<Sample> sample = engine.Next(Soon());
    ASSERT_TRUE(sample.ok());
    tokens += static_cast<int64_t>(sample->tokens.size());
  }
  const EngineStats stats = engine.Stats();
  EXPECT_EQ(stats.generated_tokens, tokens);
  // Lengths vary widely; if batch slots are refilled at once, nearly every step uses all four.
  EXPECT_GT(static_cast<double>(tokens) / stats.decode_steps, 3.0);
}

TEST(BatchedEngine, BadRequestsAreNamed) {
  BatchedEngine engine(
      std::make_unique<FakeModelRunner>(FakeModelRunner::Options{.max_num_seqs = 2}), {},
      {.max_outstanding = 5});
  const auto says = [&](const GenerateRequest& request, const std::string& part) {
    const absl::Status status = engine.Submit(request);
    EXPECT_FALSE(status.ok()) << part;
    EXPECT_NE(std::string(status.message()).find(part), std::string::npos) << status;
    EXPECT_NE(std::string(status.message()).find("request 1"), std::string::npos) << status;
  };
  GenerateRequest request = Request(1, 1);
  request.prompt.clear();
  says(request, "prompt is empty");
  request.prompt = {1, kVocab};
  says(request, "outside the model's vocabulary");
  says(Request(1, 1, 98), "max_length 100");
  says(Request(1, 0), "n is 0");
  says(Request(1, 6), "limit of 5");
  request = Request(1, 1);
  request.sampling.top_p = 2;
  says(request, "top_p");
  EXPECT_EQ(engine.Outstanding(), 0);
}

TEST(BatchedEngine, NextWaitsUntilItsDeadline) {
  absl::Notification gate;
  auto runner = std::make_unique<FakeModelRunner>(FakeModelRunner::Options{.max_num_seqs = 2});
  runner->gate = &gate;
  BatchedEngine engine(std::move(runner), {});
  EXPECT_EQ(engine.Next(Soon()).status().code(), absl::StatusCode::kOutOfRange);
  GenerateRequest request = Request(1, 2);
  request.sampling.stop_ids.clear();
  ASSERT_TRUE(engine.Submit(request).ok());
  EXPECT_EQ(engine.Submit(request).code(), absl::StatusCode::kInvalidArgument);  // Id in use.
  EXPECT_EQ(engine.Next(absl::Now() + absl::Milliseconds(5)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(engine.Outstanding(), 2);
  gate.Notify();
  EXPECT_TRUE(engine.Next(Soon()).ok());
  EXPECT_TRUE(engine.Next(Soon()).ok());
}

TEST(BatchedEngine, CancelEndsRunningAndWaitingSamples) {
  absl::Notification gate;
  auto runner = std::make_unique<FakeModelRunner>(FakeModelRunner::Options{.max_num_seqs = 2});
  runner->gate = &gate;
  BatchedEngine engine(std::move(runner), {});
  GenerateRequest request = Request(1, 4);
  request.sampling.stop_ids.clear();
  ASSERT_TRUE(engine.Submit(request).ok());
  ASSERT_TRUE(engine.Submit(Request(2, 1)).ok());
  engine.Cancel(1);
  engine.Cancel(77);
  gate.Notify();
  int cancelled = 0;
  for (int i = 0; i < 5; ++i) {
    absl::StatusOr<Sample> sample = engine.Next(Soon());
    ASSERT_TRUE(sample.ok()) << sample.status();
    if (sample->request_id == 1) {
      EXPECT_EQ(sample->finish_reason, FinishReason::kCancelled);
      EXPECT_LT(sample->tokens.size(), 30u);
      ++cancelled;
    } else {
      ExpectSame(*sample, Reference(Request(2, 1), 0));
    }
  }
  EXPECT_EQ(cancelled, 4);
  // The id is free again.
  ASSERT_TRUE(engine.Submit(Request(1, 1)).ok());
  ExpectSame(*engine.Next(Soon()), Reference(Request(1, 1), 0));
}

TEST(BatchedEngine, WeightUpdatesWaitForAllSamples) {
  absl::Notification gate;
  auto runner = std::make_unique<FakeModelRunner>(FakeModelRunner::Options{.max_num_seqs = 2});
  runner->gate = &gate;
  BatchedEngine engine(std::move(runner), {}, {.max_outstanding = 100});
  GenerateRequest request = Request(1, 1);
  request.sampling.stop_ids.clear();
  ASSERT_TRUE(engine.Submit(request).ok());
  EXPECT_EQ(engine.BeginWeightUpdate().code(), absl::StatusCode::kFailedPrecondition);
  gate.Notify();
  absl::StatusOr<Sample> sample = engine.Next(Soon());
  ASSERT_TRUE(sample.ok());
  ASSERT_EQ(sample->versions.size(), 1u);
  EXPECT_EQ(sample->versions[0].version, 0u);
  EXPECT_EQ(sample->versions[0].tokens, static_cast<int64_t>(sample->tokens.size()));
  ASSERT_TRUE(engine.BeginWeightUpdate().ok());
  EXPECT_EQ(engine.Submit(Request(2, 1)).code(), absl::StatusCode::kFailedPrecondition);
  engine.EndWeightUpdate(4);
  ASSERT_TRUE(engine.Submit(Request(2, 1)).ok());
  EXPECT_EQ(engine.Next(Soon())->versions.at(0).version, 4u);
}

TEST(BatchedEngine, AFailureReachesEveryCallerAfterFinishedSamples) {
  auto runner = std::make_unique<FakeModelRunner>(FakeModelRunner::Options{.max_num_seqs = 4});
  runner->fail_after = 3;
  BatchedEngine engine(std::move(runner), {});
  ASSERT_TRUE(engine.Submit(Request(1, 2, 1)).ok());  // Ends before the failure.
  GenerateRequest request = Request(2, 1);
  request.sampling.stop_ids.clear();
  ASSERT_TRUE(engine.Submit(request).ok());
  EXPECT_TRUE(engine.Next(Soon()).ok());
  EXPECT_TRUE(engine.Next(Soon()).ok());
  absl::StatusOr<Sample> sample = engine.Next(Soon());
  EXPECT_EQ(sample.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(engine.PauseForWeightUpdate(Engine::KvPolicy::kKeep).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_NE(sample.status().message().find("out of memory"), absl::string_view::npos);
  EXPECT_EQ(engine.Submit(Request(3, 1)).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(engine.BeginWeightUpdate().code(), absl::StatusCode::kResourceExhausted);
}

TEST(BatchedEngine, ManyThreadsSubmitAndTake) {
  BatchedEngine engine(
      std::make_unique<FakeModelRunner>(FakeModelRunner::Options{.max_num_seqs = 8}), {});
  std::atomic<int> taken = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint64_t i = 0; i < 10; ++i) {
        const uint64_t id = 100 * thread + i;
        ASSERT_TRUE(engine.Submit(Request(id, 3)).ok());
        for (int k = 0; k < 3; ++k) {
          absl::StatusOr<Sample> sample = engine.Next(Soon());
          ASSERT_TRUE(sample.ok()) << sample.status();
          ExpectSame(*sample, Reference(Request(sample->request_id, 3), sample->index));
          ++taken;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, 120);
}

TEST(BatchedEngine, DestructionDoesNotWaitForSamples) {
  BatchedEngine engine(
      std::make_unique<FakeModelRunner>(FakeModelRunner::Options{.max_num_seqs = 1}), {});
  for (uint64_t id = 0; id < 50; ++id) ASSERT_TRUE(engine.Submit(Request(id, 100)).ok());
}

}  // namespace
}  // namespace tritonrl
