// Penalties, biases and min_p: the samples of the definition, whatever runs beside them.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "rollout/testing/fake_model_runner.h"

namespace tritonrl {
namespace {

// A model that repeats itself, so that draft tokens are accepted where there are any.
constexpr size_t kMemory = 1;

// Requests of all kinds; every third has none of the settings.
std::map<uint64_t, GenerateRequest> Requests() {
  std::map<uint64_t, GenerateRequest> requests;
  for (uint64_t id = 0; id < 18; ++id) {
    GenerateRequest request = Request(id, 1 + static_cast<int>(id * 5 % 4), 40);
    request.sampling.temperature = id % 4 == 0 ? 0 : 0.4;
    if (id % 2 == 0) request.sampling.stop_ids.clear();
    if (id % 6 == 1) request.sampling.presence_penalty = 1.5;
    if (id % 6 == 2) request.sampling.frequency_penalty = -0.5;
    if (id % 6 == 4) request.sampling.repetition_penalty = 1.4;
    if (id % 6 == 5) request.sampling.logit_bias = {{3, 2.0f}, {30, -100.0f}};
    if (id % 6 == 5) request.sampling.min_p = 0.1;
    requests[id] = request;
  }
  return requests;
}

EngineStats RunAll(FakeModelRunner::Options options, const std::string& config) {
  options.memory = kMemory;
  SCOPED_TRACE(testing::Message() << options.num_pages << " pages, " << options.max_num_seqs
                                  << " running, " << options.in_flight << " in flight, " << config);
  const auto requests = Requests();
  BatchedEngine engine(std::make_unique<FakeModelRunner>(options), MakeEngineConfig(config));
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

TEST(BatchedEnginePenalties, SamplesAreThoseOfTheDefinition) {
  for (const int in_flight : {1, 2}) {
    RunAll({.in_flight = in_flight}, "");
    RunAll({.max_num_seqs = 3, .max_num_batched_tokens = 7, .in_flight = in_flight}, "");
    EXPECT_GT(RunAll({.num_pages = 17, .in_flight = in_flight}, "").preemptions, 0);
  }
}

TEST(BatchedEnginePenalties, OthersStillSpeculate) {
  for (const int in_flight : {1, 2}) {
    const EngineStats stats =
        RunAll({.in_flight = in_flight}, "num_speculative_tokens: 4 always_speculate: true");
    EXPECT_GT(stats.accepted_tokens, 0);
  }
}

TEST(BatchedEnginePenalties, StepsAreLaunchedAheadAgainAfterThem) {
  auto owned = std::make_unique<FakeModelRunner>(FakeModelRunner::Options{.in_flight = 2});
  FakeModelRunner* const runner = owned.get();
  BatchedEngine engine(std::move(owned), {});
  GenerateRequest request = Request(1, 1, 30);
  request.sampling.stop_ids.clear();
  request.sampling.presence_penalty = 1;
  ASSERT_TRUE(engine.Submit(request).ok());
  ExpectSame(engine.Next(Soon()).value(), Reference(request, 0));
  EXPECT_EQ(runner->speculated, 0) << "each token was known";
  request.sampling.presence_penalty = 0;
  ASSERT_TRUE(engine.Submit(request).ok());
  ExpectSame(engine.Next(Soon()).value(), Reference(request, 0));
  EXPECT_GT(runner->speculated, 20);
}

}  // namespace
}  // namespace tritonrl
