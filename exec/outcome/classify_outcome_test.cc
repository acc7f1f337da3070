#include "exec/outcome/classify_outcome.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <tuple>

#include "exec/device_backend.h"

namespace tritonrl {
namespace {

constexpr char kReference[] = "{\"phase\": \"reference\"}\n";
constexpr char kForward[] = "{\"phase\": \"import\"}\n{\"phase\": \"forward\"}\n";

ExecResult Outcome(JobEnd end, const std::string& channel, int signal = 0,
                   JobRole role = JobRole::kRunner) {
  JobReport report;
  report.end = end;
  report.signal = signal;
  report.exit_code = signal == 0 ? 0 : -1;
  report.channel = channel;
  return Classify(report, DefaultLimits(), role);
}

TEST(ClassifyTest, CandidatesFaults) {
  EXPECT_EQ(Outcome(JobEnd::kExit, kForward).outcome(), EXEC_EXITED);
  EXPECT_EQ(Outcome(JobEnd::kExit, kForward, SIGSEGV).outcome(), EXEC_CRASHED);
  EXPECT_EQ(Outcome(JobEnd::kExit, kForward, SIGXCPU).outcome(), EXEC_TIMEOUT);
  EXPECT_EQ(Outcome(JobEnd::kTimeout, kForward).outcome(), EXEC_TIMEOUT);
  EXPECT_EQ(Outcome(JobEnd::kOutputLimit, kForward).outcome(), EXEC_OUTPUT_LIMIT);
  EXPECT_EQ(Outcome(JobEnd::kProcessLimit, kForward).outcome(), EXEC_PROCESS_LIMIT);
  EXPECT_EQ(Outcome(JobEnd::kChannelLimit, "xxx").outcome(), EXEC_BAD_RESULT);
  EXPECT_EQ(Outcome(JobEnd::kTimeout, kForward).phase(), "forward");
  EXPECT_EQ(Outcome(JobEnd::kTimeout, kForward).fault(), EXEC_FAULT_CANDIDATE);
}

TEST(ClassifyTest, MemoryExplainsAKill) {
  JobReport report;
  report.end = JobEnd::kExit;
  report.signal = SIGKILL;
  report.out_of_memory = true;
  report.channel = kForward;
  EXPECT_EQ(Classify(report, DefaultLimits(), JobRole::kRunner).outcome(), EXEC_OUT_OF_MEMORY);
  report.end = JobEnd::kWorkerDied;  // the kernel chose the worker itself
  report.channel = "";
  EXPECT_EQ(Classify(report, DefaultLimits(), JobRole::kRunner).outcome(), EXEC_OUT_OF_MEMORY);
}

TEST(ClassifyTest, BeforeTheCandidateItIsNotItsFault) {
  EXPECT_EQ(Outcome(JobEnd::kTimeout, "").outcome(), EXEC_INTERNAL_ERROR);
  EXPECT_EQ(Outcome(JobEnd::kExit, "{\"setup_error\": \"mount\"}\n").outcome(),
            EXEC_INTERNAL_ERROR);
}

TEST(ClassifyTest, WhatTheReferenceDoesIsTheTasksFault) {
  for (const JobRole role : {JobRole::kReference}) {
    for (const auto& [end, channel, signal] : {std::tuple(JobEnd::kTimeout, kReference, 0),
                                               {JobEnd::kExit, kReference, SIGSEGV},
                                               {JobEnd::kOutputLimit, kReference, 0},
                                               {JobEnd::kExit, "garbage", 0}}) {
      const ExecResult result = Outcome(end, channel, signal, role);
      EXPECT_EQ(result.outcome(), EXEC_REFERENCE_FAILED) << result.ShortDebugString();
      EXPECT_EQ(result.fault(), EXEC_FAULT_TASK);
    }
    EXPECT_EQ(Outcome(JobEnd::kTimeout, "", 0, role).outcome(), EXEC_INTERNAL_ERROR);
    EXPECT_EQ(Outcome(JobEnd::kStopped, kReference, 0, role).outcome(), EXEC_POOL_STOPPED);
  }
}

TEST(ClassifyTest, OurFaultsHideNothing) {
  const std::pair<JobEnd, ExecOutcome> cases[] = {{JobEnd::kNotStarted, EXEC_WORKER_LOST},
                                                  {JobEnd::kWorkerDied, EXEC_WORKER_LOST},
                                                  {JobEnd::kQueueTimeout, EXEC_NO_WORKER_IN_TIME},
                                                  {JobEnd::kDeadline, EXEC_NO_WORKER_IN_TIME},
                                                  {JobEnd::kStopped, EXEC_POOL_STOPPED}};
  for (const auto& [end, outcome] : cases) {
    EXPECT_EQ(Outcome(end, kForward).outcome(), outcome);
    EXPECT_EQ(Outcome(end, kForward).fault(), EXEC_FAULT_INFRA);
    EXPECT_FALSE(Outcome(end, kForward).message().empty());
  }
}

TEST(OutcomeTest, NamesFaultsAndRetries) {
  EXPECT_EQ(OutcomeName(EXEC_OUT_OF_MEMORY), "out_of_memory");
  EXPECT_EQ(FaultOf(EXEC_OK), EXEC_FAULT_NONE);
  EXPECT_EQ(FaultOf(EXEC_REFERENCE_FAILED), EXEC_FAULT_TASK);
  EXPECT_EQ(FaultOf(EXEC_KILLED_WORKER), EXEC_FAULT_CANDIDATE);
  EXPECT_EQ(FaultOf(EXEC_NOT_EXECUTABLE), EXEC_FAULT_INFRA);
  EXPECT_TRUE(IsRetryable(EXEC_WORKER_LOST));
  EXPECT_FALSE(IsRetryable(EXEC_NOT_EXECUTABLE));
  EXPECT_EQ(FaultOf(EXEC_INCONCLUSIVE), EXEC_FAULT_INFRA);
  EXPECT_FALSE(IsRetryable(EXEC_INCONCLUSIVE));
  EXPECT_FALSE(IsRetryable(EXEC_TIMEOUT));
}

}  // namespace
}  // namespace tritonrl
