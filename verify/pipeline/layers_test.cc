#include "verify/pipeline/layers.h"

#include "exec/device_backend.h"
#include "gtest/gtest.h"
#include "verify/testing/honest_program.h"
#include "verify/verdict/verdict.h"

namespace tritonrl {
namespace {

Verdict Walk(const ExecResult& result, RunAudit audit = RunAudit::kAll) {
  Verdict v;
  v.set_task_id("level1/relu");
  EXPECT_TRUE(CheckSource(HonestProgram(), true, 1 << 20, &v));
  ApplyExecResult(result, audit, true, 5, &v);
  Summarize(&v);
  return v;
}

TEST(LayersTest, EveryOutcomeOfTheBackendHasItsLayer) {
  struct Case {
    Outcome::Reason reason;
    Layer layer;
  };
  for (const Case& c : std::vector<Case>{{Outcome::IMPORT_ERROR, LAYER_COMPILED},
                                         {Outcome::NO_MODEL_NEW, LAYER_COMPILED},
                                         {Outcome::CONSTRUCT_ERROR, LAYER_COMPILED},
                                         {Outcome::COMPILE_ERROR, LAYER_COMPILED},
                                         {Outcome::RUNTIME_ERROR, LAYER_CORRECT},
                                         {Outcome::OUT_OF_BOUNDS, LAYER_CORRECT},
                                         {Outcome::MISMATCH, LAYER_CORRECT},
                                         {Outcome::OUT_OF_MEMORY, LAYER_CORRECT},
                                         {Outcome::TIMEOUT, LAYER_CORRECT},
                                         {Outcome::CRASHED, LAYER_CORRECT},
                                         {Outcome::EXITED, LAYER_CORRECT},
                                         {Outcome::PROCESS_LIMIT, LAYER_CORRECT},
                                         {Outcome::OUTPUT_LIMIT, LAYER_CORRECT},
                                         {Outcome::BAD_RESULT, LAYER_CORRECT},
                                         {Outcome::KILLED_WORKER, LAYER_CORRECT},
                                         {Outcome::NOT_EXECUTABLE, LAYER_CORRECT}}) {
    ExecResult result = BadResult(c.reason, "what happened");
    result.add_launches()->set_name("relu_kernel");
    for (const bool compiled : {false, true}) {
      // If the kernels are not known to have compiled, the same failure counts as one of compiled.
      result.set_compiled(compiled);
      const Verdict v = Walk(result);
      EXPECT_EQ(v.failed_layer(),
                compiled || c.reason == Outcome::MISMATCH ? c.layer : LAYER_COMPILED)
          << ReasonName(c.reason);
      EXPECT_EQ(v.outcome().reason(), c.reason);
      EXPECT_EQ(v.outcome().status(), Outcome::STATUS_CANDIDATE_FAILED);
      EXPECT_EQ(v.outcome().message(), "what happened");
      EXPECT_FALSE(IsInfraError(v));
      EXPECT_TRUE(IsValid(v));
      EXPECT_TRUE(v.valid());
      EXPECT_EQ(v.compiled(), v.failed_layer() == LAYER_CORRECT);
      EXPECT_EQ(v.has_correct(), v.failed_layer() == LAYER_CORRECT);
      EXPECT_FALSE(v.correct());
    }
  }
}

TEST(LayersTest, FaultsThatAreNotTheCandidates) {
  for (const Outcome::Reason reason :
       {Outcome::REFERENCE_FAILED, Outcome::INTERNAL_ERROR, Outcome::WORKER_LOST, Outcome::DEADLINE,
        Outcome::CANCELLED, Outcome::INCONCLUSIVE}) {
    const Verdict v = Walk(BadResult(reason, "sorry"));
    EXPECT_EQ(v.outcome().reason(), reason);
    EXPECT_EQ(v.outcome().status(), StatusOf(reason));
    EXPECT_TRUE(IsInfraError(v));
    EXPECT_EQ(v.failed_layer(), LAYER_NONE);
    EXPECT_FALSE(IsCorrect(v));
    EXPECT_FALSE(v.has_valid());
  }
  EXPECT_NE(Walk(BadResult(Outcome::REFERENCE_FAILED, "no Model"))
                .outcome()
                .message()
                .find("level1/relu"),
            std::string::npos);
}

TEST(LayersTest, CorrectRunHasSpeedupAndEvidence) {
  const Verdict v = Walk(GoodResult(1.75));
  EXPECT_EQ(v.failed_layer(), LAYER_NONE);
  EXPECT_EQ(v.outcome().reason(), Outcome::OK);
  EXPECT_TRUE(IsCorrect(v));
  EXPECT_NEAR(SpeedupOf(v), 1.75, 1e-12);
  EXPECT_TRUE(v.speedup().modelled());
  EXPECT_TRUE(v.modelled());
  EXPECT_EQ(v.correctness().trials_passed(), 5);
  EXPECT_EQ(v.kernels(0), "relu_kernel");
  EXPECT_EQ(ResultOf(v, LAYER_SPEEDUP).evidence(0).kernel(), "relu_kernel");
}

TEST(LayersTest, RobustRunsSayHowNearTheyCame) {
  ExecResult result = GoodResult(1.0);
  result.set_trials_run(7);
  RobustEvidence* robust = result.mutable_robust();
  for (const char* name : {"random", "random", "random", "random", "random", "small", "shape 1"}) {
    robust->add_trial_names(name);
  }
  robust->set_worst_share(0.25);
  robust->set_worst_error(1e-6);
  robust->set_worst_tolerance(4e-6);
  robust->set_worst_trial("small");
  robust->add_notes("output 1 is of type int64");
  const Verdict v = Walk(result);
  EXPECT_TRUE(IsCorrect(v));
  EXPECT_TRUE(v.correctness().robust());
  EXPECT_EQ(v.correctness().trials(), 7);
  EXPECT_EQ(v.correctness().trials_passed(), 7);
  ASSERT_EQ(ResultOf(v, LAYER_CORRECT).evidence_size(), 4);
  EXPECT_EQ(ResultOf(v, LAYER_CORRECT).evidence(1).rule(), "tolerance_share");
  EXPECT_EQ(ResultOf(v, LAYER_CORRECT).evidence(1).value(), 0.25);
  EXPECT_NE(
      ResultOf(v, LAYER_CORRECT).evidence(1).text().find("\"small\": error 1e-06, allowed 4e-06"),
      std::string::npos)
      << ResultOf(v, LAYER_CORRECT).evidence(1).text();
  EXPECT_NE(ResultOf(v, LAYER_CORRECT).evidence(2).text().find("shape 1"), std::string::npos);
  EXPECT_NE(ResultOf(v, LAYER_CORRECT).evidence(3).text().find("int64"), std::string::npos);

  ExecResult wrong = result;
  SetOutcome(Outcome::MISMATCH, "", wrong.mutable_outcome());
  wrong.mutable_outcome()->set_message("trial 6 of 7 (inputs: small): output 0 differs");
  wrong.set_trials_run(6);
  OutputMismatch* mismatch = wrong.mutable_mismatch();
  mismatch->set_kind("value");
  mismatch->set_elements(8);
  mismatch->set_bad_elements(2);
  mismatch->set_error(0.5);
  mismatch->set_tolerance(0.125);
  const Verdict bad = Walk(wrong);
  EXPECT_EQ(bad.outcome().reason(), Outcome::MISMATCH);
  EXPECT_EQ(bad.correctness().trials_passed(), 5);
  EXPECT_EQ(ResultOf(bad, LAYER_CORRECT).evidence(2).rule(), "tolerance");
  EXPECT_EQ(ResultOf(bad, LAYER_CORRECT).evidence(2).value(), 0.125);
}

TEST(LayersTest, CorrectWithoutATimeIsAnInfraError) {
  ExecResult result = GoodResult(1.0);
  result.clear_candidate_seconds();
  const Verdict v = Walk(result);
  EXPECT_EQ(v.outcome().reason(), Outcome::NO_TIME);
  EXPECT_EQ(ResultOf(v, LAYER_SPEEDUP).reason(), Outcome::UNSPECIFIED);
}

TEST(LayersTest, ComputingOperatorsAtRunTimeFailFunctionality) {
  ExecResult result = BadResult(Outcome::RUNTIME_COMPUTE, "the operator mm computed in forward");
  result.mutable_outcome()->set_line(17);
  const Verdict v = Walk(result);
  EXPECT_EQ(v.failed_layer(), LAYER_FUNCTIONALITY);
  EXPECT_EQ(ResultOf(v, LAYER_FUNCTIONALITY).reason(), Outcome::RUNTIME_COMPUTE);
  EXPECT_EQ(ResultOf(v, LAYER_FUNCTIONALITY).evidence(0).line(), 17);
  EXPECT_EQ(v.outcome().message(), "line 17: the operator mm computed in forward");
  EXPECT_FALSE(IsValid(v));
}

TEST(LayersTest, KernelsAreThoseOfTheRun) {
  ExecResult result = GoodResult(1.0);
  *result.add_launches() = result.launches(0);
  result.add_launches()->set_name("other_kernel");
  const Verdict v = Walk(result);
  ASSERT_EQ(v.kernels_size(), 2);
  EXPECT_EQ(v.kernels(0), "relu_kernel");
  EXPECT_EQ(v.kernels(1), "other_kernel");
}

TEST(LayersTest, ByThePapersRulesLaunchesAreAuditedAndNoMore) {
  ExecResult result = GoodResult(1.0);
  result.set_ablation_all(ABLATION_UNCHANGED);
  result.mutable_constant_output()->set_output(0);
  EXPECT_FALSE(IsValid(Walk(result)));
  EXPECT_TRUE(IsCorrect(Walk(result, RunAudit::kLaunches)));
  result.clear_launches();
  EXPECT_EQ(Walk(result, RunAudit::kLaunches).outcome().reason(), Outcome::NOT_LAUNCHED);
  EXPECT_TRUE(IsCorrect(Walk(result, RunAudit::kNone)));
}

TEST(LayersTest, NoLaunchAtRunTimeFailsFunctionality) {
  ExecResult result = GoodResult(1.0);
  result.clear_launches();
  EXPECT_EQ(ResultOf(Walk(result), LAYER_FUNCTIONALITY).reason(), Outcome::NOT_LAUNCHED);
  EXPECT_EQ(Walk(result).outcome().reason(), Outcome::NOT_LAUNCHED);
}

TEST(LayersTest, SourceLayers) {
  Verdict v;
  EXPECT_FALSE(CheckSource("", true, 100, &v));
  EXPECT_EQ(ResultOf(v, LAYER_SYNTAX).reason(), Outcome::NO_CODE);
  v.Clear();
  EXPECT_FALSE(CheckSource(std::string(101, '#'), true, 100, &v));
  EXPECT_EQ(ResultOf(v, LAYER_SYNTAX).reason(), Outcome::TOO_LARGE);
  v.Clear();
  EXPECT_FALSE(CheckSource("def f(:\n  pass\n", true, 100, &v));
  EXPECT_EQ(ResultOf(v, LAYER_SYNTAX).reason(), Outcome::PARSE_ERROR);
  v.Clear();
  std::string cheat = HonestProgram();
  cheat.replace(cheat.find("return out"), 10, "return torch.relu(x)");
  EXPECT_FALSE(CheckSource(cheat, true, 1 << 20, &v));
  EXPECT_EQ(ResultOf(v, LAYER_FUNCTIONALITY).reason(), Outcome::TORCH_COMPUTE);
  EXPECT_EQ(ResultOf(v, LAYER_FUNCTIONALITY).evidence(0).name(), "torch.relu");
  EXPECT_GT(ResultOf(v, LAYER_FUNCTIONALITY).evidence(0).line(), 10);
  v.Clear();
  EXPECT_TRUE(CheckSource(cheat, /*check_functionality=*/false, 1 << 20, &v));
}

TEST(LayersTest, MalformedResponsesFailSyntaxWithTheirShape) {
  for (const std::string text : {"", "no close", "<think>a</think> no code"}) {
    const SplitResponse split = ReadResponse(text, ResponseStyle());
    ASSERT_FALSE(split.valid());
    Verdict v;
    FailMalformedResponse(split, &v);
    Summarize(&v);
    EXPECT_EQ(v.outcome().reason(), Outcome::NO_CODE);
    for (const absl::string_view part :
         {DescribeShape(split.shape), ResponseShapeName(split.shape)}) {
      EXPECT_NE(v.outcome().message().find(std::string(part)), std::string::npos)
          << v.outcome().message();
    }
  }
}

}  // namespace
}  // namespace tritonrl
