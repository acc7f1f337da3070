// The short version of //exec:soak: the pool, the sandbox and the supervisor with a runner that
// needs no torch.
#include "exec/testing/soak.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exec/testing/soak_plan.h"

namespace tritonrl {
namespace {

TEST(SoakTest, NoVerdictIsLostOrMixedUpAndNothingStays) {
  const auto report = RunSoak({.count = 60, .evil_share = 0.5, .torch_runner = false});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->wrong, testing::IsEmpty());
  EXPECT_THAT(report->left, testing::IsEmpty());
  EXPECT_EQ(report->counts.jobs, 60 + report->counts.workers_lost);
  EXPECT_EQ(report->memory.size(), 3u);
  EXPECT_TRUE(report->MemoryIsFlat());
  EXPECT_GT(report->kinds.size(), 5u);
}

TEST(SoakTest, AMixedUpVerdictIsNoticed) {
  const std::vector<SoakCase> plan = PlanSoak({.count = 12, .torch_runner = false});
  ExecResult result;
  result.set_outcome(EXEC_OK);
  result.set_output("soak case 11.\n");
  EXPECT_EQ(CheckSoakResult(plan[11], result), "");
  EXPECT_NE(CheckSoakResult(plan[1], result), "");
  result.set_outcome(EXEC_MISMATCH);
  EXPECT_NE(CheckSoakResult(plan[11], result), "");
}

}  // namespace
}  // namespace tritonrl
