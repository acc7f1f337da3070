// The preflight keeps its results in a file, and gives up if nothing can be checked.
#include "verify/preflight/preflight_journal.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status.h"
#include "exec/device_backend.h"
#include "exec/testing/scripted_backend.h"
#include "gtest/gtest.h"
#include "verify/testing/honest_program.h"

namespace tritonrl {
namespace {

// The source of a task names its result: "broken", "lost" (infrastructure error), "unsound..." or
// sound.
absl::StatusOr<ExecResult> Answer(const ExecRequest& request, absl::Time) {
  const std::string& source = request.reference_source();
  if (source == "broken") return BadResult(Outcome::REFERENCE_FAILED, "no Model");
  if (source == "lost") return BadResult(Outcome::WORKER_LOST, "no server takes it");
  ExecResult result;
  SetOutcome(Outcome::OK, "", result.mutable_outcome());
  TaskProbe* probe = result.add_probes();
  probe->set_name("zeros");
  probe->set_passes(absl::StartsWith(source, "unsound"));
  probe->set_text("right on all 5 trials");
  return result;
}

std::vector<Task> Tasks(const std::vector<std::string>& sources) {
  std::vector<Task> tasks;
  for (size_t i = 0; i < sources.size(); ++i) {
    tasks.push_back({.id = absl::StrCat("t", i), .source = sources[i]});
  }
  return tasks;
}

class PreflightJournalTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = MakeTempDirectory("preflight").value();
    path_ = folder_ + "/preflight.jsonl";
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(folder_).ok()); }

  absl::StatusOr<std::vector<TaskCheck>> Run(const std::vector<Task>& tasks,
                                             ScriptedBackend* backend,
                                             const PreflightOptions& options = {}) {
    return RunPreflightWithJournal(tasks, backend, options, path_);
  }

  std::string folder_, path_;
};

TEST_F(PreflightJournalTest, ATaskIsCheckedOnce) {
  ScriptedBackend first(Answer);
  const auto checks = Run(Tasks({"a", "unsound", "broken"}), &first);
  ASSERT_TRUE(checks.ok()) << checks.status();
  EXPECT_EQ(first.calls(), 3);
  ScriptedBackend again(Answer);
  // One new task before the known ones, which have other names now.
  const auto more = Run(Tasks({"b", "a", "unsound", "broken"}), &again);
  ASSERT_TRUE(more.ok()) << more.status();
  EXPECT_EQ(again.calls(), 1);
  ASSERT_EQ(more->size(), 4u);
  EXPECT_EQ((*more)[0].state, TaskState::kSound);
  EXPECT_EQ((*more)[1].state, TaskState::kSound);
  EXPECT_EQ((*more)[2].state, TaskState::kUnsound);
  EXPECT_EQ((*more)[2].task, "t2");
  EXPECT_EQ((*more)[2].reason, (*checks)[1].reason);
  EXPECT_EQ((*more)[3].state, TaskState::kBroken);
}

TEST_F(PreflightJournalTest, OtherRulesAndOtherSourcesAreCheckedAnew) {
  ScriptedBackend backend(Answer);
  ASSERT_TRUE(Run(Tasks({"a"}), &backend).ok());
  PreflightOptions options;
  options.seed = 1;
  ASSERT_TRUE(Run(Tasks({"a"}), &backend, options).ok());
  EXPECT_EQ(backend.calls(), 2);
  ASSERT_TRUE(Run(Tasks({"a changed"}), &backend).ok());
  EXPECT_EQ(backend.calls(), 3);
  ASSERT_TRUE(Run(Tasks({"a"}), &backend).ok());  // the first result is still there
  EXPECT_EQ(backend.calls(), 3);
}

TEST_F(PreflightJournalTest, WhatCouldNotBeCheckedIsTriedAgain) {
  ScriptedBackend backend(Answer);
  const auto checks = Run(Tasks({"a", "lost"}), &backend);
  ASSERT_TRUE(checks.ok()) << checks.status();
  EXPECT_EQ((*checks)[1].state, TaskState::kNotChecked);
  ASSERT_TRUE(Run(Tasks({"a", "lost"}), &backend).ok());
  EXPECT_EQ(backend.calls(), 3);
}

TEST_F(PreflightJournalTest, DamagedLinesAreDroppedAndCheckedAgain) {
  ScriptedBackend backend(Answer);
  ASSERT_TRUE(Run(Tasks({"a"}), &backend).ok());
  const std::string good = ReadFile(path_).value();
  ASSERT_TRUE(WriteFileAtomic(path_, "no JSON\n{\"key\":3}\n" + good + "{\"key\":\"torn").ok());
  ASSERT_TRUE(Run(Tasks({"a", "b"}), &backend).ok());
  EXPECT_EQ(backend.calls(), 2);
  const std::vector<std::string> lines =
      absl::StrSplit(ReadFile(path_).value(), '\n', absl::SkipEmpty());
  EXPECT_EQ(lines.size(), 2u);
}

TEST_F(PreflightJournalTest, WithoutAFileNothingIsKept) {
  ScriptedBackend backend(Answer);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(RunPreflightWithJournal(Tasks({"a"}), &backend, {}, "").ok());
  }
  EXPECT_EQ(backend.calls(), 2);
}

TEST_F(PreflightJournalTest, AFileThatCannotBeWrittenIsNamed) {
  ScriptedBackend backend(Answer);
  const auto checks = RunPreflightWithJournal(Tasks({"a"}), &backend, {}, folder_ + "/no/file");
  EXPECT_TRUE(absl::StrContains(Message(checks.status()), folder_ + "/no/file")) << checks.status();
}

TEST_F(PreflightJournalTest, GivesUpIfTheFirstTasksCannotBeChecked) {
  ScriptedBackend backend(Answer);
  PreflightOptions options;
  options.give_up = absl::Hours(1);
  const auto checks = Run(Tasks(std::vector<std::string>(100, "lost")), &backend, options);
  EXPECT_EQ(checks.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StrContains(Message(checks.status()),
                                "the preflight of 100 tasks gave up after 0, because the last 8 "
                                "could not be checked: no server takes it; start a verification "
                                "server of the role check or both"))
      << checks.status();
  EXPECT_LT(backend.calls(), 20);
}

TEST_F(PreflightJournalTest, GivesUpIfNothingIsCheckedAnyMore) {
  // A task that was checked before does not help: with no patience at all the next failure ends it.
  ScriptedBackend backend(Answer);
  PreflightOptions options;
  options.give_up = absl::Nanoseconds(1);
  const auto checks = Run(Tasks({"a", "lost", "b", "c"}), &backend, options);
  EXPECT_EQ(checks.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StrContains(Message(checks.status()), "gave up after 1")) << checks.status();
  EXPECT_EQ(backend.calls(), 2);
  // What was checked before is kept.
  options.give_up = absl::Hours(1);
  ASSERT_TRUE(Run(Tasks({"a", "b", "c"}), &backend, options).ok());
  EXPECT_EQ(backend.calls(), 4);
}

TEST_F(PreflightJournalTest, AFewFailuresAmongOthersAreNoReasonToGiveUp) {
  ScriptedBackend backend(Answer);
  PreflightOptions options;
  options.give_up = absl::Hours(1);
  std::vector<std::string> sources(30, "lost");
  sources[0] = "a";
  const auto checks = Run(Tasks(sources), &backend, options);
  ASSERT_TRUE(checks.ok()) << checks.status();
  EXPECT_EQ(Count(*checks).not_checked, 29);
}

}  // namespace
}  // namespace tritonrl
