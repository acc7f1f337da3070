#include "verify/cli/verdict_report.h"

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "verify/pipeline/layers.h"
#include "verify/testing/honest_program.h"
#include "verify/verdict/verdict.h"

namespace tritonrl {
namespace {

Verdict Walk(const std::string& code, const ExecResult& result) {
  Verdict v;
  v.set_key("b.py");
  v.set_task_id("a.py");
  if (CheckSource(code, true, 1 << 20, &v)) ApplyExecResult(result, RunAudit::kAll, true, 5, &v);
  Summarize(&v);
  return v;
}

TEST(ReportTest, CorrectSaysModelled) {
  const Verdict v = Walk(HonestProgram(), GoodResult(1.5));
  const std::string text = VerdictText(v, HonestProgram());
  EXPECT_EQ(text.find("Correct: agrees with the reference on 5 random inputs."), 0u) << text;
  EXPECT_NE(text.find("1.50x (modelled: reference 15 us, candidate 10 us)"), std::string::npos)
      << text;
  EXPECT_NE(text.find("kernels: relu_kernel"), std::string::npos) << text;
  const auto json = nlohmann::json::parse(VerdictToJson(v));
  EXPECT_EQ(json["valid"], true);
  EXPECT_EQ(json["compiled"], true);
  EXPECT_EQ(json["correct"], true);
  EXPECT_NEAR(json["speedup"]["speedup"].get<double>(), 1.5, 1e-9);
  EXPECT_EQ(json["modelled"], true);
  EXPECT_EQ(json["outcome"]["status"], "STATUS_OK");
  EXPECT_FALSE(json.contains("failed_layer"));
}

TEST(ReportTest, AMeasuredSpeedupComesWithItsInterval) {
  ExecResult result = GoodResult(1.5);
  result.set_modelled(false);
  result.set_speedup(1.52);  // the median ratio, not the ratio of the medians
  MeasuredTiming* timing = result.mutable_timing();
  timing->set_speedup_low(1.49);
  timing->set_speedup_high(1.55);
  timing->set_paper_speedup(1.25);
  for (int i = 0; i < 12; ++i) timing->add_block_ratios(2);
  timing->set_sm_mhz_low(1500);
  timing->set_sm_mhz_high(1980);
  timing->set_gpu_shared(true);
  const Verdict v = Walk(HonestProgram(), result);
  const std::string text = VerdictText(v, HonestProgram());
  EXPECT_NE(
      text.find("1.52x (measured: reference 15 us, candidate 10 us; 95 % interval 1.490 to "
                "1.550 of 12 blocks; with launches, mean of 10 each: 1.25x; 1500 to 1980 MHz; "
                "other programs were on the GPU)"),
      std::string::npos)
      << text;
  const auto json = nlohmann::json::parse(VerdictToJson(v))["speedup"];
  EXPECT_EQ(json["speedup"], 1.52);
  EXPECT_EQ(json["timing"]["speedup_low"], 1.49);
  EXPECT_EQ(json["timing"]["speedup_high"], 1.55);
  EXPECT_EQ(json["timing"]["paper_speedup"], 1.25);
  EXPECT_EQ(json["timing"]["sm_mhz_high"], 1980);
  EXPECT_EQ(json["timing"]["gpu_shared"], true);
  EXPECT_FALSE(Walk(HonestProgram(), GoodResult(1.5)).speedup().has_timing());
}

TEST(ReportTest, FailureQuotesTheLine) {
  std::string cheat = HonestProgram();
  cheat.replace(cheat.find("return out"), 10, "return out.exp()");
  const Verdict v = Walk(cheat, {});
  const std::string text = VerdictText(v, cheat);
  EXPECT_NE(text.find("> return out.exp()"), std::string::npos) << text;
  EXPECT_NE(text.find("not reached"), std::string::npos) << text;
  const auto json = nlohmann::json::parse(VerdictToJson(v));
  EXPECT_EQ(json["valid"], false);
  for (const char* name : {"compiled", "correct", "speedup"}) EXPECT_FALSE(json.contains(name));
  EXPECT_EQ(json["failed_layer"], "LAYER_FUNCTIONALITY");
  EXPECT_EQ(json["outcome"]["reason"], "TORCH_COMPUTE");
  EXPECT_EQ(json["layers"][1]["evidence"][0]["name"], "exp");
}

TEST(ReportTest, InfraErrorIsNoVerdict) {
  const Verdict v = Walk(HonestProgram(), BadResult(Outcome::WORKER_LOST, "the worker died"));
  EXPECT_EQ(VerdictText(v, "").find("No verdict: the worker died."), 0u);
  const auto json = nlohmann::json::parse(VerdictToJson(v));
  EXPECT_EQ(json["outcome"]["status"], "STATUS_INFRA_ERROR");
  EXPECT_EQ(json["outcome"]["reason"], "WORKER_LOST");
  EXPECT_FALSE(json.contains("valid"));
}

TEST(ReportTest, BytesThatAreNotTextDoNotBreakJson) {
  ExecResult result = BadResult(Outcome::RUNTIME_ERROR, "bad \xff\xfe byte");
  result.set_compiled(true);
  const auto json = nlohmann::json::parse(VerdictToJson(Walk(HonestProgram(), result)));
  EXPECT_EQ(json["correct"], false);
  EXPECT_EQ(json["outcome"]["message"], "bad \xef\xbf\xbd\xef\xbf\xbd byte");
}

TEST(VerdictJsonTest, ReadsWhatItWroteAndNothingElse) {
  const Verdict v = Walk(HonestProgram(), GoodResult(1.0 / 3.0));
  const std::string json = VerdictToJson(v);
  const auto read = VerdictFromJson(json);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(VerdictToJson(*read), json);
  EXPECT_EQ(SpeedupOf(*read), SpeedupOf(v)) << "to the last bit";
  for (const char* text : {"", "[]", "{\"outcome\":\"correct\"}", "{\"reason\":\"\"}"}) {
    EXPECT_FALSE(VerdictFromJson(text).ok()) << text;
  }
}

}  // namespace
}  // namespace tritonrl
