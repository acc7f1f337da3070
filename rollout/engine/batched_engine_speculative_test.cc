// Speculative decoding: the same samples in fewer steps.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "rollout/testing/fake_model_runner.h"

namespace tritonrl {
namespace {

// Samples at low temperature repeat themselves and each other, so some draft tokens are accepted.
std::map<uint64_t, GenerateRequest> Repetitive() {
  std::map<uint64_t, GenerateRequest> requests;
  for (uint64_t id = 0; id < 10; ++id) {
    GenerateRequest request = Request(id, 1 + static_cast<int>(id * 5 % 7), 60);
    request.sampling.temperature = id % 3 == 0 ? 0 : 0.1;
    if (id % 2 == 0) request.sampling.stop_ids.clear();
    if (id == 5) request.sampling.max_tokens = 1;
    requests[id] = request;
  }
  return requests;
}

constexpr size_t kMemory = 1;

EngineStats RunSpeculating(FakeModelRunner::Options runner_options, int num_speculative_tokens) {
  runner_options.memory = kMemory;
  SCOPED_TRACE(testing::Message() << runner_options.num_pages << " pages, "
                                  << runner_options.max_num_seqs << " running, steps of "
                                  << runner_options.max_num_batched_tokens << ", "
                                  << runner_options.in_flight << " in flight");
  const auto requests = Repetitive();
  auto runner = std::make_unique<FakeModelRunner>(runner_options);
  // The number of steps would depend on when requests arrive: all are there before the first step
  // ends.
  absl::Notification submitted;
  runner->gate = &submitted;
  BatchedEngine engine(std::move(runner),
                       MakeEngineConfig("num_speculative_tokens: ", num_speculative_tokens,
                                        " always_speculate: true"));
  for (const auto& [id, request] : requests) EXPECT_TRUE(engine.Submit(request).ok());
  submitted.Notify();
  while (engine.Outstanding() > 0) {
    const absl::StatusOr<Sample> sample = engine.Next(Soon());
    if (!sample.ok()) {
      ADD_FAILURE() << sample.status();
      break;
    }
    ExpectSame(*sample, Reference(requests.at(sample->request_id), sample->index, kMemory));
  }
  return engine.Stats();
}

TEST(BatchedEngineDraft, SamplesAreTheSameInFewerSteps) {
  for (int in_flight : {1, 2}) {
    const FakeModelRunner::Options options = {.in_flight = in_flight};
    const EngineStats plain = RunSpeculating(options, 0);
    const EngineStats drafted = RunSpeculating(options, 6);
    EXPECT_EQ(plain.draft_tokens, 0);
    EXPECT_GT(drafted.accepted_tokens, 100);
    EXPECT_GT(drafted.draft_tokens, drafted.accepted_tokens) << "no draft token was wrong";
    EXPECT_EQ(drafted.generated_tokens, plain.generated_tokens);
    EXPECT_LT(drafted.decode_steps, plain.decode_steps);
  }
}

// A sample that repeats nothing has no draft tokens to wait for.
TEST(BatchedEngineDraft, StepsWithoutDraftTokensAreLaunchedAhead) {
  auto owned = std::make_unique<FakeModelRunner>(FakeModelRunner::Options{.in_flight = 2});
  FakeModelRunner* const runner = owned.get();
  BatchedEngine engine(std::move(owned),
                       MakeEngineConfig("num_speculative_tokens: 6 always_speculate: true"));
  GenerateRequest request = Request(1, 1, 60);
  request.sampling.stop_ids.clear();
  ASSERT_TRUE(engine.Submit(request).ok());
  const absl::StatusOr<Sample> sample = engine.Next(Soon());
  ASSERT_TRUE(sample.ok()) << sample.status();
  ExpectSame(*sample, Reference(request, 0, 0));
  EXPECT_GT(runner->speculated, 30) << "of 60 tokens";
}

TEST(BatchedEngineDraft, WithLittleMemoryAndSmallSteps) {
  for (int pages : {16, 17, 25, 40}) {
    EXPECT_GT(RunSpeculating({.num_pages = pages, .in_flight = 2}, 6).preemptions, 0);
  }
  for (int max_num_seqs : {1, 2, 5}) {
    RunSpeculating({.max_num_seqs = max_num_seqs, .max_num_batched_tokens = 7}, 6);
  }
}

TEST(BatchedEngineDraft, OnlyWhileItPaysUnlessAsked) {
  BatchedEngine engine(std::make_unique<FakeModelRunner>(
                           FakeModelRunner::Options{.in_flight = 2, .memory = kMemory}),
                       MakeEngineConfig("num_speculative_tokens: 6"));
  const auto requests = Repetitive();
  for (const auto& [id, request] : requests) ASSERT_TRUE(engine.Submit(request).ok());
  while (engine.Outstanding() > 0) {
    const absl::StatusOr<Sample> sample = engine.Next(Soon());
    ASSERT_TRUE(sample.ok()) << sample.status();
    ExpectSame(*sample, Reference(requests.at(sample->request_id), sample->index, kMemory));
  }
  EXPECT_GT(engine.Stats().draft_tokens, 0) << "not even tried";
}

}  // namespace
}  // namespace tritonrl
