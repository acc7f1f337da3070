#include "exec/outcome/classify_outcome.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <tuple>

#include "exec/device_backend.h"

namespace tritonrl {
namespace {

constexpr char kReference[] = "{\"phase\": \"reference\"}\n";
constexpr char kForward[] = "{\"phase\": \"import\"}\n{\"phase\": \"forward\"}\n";

ExecResult End(JobEnd end, const std::string& channel, int signal = 0,
               JobRole role = JobRole::kRunner) {
  JobReport report;
  report.end = end;
  report.signal = signal;
  report.exit_code = signal == 0 ? 0 : -1;
  report.channel = channel;
  return Classify(report, DefaultLimits(), role);
}

TEST(ClassifyTest, CandidatesFaults) {
  EXPECT_EQ(End(JobEnd::kExit, kForward).outcome().reason(), Outcome::EXITED);
  EXPECT_EQ(End(JobEnd::kExit, kForward, SIGSEGV).outcome().reason(), Outcome::CRASHED);
  EXPECT_EQ(End(JobEnd::kExit, kForward, SIGXCPU).outcome().reason(), Outcome::TIMEOUT);
  EXPECT_EQ(End(JobEnd::kTimeout, kForward).outcome().reason(), Outcome::TIMEOUT);
  EXPECT_EQ(End(JobEnd::kOutputLimit, kForward).outcome().reason(), Outcome::OUTPUT_LIMIT);
  EXPECT_EQ(End(JobEnd::kProcessLimit, kForward).outcome().reason(), Outcome::PROCESS_LIMIT);
  EXPECT_EQ(End(JobEnd::kChannelLimit, "xxx").outcome().reason(), Outcome::BAD_RESULT);
  EXPECT_EQ(End(JobEnd::kTimeout, kForward).phase(), "forward");
  EXPECT_EQ(End(JobEnd::kTimeout, kForward).outcome().status(), Outcome::STATUS_CANDIDATE_FAILED);
}

TEST(ClassifyTest, MemoryExplainsAKill) {
  JobReport report;
  report.end = JobEnd::kExit;
  report.signal = SIGKILL;
  report.out_of_memory = true;
  report.channel = kForward;
  EXPECT_EQ(Classify(report, DefaultLimits(), JobRole::kRunner).outcome().reason(),
            Outcome::OUT_OF_MEMORY);
  report.end = JobEnd::kWorkerDied;  // the out-of-memory killer chose the worker itself
  report.channel = "";
  EXPECT_EQ(Classify(report, DefaultLimits(), JobRole::kRunner).outcome().reason(),
            Outcome::OUT_OF_MEMORY);
}

TEST(ClassifyTest, BeforeTheCandidateItIsNotItsFault) {
  EXPECT_EQ(End(JobEnd::kTimeout, "").outcome().reason(), Outcome::INTERNAL_ERROR);
  EXPECT_EQ(End(JobEnd::kExit, "{\"setup_error\": \"mount\"}\n").outcome().reason(),
            Outcome::INTERNAL_ERROR);
}

TEST(ClassifyTest, WhatTheReferenceDoesIsTheTasksFault) {
  for (const JobRole role : {JobRole::kReference}) {
    for (const auto& [end, channel, signal] : {std::tuple(JobEnd::kTimeout, kReference, 0),
                                               {JobEnd::kExit, kReference, SIGSEGV},
                                               {JobEnd::kOutputLimit, kReference, 0},
                                               {JobEnd::kExit, "garbage", 0}}) {
      const ExecResult result = End(end, channel, signal, role);
      EXPECT_EQ(result.outcome().reason(), Outcome::REFERENCE_FAILED) << result.ShortDebugString();
      EXPECT_EQ(result.outcome().status(), Outcome::STATUS_TASK_FAILED);
    }
    EXPECT_EQ(End(JobEnd::kTimeout, "", 0, role).outcome().reason(), Outcome::INTERNAL_ERROR);
    EXPECT_EQ(End(JobEnd::kStopped, kReference, 0, role).outcome().reason(), Outcome::CANCELLED);
  }
}

TEST(ClassifyTest, InfraErrorsHideNothing) {
  const std::pair<JobEnd, Outcome::Reason> cases[] = {{JobEnd::kNotStarted, Outcome::WORKER_LOST},
                                                      {JobEnd::kWorkerDied, Outcome::WORKER_LOST},
                                                      {JobEnd::kQueueTimeout, Outcome::DEADLINE},
                                                      {JobEnd::kDeadline, Outcome::DEADLINE},
                                                      {JobEnd::kStopped, Outcome::CANCELLED}};
  for (const auto& [end, outcome] : cases) {
    EXPECT_EQ(End(end, kForward).outcome().reason(), outcome);
    EXPECT_EQ(End(end, kForward).outcome().status(), Outcome::STATUS_INFRA_ERROR);
    EXPECT_FALSE(End(end, kForward).outcome().message().empty());
  }
}

TEST(OutcomeTest, NamesFaultsAndRetries) {
  EXPECT_EQ(ReasonName(Outcome::OUT_OF_MEMORY), "out_of_memory");
  EXPECT_EQ(StatusOf(Outcome::OK), Outcome::STATUS_OK);
  EXPECT_EQ(StatusOf(Outcome::REFERENCE_FAILED), Outcome::STATUS_TASK_FAILED);
  EXPECT_EQ(StatusOf(Outcome::KILLED_WORKER), Outcome::STATUS_CANDIDATE_FAILED);
  EXPECT_EQ(StatusOf(Outcome::NOT_EXECUTABLE), Outcome::STATUS_CANDIDATE_FAILED);
  EXPECT_TRUE(IsRetryable(Outcome::WORKER_LOST));
  EXPECT_FALSE(IsRetryable(Outcome::NOT_EXECUTABLE));
  EXPECT_EQ(StatusOf(Outcome::INCONCLUSIVE), Outcome::STATUS_INFRA_ERROR);
  EXPECT_FALSE(IsRetryable(Outcome::INCONCLUSIVE));
  EXPECT_EQ(StatusOf(Outcome::NO_DEVICE_MEMORY), Outcome::STATUS_INFRA_ERROR);
  EXPECT_FALSE(IsRetryable(Outcome::NO_DEVICE_MEMORY));
  EXPECT_FALSE(IsRetryable(Outcome::TIMEOUT));
}

}  // namespace
}  // namespace tritonrl
