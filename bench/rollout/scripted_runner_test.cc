#include "bench/rollout/scripted_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "rollout/testing/fake_model_runner.h"

namespace tritonrl {
namespace {

constexpr int kSamples = 6;
constexpr int64_t kLength = 60;
constexpr int64_t kRepeat = 12;

GenerateRequest TheRequest() {
  GenerateRequest request = Request(1, kSamples, 90);
  request.prompt.clear();
  // All tokens differ, so that a token identifies its position.
  for (int32_t token = 8; token < 38; ++token) request.prompt.push_back(token);
  request.prompt.resize(10);
  return request;
}

struct Outcome {
  std::map<int, std::vector<int32_t>> tokens;  // by sample
  EngineStats stats;
};

Outcome Generate(double share, int num_speculative_tokens, int pages) {
  const GenerateRequest request = TheRequest();
  TextScript script = {.stop_id = kStopToken,
                       .length = [](uint64_t) { return kLength; },
                       .repeat_share = share,
                       .repeat_length = kRepeat,
                       .prompt = [&request](uint64_t) { return std::span(request.prompt); }};
  auto hash = std::make_unique<FakeModelRunner>(
      FakeModelRunner::Options{.num_pages = pages, .in_flight = 2});
  BatchedEngine engine(std::make_unique<ScriptedRunner>(std::move(hash), script),
                       MakeEngineConfig("num_speculative_tokens: ", num_speculative_tokens,
                                        " always_speculate: true"));
  EXPECT_TRUE(engine.Submit(request).ok());
  Outcome outcome;
  for (int i = 0; i < kSamples; ++i) {
    const absl::StatusOr<Sample> sample = engine.Next(Soon());
    EXPECT_TRUE(sample.ok()) << sample.status();
    if (!sample.ok()) break;
    EXPECT_EQ(sample->finish_reason, FinishReason::kStop);
    outcome.tokens[sample->index] = sample->tokens;
  }
  outcome.stats = engine.Stats();
  return outcome;
}

TEST(PlannedText, SamplesEndWhereThePlanSays) {
  for (const double share : {0.0, 1.0}) {
    for (const auto& [sample, tokens] : Generate(share, 0, 1000).tokens) {
      ASSERT_EQ(tokens.size(), kLength);
      EXPECT_EQ(std::count(tokens.begin(), tokens.end(), kStopToken), 1);
      EXPECT_EQ(tokens.back(), kStopToken);
    }
  }
}

TEST(PlannedText, StretchesAreOfThePrompt) {
  const std::vector<int32_t> prompt = TheRequest().prompt;
  std::map<int32_t, int> begins;
  for (const auto& [sample, tokens] : Generate(1, 0, 1000).tokens) {
    for (int64_t p = 0; p + 1 < kLength; ++p) {
      const auto at = std::find(prompt.begin(), prompt.end(), tokens[p]);
      ASSERT_NE(at, prompt.end());
      if (p % kRepeat == 0) {
        ++begins[tokens[p]];
      } else {
        EXPECT_EQ(
            tokens[p],
            prompt[(std::find(prompt.begin(), prompt.end(), tokens[p - 1]) - prompt.begin() + 1) %
                   prompt.size()]);
      }
    }
  }
  EXPECT_GT(begins.size(), 3u) << "they begin in different places";
}

TEST(PlannedText, AsManyAreCopiesAsThePlanSays) {
  const std::vector<int32_t> prompt = TheRequest().prompt;
  const TextScript script = {.length = [](uint64_t) { return 1 << 20; },
                             .repeat_share = 0.3,
                             .repeat_length = 4,
                             .prompt = [&prompt](uint64_t) { return std::span(prompt); }};
  int64_t copies = 0;
  for (uint64_t stream = 0; stream < 50; ++stream) {
    for (int64_t p = 0; p < 800; ++p) copies += script.Token(stream, p, 39) != 39 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(copies) / (50 * 800), 0.3, 0.02);
}

// The script determines all tokens, so draft tokens must change none of them; they are accepted
// where the prompt continues.
TEST(PlannedText, DraftTokensHoldInCopies) {
  const Outcome plain = Generate(1, 0, 1000);
  for (const int pages : {1000, 50}) {
    const Outcome drafted = Generate(1, 4, pages);
    EXPECT_EQ(drafted.tokens, plain.tokens);
    EXPECT_GT(drafted.stats.accepted_tokens, drafted.stats.draft_tokens / 3) << pages;
    EXPECT_GT(drafted.stats.accepted_tokens, 50);
    EXPECT_LT(drafted.stats.decode_steps, plain.stats.decode_steps);
  }
}

}  // namespace
}  // namespace tritonrl
