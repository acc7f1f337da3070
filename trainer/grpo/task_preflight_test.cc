// The preflight removes unsound and broken tasks, names them, and keeps all other tasks.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "base/file.h"
#include "base/status.h"
#include "exec/testing/scripted_backend.h"
#include "trainer/grpo/verification.h"
#include "verify/testing/honest_program.h"

namespace tritonrl {
namespace {

// The source of a task selects the result of its check.
absl::StatusOr<ExecResult> Answer(const ExecRequest& request, absl::Time) {
  if (request.reference_source() == "broken") {
    return BadResult(Outcome::REFERENCE_FAILED, "no\nModel");
  }
  if (request.reference_source() == "lost") return BadResult(Outcome::WORKER_LOST, "gone");
  ExecResult result;
  SetOutcome(Outcome::OK, "", result.mutable_outcome());
  TaskProbe* probe = result.add_probes();
  probe->set_name("zeros");
  probe->set_passes(request.reference_source() == "zeros");
  probe->set_text("right on all 5 trials");
  return result;
}

Verification WithScriptedBackend() {
  Verification verification;
  verification.backend = std::make_unique<DeferredBackend>(
      [] { return std::make_unique<ScriptedBackend>(Answer); }, "fake", true, 1);
  return verification;
}

PreparedTasks Tasks(const std::vector<std::string>& sources) {
  PreparedTasks tasks;
  for (const std::string& source : sources) {
    PreparedTask task;
    task.task = {.id = "level1/" + source, .source = source};
    tasks.tasks.push_back(task);
  }
  return tasks;
}

TEST(TaskPreflightTest, UnsoundAndBrokenTasksGo) {
  const Verification verification = WithScriptedBackend();
  auto ranks = ProcessGroup::Join(absl::Seconds(10));
  ASSERT_TRUE(ranks.ok());
  PreparedTasks tasks = Tasks({"good", "zeros", "broken", "lost"});
  const absl::Status status = RemoveUnsoundTasks(verification, {}, ranks->get(), &tasks);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(tasks.tasks.size(), 2u);
  EXPECT_EQ(tasks.tasks[0].task.id, "level1/good");
  EXPECT_EQ(tasks.tasks[1].task.id, "level1/lost");
  ASSERT_EQ(tasks.problems.size(), 3u);
  EXPECT_TRUE(absl::StrContains(tasks.problems[0],
                                "level1/zeros: left out by the preflight, unsound: zeros passes"))
      << tasks.problems[0];
  EXPECT_TRUE(absl::StrContains(tasks.problems[1], "broken: no Model")) << tasks.problems[1];
  EXPECT_TRUE(absl::StrContains(tasks.problems[2], "not_checked: gone")) << tasks.problems[2];
}

TEST(TaskPreflightTest, ARestartTakesTheResultsFromTheRunFolder) {
  auto ranks = ProcessGroup::Join(absl::Seconds(10));
  ASSERT_TRUE(ranks.ok());
  const std::string folder = MakeTempDirectory("preflight").value();
  const PreflightSettings settings = {.journal = folder + "/preflight.jsonl"};
  const Verification verification = WithScriptedBackend();
  PreparedTasks before = Tasks({"good", "zeros"});
  ASSERT_TRUE(RemoveUnsoundTasks(verification, settings, ranks->get(), &before).ok());
  // This backend could check nothing.
  Verification dead;
  dead.backend = std::make_unique<DeferredBackend>(
      []() -> absl::StatusOr<std::unique_ptr<DeviceBackend>> {
        return absl::UnavailableError("no workers");
      },
      "fake", true, 1);
  PreparedTasks after = Tasks({"good", "zeros"});
  const absl::Status status = RemoveUnsoundTasks(dead, settings, ranks->get(), &after);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(after.tasks.size(), 1u);
  EXPECT_EQ(after.problems, before.problems);
  EXPECT_TRUE(RemoveTree(folder).ok());
}

TEST(TaskPreflightTest, ABackendThatDoesNotStartIsAnError) {
  auto ranks = ProcessGroup::Join(absl::Seconds(10));
  ASSERT_TRUE(ranks.ok());
  Verification verification;
  verification.backend = std::make_unique<DeferredBackend>(
      []() -> absl::StatusOr<std::unique_ptr<DeviceBackend>> {
        return absl::UnavailableError("no server has answered");
      },
      "fake", true, 1);
  PreparedTasks tasks = Tasks(std::vector<std::string>(20, "good"));
  const absl::Status status = RemoveUnsoundTasks(verification, {}, ranks->get(), &tasks);
  EXPECT_TRUE(absl::StrContains(Message(status), "no server has answered")) << status;
  EXPECT_TRUE(absl::StrContains(Message(status), "server of the role check or both")) << status;
}

TEST(TaskPreflightTest, NoTaskLeftIsAnError) {
  const Verification verification = WithScriptedBackend();
  auto ranks = ProcessGroup::Join(absl::Seconds(10));
  ASSERT_TRUE(ranks.ok());
  PreparedTasks tasks = Tasks({"zeros"});
  const absl::Status status = RemoveUnsoundTasks(verification, {}, ranks->get(), &tasks);
  EXPECT_TRUE(absl::StrContains(Message(status), "leaves no task")) << status;
}

}  // namespace
}  // namespace tritonrl
