// The short version of //exec/testing/soak.
#include "exec/testing/soak/soak.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/synchronization/mutex.h"
#include "exec/device_backend.h"
#include "exec/testing/soak/soak_plan.h"
#include "nlohmann/json.hpp"

namespace tritonrl {
namespace {

TEST(SoakTest, NoVerdictIsLostOrMixedUpAndNothingStays) {
  const auto report = RunSoak({.count = 30, .evil_share = 0.5, .extra_seconds = 1});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->wrong, testing::IsEmpty());
  EXPECT_THAT(report->left, testing::IsEmpty());
  EXPECT_THAT(report->unfinished, testing::IsEmpty());
  EXPECT_EQ(report->counts.jobs, 30 + report->counts.workers_lost);
  EXPECT_EQ(report->done, 30);
  EXPECT_EQ(report->memory.size(), 3u);
  EXPECT_TRUE(report->MemoryIsFlat());
  EXPECT_TRUE(report->ok()) << SoakReportText(*report);
  EXPECT_GT(report->kinds.size(), 5u);
}

TEST(SoakTest, ConcludesWhenItsTimeIsOverAndTellsMeanwhile) {
  SoakOptions options = {.count = 1000, .evil_share = 0.5, .extra_seconds = 1};
  options.seconds = 1.5;
  options.tell_every = absl::Milliseconds(100);
  int told = 0;
  SoakState last;
  // Called on one thread, which ends before RunSoak returns.
  options.tell = [&](const SoakState& state) {
    ++told;
    last = state;
  };
  const auto report = RunSoak(options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->ok()) << SoakReportText(*report);
  EXPECT_GT(report->done, 0);
  EXPECT_LT(report->done, options.count);
  EXPECT_EQ(report->memory.back().verdicts, report->done);
  EXPECT_GT(told, 0);
  EXPECT_LE(last.done, report->done);
  EXPECT_EQ(last.planned, options.count);
  int counted = 0;
  const auto json = nlohmann::json::parse(SoakReportJson(*report));
  for (const auto& [kind, figures] : json["kinds"].items()) counted += figures["count"].get<int>();
  EXPECT_EQ(counted, report->done);
  EXPECT_EQ(json["verdicts"], report->done);
}

TEST(SoakTest, AMixedUpVerdictIsNoticed) {
  const std::vector<SoakCase> plan = PlanSoak({.count = 12});
  ExecResult result;
  SetOutcome(Outcome::OK, "", result.mutable_outcome());
  result.set_output("soak case 11.\n");
  EXPECT_EQ(CheckSoakResult(plan[11], result), "");
  EXPECT_NE(CheckSoakResult(plan[1], result), "");
  SetOutcome(Outcome::MISMATCH, "", result.mutable_outcome());
  EXPECT_NE(CheckSoakResult(plan[11], result), "");
}

TEST(SoakReportTest, SaysWhatRunsAndWhatIsDone) {
  SoakState state;
  state.planned = 60;
  state.done = 3;
  state.seconds = 21.4;
  state.running = {{"hang", 2}, {"honest", 5}};
  state.kinds["crash"].count = 3;
  EXPECT_EQ(SoakStateText(state),
            "soak: 3/60 after 21 s; running: hang 2, honest 5; done: crash 3");
  state.wrong = 1;
  state.last_wrong = "case 7 (hang): why";
  EXPECT_THAT(SoakStateText(state), testing::HasSubstr("1 WRONG (last: case 7 (hang): why)"));
}

TEST(SoakReportTest, GrowingMemoryAndNoVerdictAreNotFine) {
  SoakReport report;
  EXPECT_FALSE(report.ok());
  report.done = 1;
  report.memory = {{1, 10 << 20, 100 << 20}, {2, 10 << 20, 100 << 20}};
  EXPECT_TRUE(report.ok());
  report.memory.back().workers = 140 << 20;
  EXPECT_FALSE(report.ok());
}

}  // namespace
}  // namespace tritonrl
