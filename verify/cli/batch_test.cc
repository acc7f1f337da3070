#include "verify/cli/batch.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "exec/testing/scripted_backend.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "verify/testing/honest_program.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;

class BatchTest : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = MakeTempDirectory("batch");
    ASSERT_TRUE(folder.ok()) << folder.status();
    folder_ = *folder;
    options_.in = folder_ + "/cases.jsonl";
    options_.out = folder_ + "/verdicts.jsonl";
    messages_ = std::fopen((folder_ + "/messages").c_str(), "w+");
    options_.messages = messages_;
    verifier_options_.parallel = 2;
    verifier_options_.cache = false;
  }
  void TearDown() override {
    std::fclose(messages_);
    EXPECT_TRUE(RemoveTree(folder_).ok());
  }

  static std::string Case(const Json& id, const std::string& code) {
    return Json({{"id", id}, {"reference_source", "the task"}, {"candidate_source", code}}).dump() +
           "\n";
  }

  // `count` honest cases with ids "case 0", ...
  static std::string Honest(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      const std::string name = absl::StrCat("case ", i);
      text += Case(name, HonestProgram(name));
    }
    return text;
  }

  void WriteInput(const std::string& text) { ASSERT_TRUE(WriteFileAtomic(options_.in, text).ok()); }

  absl::StatusOr<BatchSummary> Run(ScriptedBackend* backend) {
    Verifier verifier(verifier_options_, backend, nullptr);
    return RunBatch(options_, &verifier);
  }
  BatchSummary RunGood() {
    ScriptedBackend backend([](const ExecRequest&, absl::Time) { return GoodResult(1.5); });
    auto summary = Run(&backend);
    EXPECT_TRUE(summary.ok()) << summary.status();
    return summary.ok() ? *summary : BatchSummary();
  }

  std::string Output() {
    auto text = ReadFile(options_.out);
    return text.ok() ? *text : "";
  }
  std::vector<Json> Lines() {
    std::vector<Json> lines;
    for (const absl::string_view line : absl::StrSplit(Output(), '\n', absl::SkipEmpty())) {
      lines.push_back(Json::parse(line));
    }
    return lines;
  }
  // The lines without measured times.
  std::vector<Json> Verdicts() {
    std::vector<Json> lines = Lines();
    for (Json& line : lines) {
      if (!line.contains("verdict")) continue;
      for (const char* name : {"worker", "seconds_lint"}) line["verdict"].erase(name);
    }
    return lines;
  }
  std::string Messages() {
    std::fflush(messages_);
    auto text = ReadFile(folder_ + "/messages");
    return text.ok() ? *text : "";
  }

  std::string folder_;
  BatchOptions options_;
  VerifierOptions verifier_options_;
  std::FILE* messages_ = nullptr;
};

TEST_F(BatchTest, ALineForEachCaseInTheOrderOfTheInput) {
  WriteInput(absl::StrCat(Case("good", HonestProgram("slow")), Case(17, HonestProgram("wrong")),
                          Case("cheat", "import torch\n"), "garbage\n",
                          Case("good", HonestProgram()), Case("lost", HonestProgram("lost"))));
  ScriptedBackend backend([](const ExecRequest& request, absl::Time) -> absl::StatusOr<ExecResult> {
    if (absl::StrContains(request.candidate_source(), "slow"))
      absl::SleepFor(absl::Milliseconds(200));
    if (absl::StrContains(request.candidate_source(), "lost")) {
      return BadResult(Outcome::INCONCLUSIVE, "no time that can be believed");
    }
    if (!absl::StrContains(request.candidate_source(), "wrong")) return GoodResult(1.5);
    ExecResult result = GoodResult(1);
    SetOutcome(Outcome::MISMATCH, "", result.mutable_outcome());
    result.set_correct(false);
    return result;
  });
  auto summary = Run(&backend);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->cases, 6);
  EXPECT_EQ(summary->checked, 6);
  EXPECT_EQ(summary->totals.correct, 1);
  EXPECT_EQ(summary->totals.failed, 2);
  EXPECT_EQ(summary->totals.infra_errors, 1);
  EXPECT_EQ(summary->totals.input_errors, 2);
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 6);
  EXPECT_EQ(lines[0]["id"], "good");
  const Json good = lines[0]["verdict"];
  EXPECT_EQ(good["key"], "good");
  EXPECT_EQ(good["valid"], true);
  EXPECT_EQ(good["compiled"], true);
  EXPECT_EQ(good["correct"], true);
  EXPECT_EQ(good["speedup"]["speedup"], 1.5);
  EXPECT_EQ(good["outcome"]["status"], "STATUS_OK");
  EXPECT_EQ(good["worker"]["wall_seconds"], 0.1);
  EXPECT_EQ(good["layers"][0]["layer"], "LAYER_SYNTAX");
  EXPECT_EQ(good["layers"][0]["reason"], "OK");
  EXPECT_EQ(lines[1]["id"], 17) << "a number stays a number";
  const Json wrong = lines[1]["verdict"];
  EXPECT_EQ(wrong["correct"], false);
  EXPECT_FALSE(wrong.contains("speedup"));
  EXPECT_EQ(wrong["failed_layer"], "LAYER_CORRECT");
  EXPECT_EQ(wrong["outcome"]["reason"], "MISMATCH");
  const Json cheat = lines[2]["verdict"];
  EXPECT_EQ(cheat["failed_layer"], "LAYER_SYNTAX");
  EXPECT_EQ(cheat["valid"], false);
  EXPECT_FALSE(cheat.contains("correct")) << "not reached";
  EXPECT_FALSE(cheat.contains("worker"));
  EXPECT_FALSE(lines[3].contains("verdict"));
  EXPECT_TRUE(lines[3]["id"].is_null());
  EXPECT_EQ(lines[3]["line"], 4);
  EXPECT_EQ(lines[4]["input_error"],
            options_.in + ", line 5: id \"good\" was already given in line 1");
  EXPECT_EQ(lines[5]["verdict"]["outcome"]["status"], "STATUS_INFRA_ERROR");
  EXPECT_EQ(lines[5]["verdict"]["outcome"]["reason"], "INCONCLUSIVE");
  EXPECT_TRUE(absl::StrContains(Messages(), "cases.jsonl, line 4: not a JSON object"))
      << Messages();
  EXPECT_TRUE(absl::StrContains(SummaryText(*summary), "6 cases: 1 correct, 2 failed"))
      << SummaryText(*summary);
}

TEST_F(BatchTest, ASecondRunWritesOnlyWhatIsMissing) {
  WriteInput(Honest(10) + "garbage\n");
  EXPECT_EQ(RunGood().checked, 11);
  const std::string complete = Output();
  const std::vector<Json> verdicts = Verdicts();
  BatchSummary again = RunGood();
  EXPECT_EQ(again.checked, 0);
  EXPECT_EQ(again.already_done, 11);
  EXPECT_EQ(Output(), complete);
  // A kill may cut the file at any byte.
  for (const size_t size : {complete.size() - 1, complete.size() / 2, complete.size() / 3,
                            complete.find('\n'), complete.find('\n') + 1, size_t{1}, size_t{0}}) {
    ASSERT_TRUE(WriteFileAtomic(options_.out, complete.substr(0, size)).ok());
    const BatchSummary resumed = RunGood();
    EXPECT_EQ(resumed.checked + resumed.already_done, 11);
    EXPECT_GT(resumed.checked, 0);
    EXPECT_EQ(Verdicts(), verdicts) << "cut at " << size;
    EXPECT_EQ(resumed.totals.correct, 10);
  }
  // The input has two more cases, and no broken line any more.
  WriteInput(Honest(12));
  EXPECT_EQ(RunGood().checked, 2);
}

TEST_F(BatchTest, StopKeepsWhatIsFinishedAndDropsTheRest) {
  WriteInput(Honest(30));
  std::atomic<bool> stop{false};
  absl::Notification stop_seen;
  options_.stop = [&] {
    if (stop && !stop_seen.HasBeenNotified()) stop_seen.Notify();
    return stop.load();
  };
  options_.max_in_flight = 8;
  std::atomic<int> calls{0};
  ScriptedBackend backend([&](const ExecRequest&, absl::Time) {
    const int call = calls++;
    if (call == 4) stop = true;
    if (call >= 4) stop_seen.WaitForNotificationWithTimeout(absl::Seconds(20));
    return GoodResult(2);
  });
  auto summary = Run(&backend);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_TRUE(summary->interrupted);
  EXPECT_EQ(summary->checked, backend.calls()) << "what ran was written";
  EXPECT_LT(summary->checked, 10);
  EXPECT_GE(summary->checked, 5);
  EXPECT_TRUE(absl::StrContains(SummaryText(*summary), "not checked; the same command goes on"));
  for (const Json& line : Lines()) EXPECT_EQ(line["verdict"]["correct"], true);
  options_.stop = [] { return false; };
  EXPECT_EQ(RunGood().checked, 30 - summary->checked);
  std::set<std::string> ids;
  for (const Json& line : Lines()) ids.insert(line["id"].get<std::string>());
  EXPECT_EQ(ids.size(), 30);
  EXPECT_EQ(Lines().size(), 30);
}

TEST_F(BatchTest, ASlowCaseHoldsUpNoMoreThanTheWindow) {
  WriteInput(Honest(40));
  options_.max_in_flight = 6;
  absl::Notification release;
  std::atomic<int> begun{0};
  ScriptedBackend backend([&](const ExecRequest& request, absl::Time) {
    ++begun;
    if (absl::StrContains(request.candidate_source(), "case 0\n")) {
      release.WaitForNotificationWithTimeout(absl::Seconds(20));
    }
    return GoodResult(2);
  });
  // `stop` is called in each iteration of the loop, so it can observe the number of started cases.
  int turns = 0;
  int most = 0;
  options_.stop = [&] {
    if (!release.HasBeenNotified()) {
      most = std::max(most, begun.load());
      if (++turns == 5) release.Notify();
    }
    return false;
  };
  auto summary = Run(&backend);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->checked, 40);
  EXPECT_LE(most, 6);
  const auto lines = Lines();
  for (int i = 0; i < 40; ++i) EXPECT_EQ(lines[i]["id"], absl::StrCat("case ", i));
}

TEST_F(BatchTest, OtherSourcesOrSettingsUnderTheSameIdAreRefused) {
  WriteInput(Honest(2));
  RunGood();
  WriteInput(Case("case 0", HonestProgram("another")));
  ScriptedBackend backend([](const ExecRequest&, absl::Time) { return GoodResult(1); });
  absl::Status status = Run(&backend).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_TRUE(absl::StrContains(status.message(), "line 1")) << status;
  WriteInput(Honest(2));
  verifier_options_.trials = 3;
  EXPECT_TRUE(absl::IsFailedPrecondition(Run(&backend).status()));
  EXPECT_EQ(backend.calls(), 0);
}

TEST_F(BatchTest, ResponsesAreReadInTheirStyle) {
  const std::string response =
      absl::StrCat("```python\n", HonestProgram(), "```\nNote:\n```python\nx = 1\n```\n");
  WriteInput(Json({{"id", "r"}, {"reference_source", "the task"}, {"response", response}}).dump() +
             "\n");
  EXPECT_EQ(RunGood().totals.failed, 1);
  EXPECT_EQ(Lines()[0]["verdict"]["outcome"]["reason"], "NO_CODE");
  options_.cases.response_style = "plain";
  ScriptedBackend backend([](const ExecRequest&, absl::Time) { return GoodResult(1); });
  EXPECT_TRUE(absl::IsFailedPrecondition(Run(&backend).status())) << "verified in another style";
  options_.out = folder_ + "/plain.jsonl";
  EXPECT_EQ(RunGood().totals.correct, 1);
  EXPECT_EQ(RunGood().already_done, 1);
}

TEST_F(BatchTest, WhatIsNoOutputOfOursIsLeftAlone) {
  WriteInput(Honest(1));
  const std::string theirs = "{\"input_error\":\"broken\",\"id\":\"x\"}\nmy notes\n";
  ASSERT_TRUE(WriteFileAtomic(options_.out, theirs).ok());
  ScriptedBackend backend([](const ExecRequest&, absl::Time) { return GoodResult(1); });
  const absl::Status status = Run(&backend).status();
  EXPECT_TRUE(absl::StrContains(status.message(), "verdicts.jsonl, line 2")) << status;
  EXPECT_EQ(Output(), theirs);
}

TEST_F(BatchTest, AFileOfAnOlderVersionIsRefused) {
  WriteInput(Honest(1));
  ASSERT_TRUE(WriteFileAtomic(options_.out, "{\"id\":\"x\",\"failed_layer\":\"none\"}\n").ok());
  ScriptedBackend backend([](const ExecRequest&, absl::Time) { return GoodResult(1); });
  EXPECT_EQ(Run(&backend).status().message(),
            options_.out +
                ", line 1 is a verdict of an older version; remove the line, or give "
                "another file to --out");
}

TEST_F(BatchTest, ASecondWriterIsRefused) {
  WriteInput(Honest(1));
  const int fd = open(options_.out.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  ASSERT_EQ(flock(fd, LOCK_EX), 0);
  ScriptedBackend backend([](const ExecRequest&, absl::Time) { return GoodResult(1); });
  const absl::Status status = Run(&backend).status();
  EXPECT_TRUE(absl::StrContains(status.message(), "written by another process")) << status;
  close(fd);
}

}  // namespace
}  // namespace tritonrl
