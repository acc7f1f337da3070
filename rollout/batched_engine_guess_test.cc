// Speculative decoding: the same samples in fewer steps.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "rollout/hash_runner.h"

namespace tritonrl {
namespace {

// Cold samples repeat themselves and each other, so that guesses are right now and then.
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

EngineStats RunGuessing(HashRunner::Options runner_options, int max_guesses) {
  runner_options.memory = kMemory;
  SCOPED_TRACE(testing::Message() << runner_options.num_pages << " pages, "
                                  << runner_options.max_running << " running, steps of "
                                  << runner_options.max_step_tokens << ", "
                                  << runner_options.in_flight << " in flight");
  const auto requests = Repetitive();
  BatchedEngine engine(std::make_unique<HashRunner>(runner_options),
                       {.max_guesses = max_guesses, .always_guess = true});
  for (const auto& [id, request] : requests) EXPECT_TRUE(engine.Submit(request).ok());
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

TEST(BatchedEngineGuess, SamplesAreTheSameInFewerSteps) {
  for (int in_flight : {1, 2}) {
    const HashRunner::Options options = {.in_flight = in_flight};
    const EngineStats plain = RunGuessing(options, 0);
    const EngineStats guessed = RunGuessing(options, 6);
    EXPECT_EQ(plain.guessed_tokens, 0);
    EXPECT_GT(guessed.guessed_right, 100);
    EXPECT_GT(guessed.guessed_tokens, guessed.guessed_right) << "no guess was wrong";
    EXPECT_EQ(guessed.generated_tokens, plain.generated_tokens);
    EXPECT_LT(guessed.decode_steps, plain.decode_steps);
  }
}

// What is not like anything said before is not waited for.
TEST(BatchedEngineGuess, StepsWithoutGuessesAreLaunchedAhead) {
  auto owned = std::make_unique<HashRunner>(HashRunner::Options{.in_flight = 2});
  HashRunner* const runner = owned.get();
  BatchedEngine engine(std::move(owned), {.max_guesses = 6, .always_guess = true});
  GenerateRequest request = Request(1, 1, 60);
  request.sampling.stop_ids.clear();
  ASSERT_TRUE(engine.Submit(request).ok());
  const absl::StatusOr<Sample> sample = engine.Next(Soon());
  ASSERT_TRUE(sample.ok()) << sample.status();
  ExpectSame(*sample, Reference(request, 0, 0));
  EXPECT_GT(runner->speculated, 30) << "of 60 tokens";
}

TEST(BatchedEngineGuess, WithLittleMemoryAndSmallSteps) {
  for (int pages : {16, 17, 25, 40}) {
    EXPECT_GT(RunGuessing({.num_pages = pages, .in_flight = 2}, 6).preemptions, 0);
  }
  for (int max_running : {1, 2, 5}) {
    RunGuessing({.max_running = max_running, .max_step_tokens = 7}, 6);
  }
}

TEST(BatchedEngineGuess, OnlyWhileItPaysUnlessAsked) {
  BatchedEngine engine(
      std::make_unique<HashRunner>(HashRunner::Options{.in_flight = 2, .memory = kMemory}),
      {.max_guesses = 6});
  const auto requests = Repetitive();
  for (const auto& [id, request] : requests) ASSERT_TRUE(engine.Submit(request).ok());
  while (engine.Outstanding() > 0) {
    const absl::StatusOr<Sample> sample = engine.Next(Soon());
    ASSERT_TRUE(sample.ok()) << sample.status();
    ExpectSame(*sample, Reference(requests.at(sample->request_id), sample->index, kMemory));
  }
  EXPECT_GT(engine.Stats().guessed_tokens, 0) << "not even tried";
}

}  // namespace
}  // namespace tritonrl
