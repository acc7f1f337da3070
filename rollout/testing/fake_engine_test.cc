#include "rollout/testing/fake_engine.h"

#include <gtest/gtest.h>

#include <vector>

namespace tritonrl {
namespace {

GenerateRequest Request(uint64_t id, int n) {
  GenerateRequest request;
  request.id = id;
  request.prompt = {1, 2};
  request.n = n;
  request.first_index = 3;
  request.sampling.max_tokens = 4;
  request.sampling.stop_ids = {9};
  return request;
}

TEST(FakeEngine, AnswersAsAnEngineWould) {
  // Sample 3 ends with its stop token, sample 4 is cut at max_tokens, sample 5 is cut after its
  // stop token.
  FakeEngine engine([](const GenerateRequest&, int index) {
    if (index == 3) return std::vector<int32_t>{5, 9};
    if (index == 4) return std::vector<int32_t>{5, 6, 7, 8, 5, 9};
    return std::vector<int32_t>{9, 5};
  });
  GenerateRequest request = Request(1, 3);
  std::vector<int32_t> told;
  request.on_token = [&told](int, int32_t token, float) { told.push_back(token); };
  ASSERT_TRUE(engine.Submit(request).ok());
  EXPECT_EQ(engine.Outstanding(), 3);
  EXPECT_EQ(told, (std::vector<int32_t>{5, 9, 5, 6, 7, 8, 9}));
  absl::StatusOr<Sample> sample = engine.Next(absl::InfiniteFuture());
  ASSERT_TRUE(sample.ok());
  EXPECT_EQ(sample->request_id, 1u);
  EXPECT_EQ(sample->index, 3);
  EXPECT_EQ(sample->tokens, (std::vector<int32_t>{5, 9}));
  EXPECT_EQ(sample->log_probs, (std::vector<float>{-1, -1}));
  EXPECT_EQ(sample->finish_reason, FinishReason::kStop);
  sample = engine.Next(absl::InfiniteFuture());
  EXPECT_EQ(sample->tokens, (std::vector<int32_t>{5, 6, 7, 8}));
  EXPECT_EQ(sample->finish_reason, FinishReason::kLength);
  engine.Cancel(1);
  sample = engine.Next(absl::InfiniteFuture());
  EXPECT_EQ(sample->tokens, (std::vector<int32_t>{9}));
  EXPECT_EQ(sample->finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(engine.Next(absl::InfiniteFuture()).status().code(), absl::StatusCode::kOutOfRange);
}

TEST(FakeEngine, HoldsUpdatesAndFails) {
  FakeEngine engine([](const GenerateRequest&, int) { return std::vector<int32_t>{9}; });
  ASSERT_TRUE(engine.BeginWeightUpdate().ok());
  EXPECT_EQ(engine.Submit(Request(1, 1)).code(), absl::StatusCode::kFailedPrecondition);
  engine.EndWeightUpdate(7);
  ASSERT_TRUE(engine.Submit(Request(1, 1)).ok());
  engine.Hold(true);
  EXPECT_EQ(engine.Next(absl::InfinitePast()).status().code(), absl::StatusCode::kDeadlineExceeded);
  engine.Hold(false);
  EXPECT_EQ(engine.Next(absl::InfinitePast())->versions.at(0).version, 7u);
  engine.Fail(absl::InternalError("out of memory"));
  EXPECT_EQ(engine.Submit(Request(2, 1)).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(engine.Next(absl::InfiniteFuture()).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(engine.Requests().size(), 1u);
}

}  // namespace
}  // namespace tritonrl
