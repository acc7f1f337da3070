// Which time counts against the wall-clock limit of a job with a dialogue.
#include "exec/workers/job_dialogue.h"

#include <gtest/gtest.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/testing/fake_clock.h"
#include "exec/testing/pool_options.h"

namespace tritonrl {
namespace {

TEST(WaitedTimeTest, SpansThatOverlapCountOnce) {
  FakeClock clock;
  WaitedTime waited(&clock);
  EXPECT_EQ(waited.Total(), absl::ZeroDuration());
  {
    const WaitedTime::Span one(&waited), two(&waited), none(nullptr);
    clock.Advance(absl::Milliseconds(20));
    EXPECT_EQ(waited.Total(), absl::Milliseconds(20));
  }
  clock.Advance(absl::Milliseconds(5));
  EXPECT_EQ(waited.Total(), absl::Milliseconds(20));
}

class JobDialogueTest : public testing::Test {
 protected:
  // Runs a job that works for `works_seconds` under a limit of 0.3 s, and counts a wait of
  // `held_up` until its first message.
  static JobReport Run(absl::Duration held_up, double works_seconds) {
    auto pool = WorkerPool::Start(FakePoolOptions(1));
    EXPECT_TRUE(pool.ok()) << pool.status();
    ExecLimits limits;
    limits.set_wall_seconds(0.3);
    FakeClock clock;
    WaitedTime waited(&clock);
    const std::string job =
        absl::StrCat(R"J({"role": "runner", "candidate_source": "import time; time.sleep()J",
                     works_seconds, R"J(); control.ask({})"})J");
    std::optional<WaitedTime::Span> span(&waited);
    clock.Advance(held_up);
    auto dialogue = JobDialogue::Start(pool->get(), job, limits, absl::Now() + absl::Seconds(60),
                                       {}, {.waited = &waited});
    EXPECT_TRUE(dialogue.ok()) << dialogue.status();
    (void)(*dialogue)->Next();  // the message that the job sends after its work
    span.reset();
    (*dialogue)->Send("{\"go\": true}");
    while ((*dialogue)->Next().has_value()) continue;
    return (*dialogue)->Finish();
  }
};

TEST_F(JobDialogueTest, WaitingForOthersDoesNotCount) {
  EXPECT_EQ(Run(absl::Hours(1), 0.6).end, JobEnd::kExit);
}

TEST_F(JobDialogueTest, ItsOwnWorkDoes) {
  EXPECT_EQ(Run(absl::ZeroDuration(), 60).end, JobEnd::kTimeout);
}

}  // namespace
}  // namespace tritonrl
