#include "verify/pipeline/runtime_audit.h"

#include <string>

#include "gtest/gtest.h"
#include "verify/testing/honest_program.h"

namespace tritonrl {
namespace {

ExecResult GoodRun(AblationEffect all, std::initializer_list<AblationEffect> each) {
  ExecResult result = GoodResult(1);
  result.set_ablation_all(all);
  for (const AblationEffect effect : each) {
    KernelAblation* kernel = result.add_ablations();
    kernel->set_name(result.ablations_size() == 1 ? "f" : "g");
    kernel->set_line(5 * result.ablations_size());
    kernel->set_effect(effect);
  }
  return result;
}

LayerResult Check(const ExecResult& result) {
  LayerResult functionality;
  functionality.set_reason(Outcome::OK);
  const bool fine = AuditRuntime(result, RunAudit::kAll, &functionality);
  EXPECT_EQ(fine, functionality.reason() == Outcome::OK);
  return functionality;
}

// The first evidence with this rule.
Evidence Find(const LayerResult& functionality, const std::string& rule) {
  for (const Evidence& e : functionality.evidence()) {
    if (e.rule() == rule) return e;
  }
  return {};
}

TEST(RunEvidenceTest, KernelsWithoutWhichTheResultIsRightAreRefused) {
  const LayerResult f = Check(GoodRun(ABLATION_UNCHANGED, {ABLATION_UNCHANGED}));
  EXPECT_EQ(f.reason(), Outcome::DECORATION);
  EXPECT_EQ(f.evidence(0).rule(), "decoration");
  EXPECT_EQ(f.evidence(0).kernel(), "f");
  EXPECT_EQ(f.evidence(0).line(), 5);
  EXPECT_NE(f.evidence(0).text().find("kernel f is decoration"), std::string::npos);
}

TEST(RunEvidenceTest, OneOfSeveralThatChangesNothingIsOnlySaid) {
  const LayerResult f = Check(GoodRun(ABLATION_CHANGED, {ABLATION_CHANGED, ABLATION_UNCHANGED}));
  EXPECT_EQ(f.reason(), Outcome::OK);
  EXPECT_EQ(Find(f, "changes_nothing").kernel(), "g");
  EXPECT_EQ(Find(f, "changes_nothing").line(), 10);
}

TEST(RunEvidenceTest, WhatWasNotTriedIsSaid) {
  ExecResult result = GoodRun(ABLATION_CHANGED, {ABLATION_CHANGED, ABLATION_NOT_TRIED});
  result.mutable_ablations(1)->set_text("no time was left for it");
  const Evidence e = Find(Check(result), "ablation_not_tried");
  EXPECT_EQ(e.kernel(), "g");
  EXPECT_NE(e.text().find("no time was left"), std::string::npos) << e.text();
}

TEST(RunEvidenceTest, LaunchesAreListedWithTheirTensors) {
  ExecResult result = GoodResult(1);
  KernelArgument* argument = result.mutable_launches(0)->add_arguments();
  argument->set_name("x_ptr");
  argument->set_dtype("float32");
  argument->add_shape(8);
  argument->add_shape(40);
  argument->set_what("input 0");
  *result.add_launches() = result.launches(0);  // the same kernel again
  const LayerResult f = Check(result);
  ASSERT_EQ(f.evidence_size(), 1);
  EXPECT_EQ(f.evidence(0).rule(), "launched");
  EXPECT_EQ(f.evidence(0).text(),
            "kernel relu_kernel ran on a grid of 4x1x1 with x_ptr = input 0 float32[8, 40]");
}

TEST(RunEvidenceTest, AnOutputThatIsNoBetterThanAConstantIsHardCoded) {
  ExecResult result = GoodRun(ABLATION_CHANGED, {ABLATION_CHANGED});
  result.mutable_constant_output()->set_output(1);
  result.mutable_constant_output()->set_variation(0.0045);
  result.mutable_constant_output()->set_error(0.0043);
  const LayerResult f = Check(result);
  EXPECT_EQ(f.reason(), Outcome::HARD_CODED);
  EXPECT_EQ(f.evidence(0).rule(), "ignores_inputs");
  EXPECT_EQ(f.evidence(0).text().find("output 1 follows the inputs no better than a constant"), 0U);
  EXPECT_EQ(f.evidence(0).value(), 0.0043);
}

}  // namespace
}  // namespace tritonrl
