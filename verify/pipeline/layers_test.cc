#include "verify/pipeline/layers.h"

#include "exec/device_backend.h"
#include "gtest/gtest.h"
#include "verify/testing/honest_program.h"
#include "verify/verdict/verdict.h"

namespace tritonrl {
namespace {

Verdict Walk(const ExecResult& result) {
  Verdict v;
  v.set_task_id("level1/relu");
  EXPECT_TRUE(CheckSource(HonestProgram(), true, 1 << 20, &v));
  ApplyExecResult(result, true, true, 5, &v);
  Summarize(&v);
  return v;
}

TEST(LayersTest, EveryOutcomeOfTheBackendHasItsLayer) {
  struct Case {
    Outcome::Reason outcome;
    Layer layer;
    const char* name;
  };
  for (const Case& c :
       std::vector<Case>{{Outcome::IMPORT_ERROR, LAYER_COMPILED, "import_error"},
                         {Outcome::NO_MODEL_NEW, LAYER_COMPILED, "import_error"},
                         {Outcome::CONSTRUCT_ERROR, LAYER_COMPILED, "import_error"},
                         {Outcome::COMPILE_ERROR, LAYER_COMPILED, "compile_error"},
                         {Outcome::RUNTIME_ERROR, LAYER_COMPILED, "runtime_error"},
                         {Outcome::OUT_OF_BOUNDS, LAYER_COMPILED, "runtime_error"},
                         {Outcome::MISMATCH, LAYER_CORRECT, "mismatch"},
                         {Outcome::OUT_OF_MEMORY, LAYER_COMPILED, "out_of_memory"},
                         {Outcome::TIMEOUT, LAYER_COMPILED, "timeout"},
                         {Outcome::CRASHED, LAYER_COMPILED, "crashed"},
                         {Outcome::EXITED, LAYER_COMPILED, "crashed"},
                         {Outcome::PROCESS_LIMIT, LAYER_COMPILED, "policy_violation"},
                         {Outcome::OUTPUT_LIMIT, LAYER_COMPILED, "policy_violation"},
                         {Outcome::BAD_RESULT, LAYER_COMPILED, "policy_violation"},
                         {Outcome::KILLED_WORKER, LAYER_COMPILED, "crashed"}}) {
    ExecResult result = BadResult(c.outcome, "what happened");
    result.add_launches()->set_name("relu_kernel");
    const Verdict v = Walk(result);
    EXPECT_EQ(v.failed_layer(), c.layer) << ReasonName(c.outcome);
    EXPECT_EQ(v.outcome(), c.name);
    EXPECT_FALSE(IsInfraError(v));
    EXPECT_EQ(v.reason(), "what happened");
    EXPECT_TRUE(IsValid(v));
    // Once its kernels are known to be compiled, the same end belongs to the next layer.
    if (v.compiled().outcome() == CompiledResult::NOT_FINISHED) {
      result.set_compiled(true);
      EXPECT_EQ(Walk(result).failed_layer(), LAYER_CORRECT);
      EXPECT_EQ(Walk(result).outcome(), c.name);
    }
  }
}

TEST(LayersTest, FaultsThatAreNotTheCandidates) {
  for (auto [outcome, kind] : std::vector<std::pair<Outcome::Reason, InfraError::Kind>>{
           {Outcome::REFERENCE_FAILED, InfraError::REFERENCE_FAILED},
           {Outcome::NOT_EXECUTABLE, InfraError::NOT_INTERPRETABLE},
           {Outcome::INTERNAL_ERROR, InfraError::BACKEND_ERROR},
           {Outcome::WORKER_LOST, InfraError::WORKER_LOST},
           {Outcome::DEADLINE, InfraError::DEADLINE},
           {Outcome::CANCELLED, InfraError::CANCELLED},
           {Outcome::INCONCLUSIVE, InfraError::INCONCLUSIVE}}) {
    const Verdict v = Walk(BadResult(outcome, "sorry"));
    EXPECT_EQ(v.infra_error().kind(), kind);
    EXPECT_EQ(v.outcome(), "inconclusive");
    EXPECT_EQ(v.failed_layer(), LAYER_NONE);
    EXPECT_FALSE(IsCorrect(v));
  }
  EXPECT_NE(Walk(BadResult(Outcome::REFERENCE_FAILED, "no Model")).reason().find("level1/relu"),
            std::string::npos);
}

TEST(LayersTest, CorrectRunHasSpeedupAndEvidence) {
  const Verdict v = Walk(GoodResult(1.75));
  EXPECT_EQ(v.failed_layer(), LAYER_NONE);
  EXPECT_EQ(v.outcome(), "correct");
  EXPECT_TRUE(IsCorrect(v));
  EXPECT_NEAR(SpeedupOf(v), 1.75, 1e-12);
  EXPECT_TRUE(v.speedup().modelled());
  EXPECT_TRUE(v.modelled());
  EXPECT_EQ(v.correct().trials_passed(), 5);
  EXPECT_EQ(v.functionality().kernels(0), "relu_kernel");
  EXPECT_EQ(v.speedup().evidence(0).kernel(), "relu_kernel");
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
  EXPECT_TRUE(v.correct().robust());
  EXPECT_EQ(v.correct().trials(), 7);
  EXPECT_EQ(v.correct().trials_passed(), 7);
  ASSERT_EQ(v.correct().evidence_size(), 4);
  EXPECT_EQ(v.correct().evidence(1).rule(), "tolerance_share");
  EXPECT_EQ(v.correct().evidence(1).value(), 0.25);
  EXPECT_NE(v.correct().evidence(1).text().find("\"small\": error 1e-06, allowed 4e-06"),
            std::string::npos)
      << v.correct().evidence(1).text();
  EXPECT_NE(v.correct().evidence(2).text().find("shape 1"), std::string::npos);
  EXPECT_NE(v.correct().evidence(3).text().find("int64"), std::string::npos);

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
  EXPECT_EQ(bad.outcome(), "mismatch");
  EXPECT_EQ(bad.correct().trials_passed(), 5);
  EXPECT_EQ(bad.correct().evidence(2).rule(), "tolerance");
  EXPECT_EQ(bad.correct().evidence(2).value(), 0.125);
}

TEST(LayersTest, CorrectWithoutATimeIsAnInfraError) {
  ExecResult result = GoodResult(1.0);
  result.clear_candidate_seconds();
  const Verdict v = Walk(result);
  EXPECT_EQ(v.infra_error().kind(), InfraError::NO_TIME);
  EXPECT_EQ(v.speedup().outcome(), SpeedupResult::NO_TIME);
}

TEST(LayersTest, ComputingOperatorsAtRunTimeFailFunctionality) {
  ExecResult result = GoodResult(1.0);
  result.add_candidate_ops()->set_name("aten.clone");
  result.add_candidate_ops()->set_name("aten.cat");
  result.add_candidate_ops()->set_name("mine.relu");  // the program's own custom operator
  EXPECT_TRUE(IsCorrect(Walk(result)));
  AtenOp* op = result.add_candidate_ops();
  op->set_name("aten.mm");
  op->set_calls(1);
  op->set_largest(64);
  const Verdict v = Walk(result);
  EXPECT_EQ(v.failed_layer(), LAYER_FUNCTIONALITY);
  EXPECT_EQ(v.functionality().outcome(), FunctionalityResult::RUNTIME_COMPUTE);
  EXPECT_EQ(v.functionality().evidence(0).name(), "aten.mm");
  EXPECT_FALSE(IsValid(v));
}

TEST(LayersTest, NoLaunchAtRunTimeFailsFunctionality) {
  ExecResult result = GoodResult(1.0);
  result.clear_launches();
  EXPECT_EQ(Walk(result).functionality().outcome(), FunctionalityResult::NOT_LAUNCHED);
  EXPECT_EQ(Walk(result).outcome(), "not_launched");
}

TEST(LayersTest, SourceLayers) {
  Verdict v;
  EXPECT_FALSE(CheckSource("", true, 100, &v));
  EXPECT_EQ(v.syntax().outcome(), SyntaxResult::NO_CODE);
  v.Clear();
  EXPECT_FALSE(CheckSource(std::string(101, '#'), true, 100, &v));
  EXPECT_EQ(v.syntax().outcome(), SyntaxResult::TOO_LARGE);
  v.Clear();
  EXPECT_FALSE(CheckSource("def f(:\n  pass\n", true, 100, &v));
  EXPECT_EQ(v.syntax().outcome(), SyntaxResult::PARSE_ERROR);
  v.Clear();
  std::string cheat = HonestProgram();
  cheat.replace(cheat.find("return out"), 10, "return out + 1");
  EXPECT_FALSE(CheckSource(cheat, true, 1 << 20, &v));
  EXPECT_EQ(v.functionality().outcome(), FunctionalityResult::TORCH_COMPUTE);
  EXPECT_EQ(v.functionality().evidence(0).name(), "+");
  EXPECT_GT(v.functionality().evidence(0).line(), 10);
  v.Clear();
  EXPECT_TRUE(CheckSource(cheat, /*check_functionality=*/false, 1 << 20, &v));
}

TEST(LayersTest, MalformedResponsesFailSyntaxWithTheirShape) {
  for (const std::string text : {"", "no close", "<think>a</think> no code"}) {
    const SplitResponse split = SplitResponseText(text);
    ASSERT_FALSE(split.valid());
    Verdict v;
    FailMalformedResponse(split, &v);
    Summarize(&v);
    EXPECT_EQ(v.outcome(), "no_code");
    EXPECT_NE(v.reason().find(std::string(ResponseShapeName(split.shape))), std::string::npos)
        << v.reason();
  }
}

}  // namespace
}  // namespace tritonrl
