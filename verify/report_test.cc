#include "verify/report.h"

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "verify/fake_backend.h"
#include "verify/layers.h"
#include "verify/verdict.h"

namespace tritonrl {
namespace {

Verdict Walk(const std::string& code, const ExecResult& result) {
  Verdict v;
  v.set_key("b.py");
  v.set_task_id("a.py");
  v.mutable_judge()->set_outcome(JudgeResult::OFF);
  if (CheckSource(code, true, 1 << 20, &v)) ApplyRun(result, true, true, 5, &v);
  Summarize(&v);
  return v;
}

TEST(ReportTest, CorrectSaysModelled) {
  const Verdict v = Walk(HonestProgram(), FakeBackend::Good(1.5));
  const std::string text = VerdictText(v, HonestProgram());
  EXPECT_EQ(text.find("Correct: agrees with the reference on 5 random inputs."), 0u) << text;
  EXPECT_NE(text.find("1.50x (modelled: reference 15 us, candidate 10 us)"), std::string::npos)
      << text;
  EXPECT_NE(text.find("kernels: relu_kernel"), std::string::npos) << text;
  const auto json = nlohmann::json::parse(VerdictJson(v));
  EXPECT_EQ(json["valid"], true);
  EXPECT_EQ(json["compiled"], true);
  EXPECT_EQ(json["correct"], true);
  EXPECT_NEAR(json["speedup"].get<double>(), 1.5, 1e-9);
  EXPECT_EQ(json["modelled"], true);
  EXPECT_EQ(json["failed_layer"], "none");
  EXPECT_TRUE(json["fault_of_ours"].is_null());
}

TEST(ReportTest, FailureQuotesTheLine) {
  std::string cheat = HonestProgram();
  cheat.replace(cheat.find("return out"), 10, "return out.exp()");
  const Verdict v = Walk(cheat, {});
  const std::string text = VerdictText(v, cheat);
  EXPECT_NE(text.find("> return out.exp()"), std::string::npos) << text;
  EXPECT_NE(text.find("not reached"), std::string::npos) << text;
  const auto json = nlohmann::json::parse(VerdictJson(v));
  EXPECT_EQ(json["valid"], false);
  EXPECT_TRUE(json["compiled"].is_null());
  EXPECT_TRUE(json["correct"].is_null());
  EXPECT_TRUE(json["speedup"].is_null());
  EXPECT_EQ(json["failed_layer"], "functionality");
  EXPECT_EQ(json["outcome"], "torch_compute");
  EXPECT_EQ(json["layers"]["functionality"]["evidence"][0]["name"], "exp");
}

TEST(ReportTest, FaultOfOursIsNoVerdict) {
  const Verdict v = Walk(HonestProgram(), FakeBackend::Bad(EXEC_WORKER_LOST, "the worker died"));
  EXPECT_EQ(VerdictText(v, "").find("No verdict: the worker died."), 0u);
  const auto json = nlohmann::json::parse(VerdictJson(v));
  EXPECT_EQ(json["fault_of_ours"]["kind"], "worker_lost");
  EXPECT_EQ(json["outcome"], "inconclusive");
  EXPECT_EQ(json["valid"], true);
  EXPECT_TRUE(json["correct"].is_null());
}

TEST(ReportTest, BytesThatAreNotTextDoNotBreakJson) {
  ExecResult result = FakeBackend::Bad(EXEC_RUNTIME_ERROR, "bad \xff\xfe byte");
  result.set_compiled(true);
  const auto json = nlohmann::json::parse(VerdictJson(Walk(HonestProgram(), result)));
  EXPECT_EQ(json["correct"], false);
}

}  // namespace
}  // namespace tritonrl
