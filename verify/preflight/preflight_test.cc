// Tests the preflight with a scripted backend.
#include "verify/preflight/preflight.h"

#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "exec/device_backend.h"
#include "exec/testing/scripted_backend.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "verify/testing/honest_program.h"

namespace tritonrl {
namespace {

// The source of a test task names its result: "sound", "unsound", "broken", "lost" (worker lost) or
// "silent" (no probes).
absl::StatusOr<ExecResult> Answer(const ExecRequest& request, absl::Time) {
  if (request.reference_source() == "broken") {
    return BadResult(Outcome::REFERENCE_FAILED, "the reference does not load");
  }
  if (request.reference_source() == "lost") return BadResult(Outcome::WORKER_LOST, "gone");
  ExecResult result;
  SetOutcome(Outcome::OK, "", result.mutable_outcome());
  if (request.reference_source() == "silent") return result;
  for (const char* name : {"zeros", "identity"}) {
    TaskProbe* probe = result.add_probes();
    probe->set_name(name);
    probe->set_applies(true);
    probe->set_passes(request.reference_source() == "unsound" && probe->name() == "zeros");
    probe->set_text(probe->passes() ? "right on all 5 trials" : "refused in trial 1");
  }
  return result;
}

std::vector<Task> Tasks(const std::vector<std::string>& kinds) {
  std::vector<Task> tasks;
  for (size_t i = 0; i < kinds.size(); ++i) {
    tasks.push_back({.id = absl::StrCat("t", i), .source = kinds[i]});
  }
  return tasks;
}

TEST(PreflightTest, EachTaskHasItsState) {
  ScriptedBackend backend(Answer);
  PreflightOptions options;
  options.parallel = 3;
  options.rules = RULES_ROBUST;
  options.seed = 9;
  options.run_limit = absl::Seconds(7);
  int done = 0;
  options.done = [&](const TaskCheck&) { ++done; };
  const std::vector<TaskCheck> checks =
      CheckTasks(Tasks({"sound", "unsound", "broken", "lost", "silent"}), &backend, options);
  ASSERT_EQ(checks.size(), 5u);
  EXPECT_EQ(done, 5);
  EXPECT_EQ(checks[0].state, TaskState::kSound);
  EXPECT_EQ(checks[0].reason, "");
  EXPECT_EQ(checks[1].state, TaskState::kUnsound);
  EXPECT_EQ(checks[1].reason, "zeros passes: right on all 5 trials");
  EXPECT_EQ(checks[2].state, TaskState::kBroken);
  EXPECT_EQ(checks[2].reason, "the reference does not load");
  EXPECT_EQ(checks[3].state, TaskState::kNotChecked);
  EXPECT_EQ(checks[4].state, TaskState::kNotChecked);
  for (const ExecRequest& request : backend.requests()) {
    EXPECT_TRUE(request.reference_only() && request.probe_task() && request.skip_timing());
    EXPECT_EQ(request.rules(), RULES_ROBUST);
    EXPECT_EQ(request.seed(), 9u);
    EXPECT_EQ(request.limits().wall_seconds(), 7);
  }
}

TEST(PreflightTest, AStopLeavesTheRestUnchecked) {
  ScriptedBackend backend(Answer);
  PreflightOptions options;
  options.stop = [&] { return backend.calls() >= 2; };
  const auto checks = CheckTasks(Tasks({"sound", "unsound", "sound", "sound"}), &backend, options);
  EXPECT_EQ(backend.calls(), 2);
  EXPECT_EQ(checks[3].state, TaskState::kNotChecked);
  EXPECT_EQ(checks[3].task, "t3");
  EXPECT_TRUE(CheckTasks({}, &backend, options).empty());
}

TEST(PreflightTest, ReportAndFile) {
  ScriptedBackend backend(Answer);
  auto folder = MakeTempDirectory("preflight");
  ASSERT_TRUE(folder.ok());
  const std::string out = *folder + "/deeper/out.jsonl";
  std::FILE* quiet = std::fopen("/dev/null", "w");
  const auto checks = RunPreflight(Tasks({"sound", "unsound", "broken"}), &backend, {}, out, quiet);
  ASSERT_TRUE(checks.ok()) << checks.status();
  const std::string table = PreflightTable(*checks, RULES_STRICT);
  EXPECT_FALSE(absl::StrContains(table, "t0"));
  EXPECT_TRUE(absl::StrContains(table, "unsound      t1    zeros passes")) << table;
  EXPECT_TRUE(
      absl::StrContains(table, "3 tasks by the strict rules: 1 sound, 1 unsound, 1 broken\n"))
      << table;
  const auto text = ReadFile(out);
  ASSERT_TRUE(text.ok()) << text.status();
  const auto line = nlohmann::json::parse(text->substr(
      text->find('\n') + 1, text->find('\n', text->find('\n') + 1) - text->find('\n') - 1));
  EXPECT_EQ(line["task"], "t1");
  EXPECT_EQ(line["state"], "unsound");
  EXPECT_EQ(line["rules"], "strict");
  EXPECT_EQ(line["probes"][0]["passes"], true);
  EXPECT_FALSE(RunPreflight(Tasks({"sound"}), &backend, {}, *folder, quiet).ok());
  std::fclose(quiet);
  EXPECT_TRUE(RemoveTree(*folder).ok());
}

TEST(PreflightTest, ModesHaveNames) {
  for (const Rules rules : {RULES_STRICT, RULES_ROBUST, RULES_PAPER}) {
    EXPECT_EQ(*ParseRules(RulesName(rules)), rules);
  }
  EXPECT_FALSE(ParseRules("exact").ok());
}

}  // namespace
}  // namespace tritonrl
