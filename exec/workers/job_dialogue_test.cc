// A job that is talked to: what counts against its limit of time.
#include "exec/workers/job_dialogue.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "exec/testing/pool_options.h"

namespace tritonrl {
namespace {

TEST(WaitedTimeTest, SpansThatOverlapCountOnce) {
  WaitedTime waited;
  EXPECT_EQ(waited.Total(), absl::ZeroDuration());
  const absl::Time begin = absl::Now();
  {
    const WaitedTime::Span one(&waited), two(&waited), none(nullptr);
    absl::SleepFor(absl::Milliseconds(20));
    EXPECT_GE(waited.Total(), absl::Milliseconds(20));
  }
  EXPECT_LE(waited.Total(), absl::Now() - begin);
  const absl::Duration total = waited.Total();
  absl::SleepFor(absl::Milliseconds(5));
  EXPECT_EQ(waited.Total(), total);
}

class JobDialogueTest : public testing::Test {
 protected:
  // A job that works for so long and has a limit of 0.6 s; the supervisor keeps it waiting before.
  static JobReport Run(absl::Duration held_up, double works_seconds) {
    auto pool = WorkerPool::Start(FakePoolOptions(1));
    EXPECT_TRUE(pool.ok()) << pool.status();
    ExecLimits limits;
    limits.set_wall_seconds(0.6);
    WaitedTime waited;
    const std::string job = absl::StrCat(
        R"J({"role": "runner", "device": "interpreter", "calls": [0], "measure_time": false, )J",
        R"J("candidate_source": "import time; time.sleep()J", works_seconds, R"J()"})J");
    auto dialogue = JobDialogue::Start(pool->get(), job, limits, absl::Now() + absl::Seconds(20),
                                       {}, {.waited = &waited});
    EXPECT_TRUE(dialogue.ok()) << dialogue.status();
    (void)(*dialogue)->Next();  // of its only call, after its work
    {
      const WaitedTime::Span span(&waited);
      absl::SleepFor(held_up);
    }
    (*dialogue)->Send("{\"go\": true}");
    while ((*dialogue)->Next().has_value()) (*dialogue)->Send("{\"done\": true}");
    return (*dialogue)->Finish();
  }
};

TEST_F(JobDialogueTest, WaitingForOthersDoesNotCount) {
  EXPECT_EQ(Run(absl::Seconds(1.5), 0.1).end, JobEnd::kExit);
}

TEST_F(JobDialogueTest, ItsOwnWorkDoes) {
  EXPECT_EQ(Run(absl::ZeroDuration(), 5).end, JobEnd::kTimeout);
}

}  // namespace
}  // namespace tritonrl
