#include "rollout/serve/generation.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "rollout/serve/testing/scripted_engine.h"

namespace tritonrl {
namespace {

bool Readable(int fd, int timeout_ms) {
  pollfd entry = {fd, POLLIN, 0};
  return poll(&entry, 1, timeout_ms) > 0;
}

// Takes events until there are `count`.
std::vector<TokenEvent> TakeEvents(Generation* generation, size_t count) {
  std::vector<TokenEvent> events;
  while (events.size() < count && Readable(generation->event_fd(), 60000)) {
    const auto more = generation->Take();
    EXPECT_TRUE(more.ok()) << more.status();
    if (!more.ok()) break;
    events.insert(events.end(), more->begin(), more->end());
  }
  EXPECT_EQ(events.size(), count);
  return events;
}

GenerationSpec Spec(int prompts, int n) {
  GenerationSpec spec;
  for (int i = 0; i < prompts; ++i) spec.prompts.push_back({{i, 7}, 10 + i});
  spec.n = n;
  spec.seed = 42;
  return spec;
}

// Waits for a condition that the service's thread fulfils.
bool WaitUntil(const std::function<bool()>& condition) {
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(1));
  }
  return true;
}

TEST(Generation, RoutesTokensToTheirChoices) {
  ScriptedEngine engine;
  GenerationService service(&engine);
  auto one = service.Start(Spec(2, 2));
  auto other = service.Start(Spec(1, 1));
  ASSERT_TRUE(one.ok() && other.ok());
  const GenerateRequest first = engine.WaitForRequest(0), second = engine.WaitForRequest(1),
                        third = engine.WaitForRequest(2);
  EXPECT_EQ(first.prompt, (std::vector<int32_t>{0, 7}));
  EXPECT_EQ(first.n, 2);
  EXPECT_EQ(first.sampling.max_tokens, 10);
  EXPECT_EQ(second.sampling.max_tokens, 11);
  EXPECT_EQ(second.key.run_seed, 42u);
  EXPECT_EQ(second.key.task, 1u);
  engine.Draw(second, 1, 5, -0.5f);
  engine.Draw(third, 0, 6);
  engine.Draw(first, 0, 7);
  engine.End(second, 1, FinishReason::kLength);
  const std::vector<TokenEvent> events = TakeEvents(one->get(), 3);
  EXPECT_EQ(events[0].choice, 3);
  EXPECT_EQ(events[0].token, 5);
  EXPECT_EQ(events[0].log_prob, -0.5f);
  EXPECT_EQ(events[1].choice, 0);
  EXPECT_EQ(events[1].token, 7);
  EXPECT_EQ(events[2].choice, 3);
  EXPECT_TRUE(events[2].ended);
  EXPECT_EQ(events[2].reason, FinishReason::kLength);
  EXPECT_EQ(TakeEvents(other->get(), 1)[0].token, 6);
}

TEST(Generation, CountsRunningAndWaitingSamples) {
  ScriptedEngine engine;
  GenerationService service(&engine);
  auto generation = service.Start(Spec(1, 3));
  ASSERT_TRUE(generation.ok());
  const GenerateRequest request = engine.WaitForRequest(0);
  EXPECT_EQ(service.waiting(), 3);
  engine.Draw(request, 0, 1);
  engine.Draw(request, 1, 1);
  EXPECT_EQ(service.running(), 2);
  EXPECT_EQ(service.waiting(), 1);
  generation->reset();
  EXPECT_TRUE(WaitUntil([&] { return service.running() == 0 && service.waiting() == 0; }));
  EXPECT_EQ(engine.Outstanding(), 0);
}

TEST(Generation, DroppingItCancelsWhatStillRuns) {
  ScriptedEngine engine;
  GenerationService service(&engine);
  auto generation = service.Start(Spec(2, 1));
  ASSERT_TRUE(generation.ok());
  const GenerateRequest first = engine.WaitForRequest(0), second = engine.WaitForRequest(1);
  engine.End(first, 0, FinishReason::kStop);
  TakeEvents(generation->get(), 1);
  generation->reset();
  EXPECT_TRUE(engine.WaitForCancel(second));
  EXPECT_TRUE(WaitUntil([&] { return engine.Outstanding() == 0; }));
}

TEST(Generation, AChoiceIsCancelledAlone) {
  ScriptedEngine engine;
  GenerationService service(&engine);
  auto generation = service.Start(Spec(2, 3));
  ASSERT_TRUE(generation.ok());
  const GenerateRequest first = engine.WaitForRequest(0), second = engine.WaitForRequest(1);
  EXPECT_EQ(second.n, 3) << "one group for each prompt";
  (*generation)->CancelChoice(5);
  (*generation)->CancelChoice(5);
  EXPECT_FALSE(engine.IsOpen(second, 2));
  EXPECT_TRUE(engine.IsOpen(second, 0) && engine.IsOpen(second, 1) && engine.IsOpen(first, 2));
  const TokenEvent end = TakeEvents(generation->get(), 1)[0];
  EXPECT_EQ(end.choice, 5);
  EXPECT_EQ(end.reason, FinishReason::kCancelled);
  (*generation)->CancelChoice(5);
  engine.Draw(second, 1, 9);
  EXPECT_EQ(TakeEvents(generation->get(), 1)[0].choice, 4);
}

TEST(Generation, AFailedSampleEndsAlone) {
  ScriptedEngine engine;
  GenerationService service(&engine);
  auto generation = service.Start(Spec(1, 2));
  ASSERT_TRUE(generation.ok());
  const GenerateRequest request = engine.WaitForRequest(0);
  engine.End(request, 1, FinishReason::kFailed);
  const TokenEvent end = TakeEvents(generation->get(), 1)[0];
  EXPECT_EQ(end.choice, 1);
  EXPECT_EQ(end.reason, FinishReason::kFailed);
  EXPECT_TRUE(service.health().ok());
  engine.Draw(request, 0, 3);
  EXPECT_EQ(TakeEvents(generation->get(), 1)[0].token, 3);
}

TEST(Generation, WakesAtEndsAloneIfAsked) {
  ScriptedEngine engine;
  GenerationService service(&engine);
  GenerationSpec spec = Spec(1, 1);
  spec.wake_on_tokens = false;
  auto generation = service.Start(spec);
  ASSERT_TRUE(generation.ok());
  const GenerateRequest request = engine.WaitForRequest(0);
  engine.Draw(request, 0, 1);
  EXPECT_FALSE(Readable((*generation)->event_fd(), 0));
  engine.End(request, 0, FinishReason::kStop);
  EXPECT_TRUE(Readable((*generation)->event_fd(), 60000));
  EXPECT_EQ((*generation)->Take()->size(), 2u);
}

TEST(Generation, AbortReachesRequestsAndLaterOnes) {
  ScriptedEngine engine;
  GenerationService service(&engine);
  auto generation = service.Start(Spec(1, 1));
  ASSERT_TRUE(generation.ok());
  service.Abort(absl::UnavailableError("enough"));
  EXPECT_TRUE(Readable((*generation)->event_fd(), 60000));
  EXPECT_EQ((*generation)->Take().status().message(), "enough");
  EXPECT_EQ(service.Start(Spec(1, 1)).status().message(), "enough");
  EXPECT_TRUE(engine.WaitForCancel(engine.WaitForRequest(0)));
  EXPECT_TRUE(service.health().ok());
}

TEST(Generation, AFailedEngineReachesAllRequests) {
  ScriptedEngine engine;
  GenerationService service(&engine);
  auto generation = service.Start(Spec(1, 2));
  ASSERT_TRUE(generation.ok());
  engine.Draw(engine.WaitForRequest(0), 0, 1);
  engine.Fail(absl::InternalError("out of memory"));
  EXPECT_TRUE(WaitUntil([&] { return !service.health().ok(); }));
  EXPECT_TRUE(WaitUntil([&] { return service.running() == 0; }));
  EXPECT_TRUE(Readable((*generation)->event_fd(), 60000));
  EXPECT_EQ((*generation)->Take().status().message(), "out of memory");
  EXPECT_EQ(service.Start(Spec(1, 1)).status().message(), "out of memory");
}

TEST(Generation, ARefusedPartEndsTheOthers) {
  ScriptedEngine engine;
  GenerationService service(&engine);
  engine.Refuse(absl::ResourceExhaustedError("full"));
  EXPECT_EQ(service.Start(Spec(2, 1)).status().message(), "full");
  EXPECT_EQ(service.waiting(), 0);
}

}  // namespace
}  // namespace tritonrl
