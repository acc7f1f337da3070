#include "verify/preflight/self_check.h"

#include "absl/strings/match.h"
#include "base/file.h"
#include "exec/testing/scripted_backend.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "verify/testing/honest_program.h"

namespace tritonrl {
namespace {

std::vector<Task> Tasks() {
  return {{.id = "a", .source = "A"}, {.id = "b", .source = "B"}, {.id = "c", .source = "C"}};
}

// Measured results: the interval of "a" contains 1, that of "b" does not, and "c" does not run.
ScriptedBackend::Answer Measured() {
  return [](const ExecRequest& request, absl::Time) -> absl::StatusOr<ExecResult> {
    if (request.task_id() == "c") return BadResult(Outcome::REFERENCE_FAILED, "no such thing");
    ExecResult result = GoodResult(request.task_id() == "a" ? 1.001 : 1.02);
    result.set_modelled(false);
    result.mutable_timing()->set_speedup_low(result.speedup() - 0.01);
    result.mutable_timing()->set_speedup_high(result.speedup() + 0.01);
    return result;
  };
}

class SelfCheckTest : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = MakeTempDirectory("self_check");
    ASSERT_TRUE(folder.ok());
    folder_ = *folder;
    options_.out = folder_ + "/out.jsonl";
    options_.messages = std::fopen("/dev/null", "w");
  }
  void TearDown() override {
    std::fclose(options_.messages);
    ASSERT_TRUE(RemoveTree(folder_).ok());
  }

  std::string folder_;
  SelfCheckOptions options_;
};

TEST_F(SelfCheckTest, SendsTheReferenceAsItsOwnCandidate) {
  ScriptedBackend backend(Measured());
  options_.measure_time = false;
  ASSERT_TRUE(RunSelfCheck(Tasks(), options_, &backend).ok());
  ASSERT_EQ(backend.calls(), 3);
  for (const ExecRequest& request : backend.requests()) {
    EXPECT_EQ(request.candidate_source(), request.reference_source() + "\n\nModelNew = Model\n");
    EXPECT_TRUE(request.skip_timing());
  }
}

TEST_F(SelfCheckTest, CountsAndNames) {
  ScriptedBackend backend(Measured());
  options_.parallel = 2;
  const auto summary = RunSelfCheck(Tasks(), options_, &backend);
  ASSERT_TRUE(summary.ok()) << summary.status();
  ASSERT_EQ(summary->entries.size(), 3);
  for (const SelfCheckEntry& entry : summary->entries) {
    EXPECT_EQ(entry.interval_contains_one, entry.id == "a") << entry.id;
  }
  const std::string text = SelfCheckText(*summary);
  EXPECT_TRUE(absl::StrContains(text, "1.00 within its interval: 1 of 2 = 50.0 %")) << text;
  EXPECT_TRUE(absl::StrContains(text, "b: ok, 1.0200x [1.0100, 1.0300]")) << text;
  EXPECT_TRUE(absl::StrContains(text, "c: reference_failed, no such thing")) << text;
  EXPECT_FALSE(absl::StrContains(text, "a: ok")) << text;
  const auto lines = ReadFile(options_.out);
  ASSERT_TRUE(lines.ok());
  const auto first = nlohmann::json::parse(lines->substr(0, lines->find('\n')));
  EXPECT_TRUE(first.contains("interval_contains_one") && first["result"].contains("wall_seconds"));
}

TEST_F(SelfCheckTest, AModelledSpeedupIsExactlyOneOrNot) {
  ScriptedBackend backend([](const ExecRequest& request, absl::Time) {
    return GoodResult(request.task_id() == "a" ? 1.0 : 1.001);
  });
  const auto summary = RunSelfCheck(Tasks(), options_, &backend);
  ASSERT_TRUE(summary.ok());
  for (const SelfCheckEntry& entry : summary->entries) {
    EXPECT_EQ(entry.interval_contains_one, entry.id == "a") << entry.id;
  }
}

TEST_F(SelfCheckTest, GoesOnWhereItStopped) {
  ScriptedBackend backend(Measured());
  int begun = 0;
  options_.stop = [&begun] { return begun++ >= 2; };
  ASSERT_TRUE(RunSelfCheck(Tasks(), options_, &backend).ok());
  EXPECT_EQ(backend.calls(), 2);
  ASSERT_TRUE(AppendToFile(options_.out, "{\"id\": \"torn").ok());
  options_.stop = [] { return false; };
  const auto summary = RunSelfCheck(Tasks(), options_, &backend);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(backend.calls(), 3);
  EXPECT_EQ(summary->already_done, 2);
  ASSERT_TRUE(WriteFileAtomic(options_.out, "{\"other\": 1}\n").ok());
  const absl::Status foreign = RunSelfCheck(Tasks(), options_, &backend).status();
  EXPECT_TRUE(absl::StrContains(foreign.message(), "line 1 is none of a self check")) << foreign;
}

}  // namespace
}  // namespace tritonrl
