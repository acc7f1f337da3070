#include "verify/verdict.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace tritonrl {
namespace {

// "TORCH_COMPUTE" -> "torch_compute".
std::string Lower(const std::string& name) { return absl::AsciiStrToLower(name); }

// The sentence of the first piece of evidence, or `fallback`.
template <typename Result>
std::string Reason(const Result& result, const std::string& fallback) {
  for (const Evidence& evidence : result.evidence()) {
    if (evidence.text().empty()) continue;
    if (evidence.line() > 0) return absl::StrCat("line ", evidence.line(), ": ", evidence.text());
    return evidence.text();
  }
  return fallback;
}

void Fail(Verdict* verdict, Layer layer, const std::string& outcome, const std::string& reason) {
  verdict->set_failed_layer(layer);
  verdict->set_outcome(outcome);
  verdict->set_reason(reason);
}

bool FunctionalityPassed(const FunctionalityResult& result) {
  return result.outcome() == FunctionalityResult::OK;
}

bool JudgeObjects(const JudgeResult& result) { return result.outcome() == JudgeResult::CHEATING; }

}  // namespace

bool IsSyntaxOk(const Verdict& verdict) { return verdict.syntax().outcome() == SyntaxResult::OK; }

bool IsValid(const Verdict& verdict) {
  return IsSyntaxOk(verdict) && FunctionalityPassed(verdict.functionality()) &&
         !JudgeObjects(verdict.judge());
}

bool IsCompiled(const Verdict& verdict) {
  return IsValid(verdict) && verdict.compiled().outcome() == CompiledResult::OK;
}

bool IsCorrect(const Verdict& verdict) {
  return IsCompiled(verdict) && verdict.correct().outcome() == CorrectResult::OK;
}

double SpeedupOf(const Verdict& verdict) {
  if (!IsCorrect(verdict) || verdict.speedup().outcome() != SpeedupResult::OK) return 0.0;
  return verdict.speedup().speedup();
}

double SpeedupLowOf(const Verdict& verdict) {
  const double speedup = SpeedupOf(verdict);
  return speedup > 0 && verdict.speedup().has_speedup_low() ? verdict.speedup().speedup_low()
                                                            : speedup;
}

bool IsFaultOfOurs(const Verdict& verdict) {
  return verdict.fault_of_ours().kind() != FaultOfOurs::NONE;
}

std::string LayerName(Layer layer) {
  // "LAYER_SYNTAX" -> "syntax".
  return Lower(Layer_Name(layer)).substr(sizeof("layer_") - 1);
}

void Summarize(Verdict* v) {
  v->set_failed_layer(LAYER_NONE);
  if (IsFaultOfOurs(*v)) {
    v->set_outcome("inconclusive");
    v->set_reason(v->fault_of_ours().text());
    return;
  }
  if (!IsSyntaxOk(*v)) {
    Fail(v, LAYER_SYNTAX, Lower(SyntaxResult::Outcome_Name(v->syntax().outcome())),
         Reason(v->syntax(), "the program has no valid Triton syntax"));
  } else if (!FunctionalityPassed(v->functionality())) {
    Fail(v, LAYER_FUNCTIONALITY,
         Lower(FunctionalityResult::Outcome_Name(v->functionality().outcome())),
         Reason(v->functionality(), "the kernels do not do the work"));
  } else if (v->compiled().outcome() != CompiledResult::OK) {
    const bool unfinished = v->compiled().outcome() == CompiledResult::NOT_FINISHED;
    Fail(v, LAYER_COMPILED,
         unfinished ? Lower(CorrectResult::Outcome_Name(v->correct().outcome()))
                    : Lower(CompiledResult::Outcome_Name(v->compiled().outcome())),
         unfinished ? Reason(v->correct(), "it did not finish")
                    : Reason(v->compiled(), "it does not compile"));
  } else if (v->correct().outcome() != CorrectResult::OK) {
    Fail(v, LAYER_CORRECT, Lower(CorrectResult::Outcome_Name(v->correct().outcome())),
         Reason(v->correct(), "its outputs differ from the reference's"));
  } else if (JudgeObjects(v->judge())) {
    Fail(v, LAYER_JUDGE, "cheating", Reason(v->judge(), "the judge calls it cheating"));
  } else {
    v->set_outcome("correct");
    v->set_reason(absl::StrCat("agrees with the reference on ", v->correct().trials_passed(),
                               " random inputs"));
  }
}

}  // namespace tritonrl
