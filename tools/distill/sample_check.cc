#include "tools/distill/sample_check.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "exec/device_backend.h"
#include "verify/pipeline/layers.h"
#include "verify/verdict/verdict.h"

namespace tritonrl {

namespace {

SampleCheck FromVerdict(const Verdict& verdict) {
  SampleCheck check = {.response = true};
  check.no_verdict = IsInfraError(verdict);
  check.syntax = IsSyntaxOk(verdict);
  check.valid = IsValid(verdict);
  check.compiled = IsCompiled(verdict);
  check.correct = IsCorrect(verdict);
  check.speedup = SpeedupOf(verdict);
  check.modelled = verdict.modelled();
  if (verdict.outcome().reason() != Outcome::OK) {
    check.reason =
        absl::StrCat(ReasonName(verdict.outcome().reason()), ": ", MessageOf(verdict.outcome()));
  }
  return check;
}

}  // namespace

absl::StatusOr<CheckLevel> ParseCheckLevel(const std::string& name) {
  if (name == "none") return CheckLevel::kNone;
  if (name == "syntax") return CheckLevel::kSyntax;
  if (name == "full") return CheckLevel::kFull;
  return absl::InvalidArgumentError(
      absl::StrCat("--verify=", name, " is unknown: none, syntax or full"));
}

std::string CheckLevelName(CheckLevel level) {
  if (level == CheckLevel::kNone) return "none";
  return level == CheckLevel::kSyntax ? "syntax" : "full";
}

absl::StatusOr<KeepRule> ParseKeepRule(const std::string& name, CheckLevel level) {
  if (name.empty()) {
    if (level == CheckLevel::kNone) return KeepRule::kResponse;
    return level == CheckLevel::kSyntax ? KeepRule::kValid : KeepRule::kCorrect;
  }
  if (name == "all") return KeepRule::kAll;
  if (name == "response") return KeepRule::kResponse;
  const bool correct = name == "correct";
  if (!correct && name != "syntax" && name != "valid") {
    return absl::InvalidArgumentError(
        absl::StrCat("--keep=", name, " is unknown: all, response, syntax, valid or correct"));
  }
  if (level == CheckLevel::kNone || (correct && level != CheckLevel::kFull)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--keep=", name, " needs --verify=", correct ? "full" : "syntax or full"));
  }
  if (name == "syntax") return KeepRule::kSyntax;
  return correct ? KeepRule::kCorrect : KeepRule::kValid;
}

bool SampleCheck::Passes(KeepRule rule) const {
  if (rule == KeepRule::kAll) return true;
  if (rule == KeepRule::kResponse) return response;
  if (no_verdict) return false;
  if (rule == KeepRule::kSyntax) return syntax;
  return rule == KeepRule::kValid ? valid : correct;
}

void CheckSample(const Task& task, const std::string& response, const ResponseStyle& style,
                 CheckLevel level, Verifier* verifier, std::function<void(SampleCheck)> done) {
  SplitResponse split = ReadResponse(response, style);
  if (!split.valid()) {
    done({.no_plan_end = split.shape == ResponseShape::kNoThinkClose,
          .reason = absl::StrCat("response form: ", ResponseShapeName(split.shape))});
    return;
  }
  if (level == CheckLevel::kNone) {
    done({.response = true});
    return;
  }
  if (level == CheckLevel::kSyntax) {
    Verdict verdict;
    if (CheckSource(split.code, /*check_functionality=*/true, VerifierOptions().max_source_bytes,
                    &verdict)) {
      done({.response = true, .syntax = true, .valid = true});
      return;
    }
    Summarize(&verdict);
    done(FromVerdict(verdict));
    return;
  }
  verifier->Submit(
      {.task = task, .code = std::move(split.code), .key = task.id},
      [done = std::move(done)](const Verdict& verdict) { done(FromVerdict(verdict)); });
}

}  // namespace tritonrl
