#include "verify/pipeline/layers.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "exec/device_backend.h"
#include "verify/linter/linter.h"
#include "verify/pipeline/runtime_audit.h"

namespace tritonrl {
namespace {

// Adds a piece of evidence to a layer's result.
template <typename Result>
Evidence* AddEvidence(Result* result, const std::string& rule, const std::string& text) {
  Evidence* evidence = result->add_evidence();
  evidence->set_rule(rule);
  evidence->set_text(text);
  return evidence;
}

SyntaxResult::Outcome SyntaxOutcome(LintRule rule) {
  switch (rule) {
    case LintRule::kParseError:
      return SyntaxResult::PARSE_ERROR;
    case LintRule::kNoKernel:
      return SyntaxResult::NO_KERNEL;
    case LintRule::kNoModel:
      return SyntaxResult::NO_MODEL;
    case LintRule::kTooLarge:
      return SyntaxResult::TOO_LARGE;
    default:
      return SyntaxResult::NO_CODE;
  }
}

FunctionalityResult::Outcome FunctionalityOutcome(LintRule rule) {
  switch (rule) {
    case LintRule::kForbidden:
      return FunctionalityResult::FORBIDDEN;
    case LintRule::kTorchCompute:
    case LintRule::kPythonCompute:
      return FunctionalityResult::TORCH_COMPUTE;
    case LintRule::kHardCoded:
      return FunctionalityResult::HARD_CODED;
    case LintRule::kTrivialKernel:
      return FunctionalityResult::TRIVIAL_KERNEL;
    case LintRule::kUnresolved:
      return FunctionalityResult::UNRESOLVED;
    default:
      return FunctionalityResult::KERNEL_NOT_USED;
  }
}

bool IsSyntaxRule(LintRule rule) {
  return rule == LintRule::kParseError || rule == LintRule::kNoKernel ||
         rule == LintRule::kNoModel || rule == LintRule::kNoCode || rule == LintRule::kTooLarge;
}

template <typename Result>
void AddFinding(const LintFinding& finding, Result* result) {
  Evidence* evidence = AddEvidence(result, std::string(LintRuleName(finding.rule)), finding.text);
  evidence->set_line(finding.line);
  evidence->set_name(finding.name);
}

InfraError::Kind InfraErrorKind(Outcome::Reason outcome) {
  switch (outcome) {
    case Outcome::REFERENCE_FAILED:
      return InfraError::REFERENCE_FAILED;
    case Outcome::NOT_EXECUTABLE:
      return InfraError::NOT_INTERPRETABLE;
    case Outcome::WORKER_LOST:
      return InfraError::WORKER_LOST;
    case Outcome::DEADLINE:
      return InfraError::DEADLINE;
    case Outcome::CANCELLED:
      return InfraError::CANCELLED;
    case Outcome::INCONCLUSIVE:
      return InfraError::INCONCLUSIVE;
    default:
      return InfraError::BACKEND_ERROR;
  }
}

CorrectResult::Outcome CorrectOutcome(Outcome::Reason outcome) {
  switch (outcome) {
    case Outcome::OK:
      return CorrectResult::OK;
    case Outcome::MISMATCH:
      return CorrectResult::MISMATCH;
    case Outcome::OUT_OF_MEMORY:
      return CorrectResult::OUT_OF_MEMORY;
    case Outcome::TIMEOUT:
      return CorrectResult::TIMEOUT;
    case Outcome::CRASHED:
    case Outcome::EXITED:
    case Outcome::KILLED_WORKER:
      return CorrectResult::CRASHED;
    case Outcome::PROCESS_LIMIT:
    case Outcome::OUTPUT_LIMIT:
    case Outcome::BAD_RESULT:
      return CorrectResult::POLICY_VIOLATION;
    default:
      return CorrectResult::RUNTIME_ERROR;
  }
}

// The sentence for a failed run: the backend's message, or the outcome's name.
std::string MessageOf(const ExecResult& result) {
  return result.outcome().message().empty() ? ReasonName(result.outcome().reason())
                                            : result.outcome().message();
}

// How near a robust comparison came to its tolerance, on which inputs, and what it could not judge.
void AddRobustEvidence(const RobustEvidence& robust, CorrectResult* correct) {
  correct->set_robust(true);
  if (robust.has_worst_share()) {
    Evidence* share = AddEvidence(
        correct, "tolerance_share",
        absl::StrFormat("nearest to its tolerance in a trial of inputs \"%s\": error %.3g, allowed "
                        "%.3g from the float64 result",
                        robust.worst_trial(), robust.worst_error(), robust.worst_tolerance()));
    share->set_value(robust.worst_share());
  }
  Evidence* trials =
      AddEvidence(correct, "trials", "inputs: " + absl::StrJoin(robust.trial_names(), ", "));
  trials->set_value(robust.trial_names_size());
  for (const std::string& note : robust.notes()) {
    AddEvidence(correct, "not_exact", "compared with the tolerance of the paper: " + note);
  }
}

void AddMismatch(const ExecResult& result, CorrectResult* correct) {
  const OutputMismatch& m = result.mismatch();
  Evidence* evidence = AddEvidence(correct, absl::StrCat("mismatch_", m.kind()), MessageOf(result));
  evidence->set_value(m.max_error());
  if (m.elements() > 0) {
    Evidence* count =
        AddEvidence(correct, "bad_elements",
                    absl::StrCat(m.bad_elements(), " of ", m.elements(), " elements of output ",
                                 m.output(), " differ in trial ", m.trial() + 1,
                                 ", the first: expected ", m.want(), ", got ", m.got()));
    count->set_value(static_cast<double>(m.bad_elements()));
    if (m.tolerance() > 0) {
      Evidence* tolerance = AddEvidence(
          correct, "tolerance",
          absl::StrFormat("the first differs by %.3g, allowed are %.3g", m.error(), m.tolerance()));
      tolerance->set_value(m.tolerance());
    }
  }
}

void ApplyCompiled(const ExecResult& result, Verdict* verdict) {
  CompiledResult* compiled = verdict->mutable_compiled();
  switch (result.outcome().reason()) {
    case Outcome::COMPILE_ERROR:
      compiled->set_outcome(CompiledResult::COMPILE_ERROR);
      break;
    case Outcome::IMPORT_ERROR:
    case Outcome::NO_MODEL_NEW:
    case Outcome::CONSTRUCT_ERROR:
      compiled->set_outcome(CompiledResult::IMPORT_ERROR);
      break;
    default:
      if (result.outcome().reason() == Outcome::OK ||
          result.outcome().reason() == Outcome::MISMATCH || result.compiled()) {
        compiled->set_outcome(CompiledResult::OK);
        return;
      }
      compiled->set_outcome(CompiledResult::NOT_FINISHED);
      return;
  }
  Evidence* evidence =
      AddEvidence(compiled, ReasonName(result.outcome().reason()), MessageOf(result));
  evidence->set_line(result.outcome().line());
  if (!result.outcome().detail().empty())
    AddEvidence(compiled, "detail", result.outcome().detail());
}

void ApplyCorrect(const ExecResult& result, int trials, Verdict* verdict) {
  CorrectResult* correct = verdict->mutable_correct();
  correct->set_outcome(CorrectOutcome(result.outcome().reason()));
  correct->set_trials(trials);
  const bool mismatch = result.outcome().reason() == Outcome::MISMATCH;
  correct->set_trials_passed(result.trials_run() - (mismatch && result.trials_run() > 0 ? 1 : 0));
  if (result.has_max_error()) correct->set_max_abs_error(result.max_error());
  if (result.has_robust()) correct->set_trials(result.robust().trial_names_size());
  if (result.outcome().reason() == Outcome::OK) {
    Evidence* evidence =
        AddEvidence(correct, "max_abs_error",
                    absl::StrCat("largest absolute error over all trials: ", result.max_error()));
    evidence->set_value(result.max_error());
    if (result.has_robust()) AddRobustEvidence(result.robust(), correct);
    return;
  }
  if (mismatch) {
    AddMismatch(result, correct);
    if (result.has_robust()) AddRobustEvidence(result.robust(), correct);
    return;
  }
  Evidence* evidence =
      AddEvidence(correct, ReasonName(result.outcome().reason()), MessageOf(result));
  evidence->set_line(result.outcome().line());
  if (!result.outcome().detail().empty()) AddEvidence(correct, "detail", result.outcome().detail());
}

void ApplyTiming(const MeasuredTiming& timing, SpeedupResult* speedup) {
  speedup->set_speedup_low(timing.speedup_low());
  speedup->set_speedup_high(timing.speedup_high());
  if (timing.has_paper_speedup()) speedup->set_paper_speedup(timing.paper_speedup());
  speedup->set_blocks(timing.block_ratios_size());
  speedup->set_gpu_shared(timing.gpu_shared());
  speedup->set_gpu_throttled(timing.gpu_throttled());
  if (timing.has_sm_mhz_low()) speedup->set_sm_mhz_low(timing.sm_mhz_low());
  if (timing.has_sm_mhz_high()) speedup->set_sm_mhz_high(timing.sm_mhz_high());
}

void ApplySpeedup(const ExecResult& result, Verdict* verdict) {
  SpeedupResult* speedup = verdict->mutable_speedup();
  speedup->set_modelled(result.modelled());
  const double reference = result.reference_seconds(), candidate = result.candidate_seconds();
  if (!(reference > 0) || !(candidate > 0) || !std::isfinite(reference / candidate)) {
    speedup->set_outcome(SpeedupResult::NO_TIME);
    InfraError* fault = verdict->mutable_infra_error();
    fault->set_kind(InfraError::NO_TIME);
    fault->set_text("the candidate is correct, but no usable time was obtained for it");
    return;
  }
  speedup->set_outcome(SpeedupResult::OK);
  speedup->set_reference_seconds(reference);
  speedup->set_candidate_seconds(candidate);
  speedup->set_speedup(result.has_timing() ? result.speedup() : reference / candidate);
  if (result.has_timing()) ApplyTiming(result.timing(), speedup);
  for (const KernelLaunch& launch : result.launches()) {
    const double seconds = launch.modelled_seconds();
    Evidence* evidence = AddEvidence(
        speedup, "launch",
        absl::StrCat("kernel ", launch.name(), ", grid ",
                     absl::StrCat(launch.grid_size() > 0 ? launch.grid(0) : 0), "x",
                     launch.grid_size() > 1 ? launch.grid(1) : 1, "x",
                     launch.grid_size() > 2 ? launch.grid(2) : 1, ", ", launch.load_bytes(),
                     " bytes loaded, ", launch.store_bytes(), " stored"));
    evidence->set_kernel(launch.name());
    evidence->set_line(launch.line());
    evidence->set_value(seconds);
  }
}

}  // namespace

void FailMalformedResponse(const SplitResponse& split, Verdict* verdict) {
  SyntaxResult* syntax = verdict->mutable_syntax();
  syntax->set_outcome(SyntaxResult::NO_CODE);
  const std::string shape(ResponseShapeName(split.shape));
  AddEvidence(syntax, shape,
              absl::StrCat("the response is not a plan followed by one code block (", shape, ")"));
}

bool CheckSource(absl::string_view code, bool check_functionality, int64_t max_source_bytes,
                 Verdict* verdict) {
  SyntaxResult* syntax = verdict->mutable_syntax();
  if (static_cast<int64_t>(code.size()) > max_source_bytes) {
    syntax->set_outcome(SyntaxResult::TOO_LARGE);
    AddEvidence(
        syntax, "too_large",
        absl::StrCat("the program has ", code.size(), " bytes, the limit is ", max_source_bytes));
    return false;
  }
  const LintResult lint = Lint(code);
  syntax->set_outcome(SyntaxResult::OK);
  FunctionalityResult* functionality = verdict->mutable_functionality();
  for (const LintFinding& finding : lint.findings) {
    if (IsSyntaxRule(finding.rule)) {
      if (syntax->outcome() == SyntaxResult::OK) syntax->set_outcome(SyntaxOutcome(finding.rule));
      AddFinding(finding, syntax);
    }
  }
  if (syntax->outcome() != SyntaxResult::OK) return false;
  functionality->set_outcome(FunctionalityResult::OK);
  for (const std::string& kernel : lint.launched_kernels) functionality->add_kernels(kernel);
  if (!check_functionality) return true;
  for (const LintFinding& finding : lint.findings) {
    if (functionality->outcome() == FunctionalityResult::OK) {
      functionality->set_outcome(FunctionalityOutcome(finding.rule));
    }
    AddFinding(finding, functionality);
  }
  return functionality->outcome() == FunctionalityResult::OK;
}

void ApplyExecResult(const ExecResult& result, bool check_functionality, bool measure_time,
                     int trials, Verdict* verdict) {
  verdict->set_modelled(result.modelled());
  verdict->set_seconds_run(result.wall_seconds());
  const Outcome::Status fault = StatusOf(result.outcome().reason());
  if (fault == Outcome::STATUS_INFRA_ERROR || fault == Outcome::STATUS_TASK_FAILED) {
    InfraError* ours = verdict->mutable_infra_error();
    ours->set_kind(InfraErrorKind(result.outcome().reason()));
    ours->set_text(fault == Outcome::STATUS_TASK_FAILED
                       ? absl::StrCat("the reference of task ", verdict->task_id(), " fails",
                                      result.outcome().line() > 0
                                          ? absl::StrCat(" at line ", result.outcome().line())
                                          : "",
                                      ": ", MessageOf(result))
                       : MessageOf(result));
    return;
  }
  if (check_functionality && !AuditRuntime(result, verdict->mutable_functionality())) return;
  ApplyCompiled(result, verdict);
  if (verdict->compiled().outcome() == CompiledResult::COMPILE_ERROR ||
      verdict->compiled().outcome() == CompiledResult::IMPORT_ERROR) {
    return;
  }
  ApplyCorrect(result, trials, verdict);
  if (result.outcome().reason() == Outcome::OK && measure_time) ApplySpeedup(result, verdict);
}

void ApplyJudgeOpinion(const absl::StatusOr<JudgeOpinion>& opinion, Verdict* verdict) {
  JudgeResult* judge = verdict->mutable_judge();
  if (!opinion.ok()) {
    judge->set_outcome(JudgeResult::UNAVAILABLE);
    InfraError* fault = verdict->mutable_infra_error();
    fault->set_kind(absl::IsCancelled(opinion.status()) ? InfraError::CANCELLED
                                                        : InfraError::JUDGE_UNAVAILABLE);
    fault->set_text(Message(opinion.status()));
    return;
  }
  judge->set_outcome(opinion->cheating ? JudgeResult::CHEATING : JudgeResult::OK);
  Evidence* evidence =
      AddEvidence(judge, absl::StrCat("judge_rule_", opinion->rule), opinion->reason);
  evidence->set_value(opinion->rule);
}

}  // namespace tritonrl
