#include "verify/pipeline/progress_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "base/file.h"

namespace tritonrl {
namespace {

TEST(WorkThroughTest, EachOnceAndAsManyAtATimeAsAsked) {
  for (const int parallel : {-1, 1, 3, 100}) {
    std::vector<std::atomic<int>> calls(17);
    std::atomic<int> running{0}, most{0};
    ParallelForUntil(calls.size(), parallel, [&](size_t i) {
      const int now = ++running;
      int seen = most;
      while (now > seen && !most.compare_exchange_weak(seen, now)) {
      }
      ++calls[i];
      --running;
      return true;
    });
    for (const std::atomic<int>& count : calls) EXPECT_EQ(count, 1);
    EXPECT_LE(most, std::max(parallel, 1));
  }
  // Three calls that wait for each other must run at the same time.
  auto* barrier = new absl::Barrier(3);
  ParallelForUntil(3, 3, [barrier](size_t) {
    if (barrier->Block()) delete barrier;
    return true;
  });
  ParallelForUntil(0, 4, [](size_t) -> bool {
    ADD_FAILURE();
    return true;
  });
}

TEST(WorkThroughTest, NothingBeginsAfterANo) {
  std::vector<size_t> calls;
  ParallelForUntil(10, 1, [&](size_t i) {
    calls.push_back(i);
    return i < 2;
  });
  EXPECT_THAT(calls, testing::ElementsAre(0, 1, 2));
}

TEST(RecorderTest, KeepsLinesAndShowsWhatIsDone) {
  auto folder = MakeTempDirectory("work_list");
  ASSERT_TRUE(folder.ok());
  std::FILE* messages = std::fopen((*folder + "/messages").c_str(), "w");
  {
    auto file = JsonlJournal::Create(*folder + "/lines");
    ASSERT_TRUE(file.ok());
    ProgressRecorder recorder(
        {.label = "x", .total = 4, .first = 1, .out = messages, .force_tty = 0}, *std::move(file));
    EXPECT_TRUE(recorder.Keep("one").ok());
    recorder.Done();
    EXPECT_TRUE(recorder.Keep("two").ok());
    recorder.Show("a passing state, not at the end");
    recorder.Finish("all fine");
  }
  std::fclose(messages);
  EXPECT_EQ(*ReadFile(*folder + "/lines"), "one\ntwo\n");
  const std::string shown = *ReadFile(*folder + "/messages");
  EXPECT_THAT(shown, testing::HasSubstr("4/4"));
  EXPECT_THAT(shown, testing::HasSubstr("all fine"));
  EXPECT_THAT(shown, testing::Not(testing::HasSubstr("passing")));
  ASSERT_TRUE(RemoveTree(*folder).ok());
}

}  // namespace
}  // namespace tritonrl
