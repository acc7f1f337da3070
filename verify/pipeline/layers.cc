#include "verify/pipeline/layers.h"

#include <cmath>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "exec/device_backend.h"
#include "verify/linter/linter.h"
#include "verify/verdict/verdict.h"

namespace tritonrl {
namespace {

Outcome::Reason ReasonOf(LintRule rule) {
  static const auto* const reasons = new std::map<LintRule, Outcome::Reason>{
      {LintRule::kNoCode, Outcome::NO_CODE},
      {LintRule::kParseError, Outcome::PARSE_ERROR},
      {LintRule::kNoKernel, Outcome::NO_KERNEL},
      {LintRule::kNoModel, Outcome::NO_MODEL_NEW},
      {LintRule::kTooLarge, Outcome::TOO_LARGE},
      {LintRule::kForbidden, Outcome::FORBIDDEN},
      {LintRule::kTorchCompute, Outcome::TORCH_COMPUTE},
      {LintRule::kKernelNotUsed, Outcome::KERNEL_NOT_USED},
  };
  return reasons->at(rule);
}

// Reasons below 200 belong to the syntax layer (Outcome.Reason).
bool IsSyntaxRule(LintRule rule) { return ReasonOf(rule) < 200; }

// The first finding determines the layer's reason.
void AddFinding(const LintFinding& finding, LayerResult* result) {
  if (result->reason() == Outcome::OK) result->set_reason(ReasonOf(finding.rule));
  Evidence* evidence = AddEvidence(result, std::string(LintRuleName(finding.rule)), finding.text);
  evidence->set_line(finding.line);
  evidence->set_name(finding.name);
}

// Adds the evidence of a robust comparison: its largest share of the tolerance, the inputs of all
// trials, and the outputs that it compared with the fixed tolerance.
void AddRobustEvidence(const RobustEvidence& robust, LayerResult* correct) {
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
    AddEvidence(correct, "not_exact", "compared with the fixed tolerance: " + note);
  }
  for (const std::string& text : robust.left_out()) {
    AddEvidence(correct, "left_out", "not tried: " + text);
  }
}

void AddMismatch(const ExecResult& result, LayerResult* correct) {
  const OutputMismatch& m = result.mismatch();
  Evidence* evidence =
      AddEvidence(correct, absl::StrCat("mismatch_", m.kind()), MessageOf(result.outcome()));
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

// True if every kernel that the run launched is known to have compiled.
bool IsCompiled(const ExecResult& result) {
  switch (result.outcome().reason()) {
    case Outcome::OK:
    case Outcome::MISMATCH:
      return true;
    case Outcome::COMPILE_ERROR:
    case Outcome::IMPORT_ERROR:
    case Outcome::NO_MODEL_NEW:
    case Outcome::CONSTRUCT_ERROR:
      return false;
    default:
      return result.compiled();
  }
}

// Sets the layer's result for a run that ended without a comparison.
void ApplyEnd(const Outcome& outcome, LayerResult* layer) {
  layer->set_reason(outcome.reason());
  Evidence* evidence = AddEvidence(layer, ReasonName(outcome.reason()), MessageOf(outcome));
  evidence->set_line(outcome.line());
  if (!outcome.detail().empty()) AddEvidence(layer, "detail", outcome.detail());
}

void ApplyCorrect(const ExecResult& result, int trials, Verdict* verdict) {
  LayerResult* correct = MutableResult(LAYER_CORRECT, verdict);
  const bool mismatch = result.outcome().reason() == Outcome::MISMATCH;
  Correctness* figures = verdict->mutable_correctness();
  figures->set_trials(result.has_robust() ? result.robust().trial_names_size() : trials);
  figures->set_trials_passed(result.trials_run() - (mismatch && result.trials_run() > 0 ? 1 : 0));
  if (result.has_max_error()) figures->set_max_abs_error(result.max_error());
  if (!mismatch && result.outcome().reason() != Outcome::OK)
    return ApplyEnd(result.outcome(), correct);
  correct->set_reason(result.outcome().reason());
  if (mismatch) {
    AddMismatch(result, correct);
  } else {
    Evidence* evidence =
        AddEvidence(correct, "max_abs_error",
                    absl::StrCat("largest absolute error over all trials: ", result.max_error()));
    evidence->set_value(result.max_error());
  }
  if (!result.has_robust()) return;
  figures->set_robust(true);
  AddRobustEvidence(result.robust(), correct);
}

// The kernels that forward launched, in the order of their first launches.
void AddKernels(const ExecResult& result, Verdict* verdict) {
  std::set<absl::string_view> seen;
  for (const KernelLaunch& launch : result.launches()) {
    if (seen.insert(launch.name()).second) verdict->add_kernels(launch.name());
  }
}

void ApplySpeedup(const ExecResult& result, Verdict* verdict) {
  const double reference = result.reference_seconds(), candidate = result.candidate_seconds();
  if (!(reference > 0) || !(candidate > 0) || !std::isfinite(reference / candidate)) {
    return SetOutcome(Outcome::NO_TIME,
                      "the candidate is correct, but no usable time was obtained for it",
                      verdict->mutable_outcome());
  }
  LayerResult* layer = MutableResult(LAYER_SPEEDUP, verdict);
  layer->set_reason(Outcome::OK);
  Speedup* speedup = verdict->mutable_speedup();
  speedup->set_modelled(result.modelled());
  speedup->set_reference_seconds(reference);
  speedup->set_candidate_seconds(candidate);
  speedup->set_speedup(result.has_timing() ? result.speedup() : reference / candidate);
  if (result.has_timing()) {
    *speedup->mutable_timing() = result.timing();
    // No block was timed: the paper's rules.
    speedup->set_mean_of_calls(result.timing().block_ratios().empty() &&
                               result.timing().has_paper_speedup());
  }
  for (const KernelLaunch& launch : result.launches()) {
    const double seconds = launch.modelled_seconds();
    Evidence* evidence = AddEvidence(
        layer, "launch",
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
  LayerResult* syntax = MutableResult(LAYER_SYNTAX, verdict);
  syntax->set_reason(Outcome::NO_CODE);
  const std::string shape(ResponseShapeName(split.shape));
  AddEvidence(syntax, shape,
              absl::StrCat("the response ", DescribeShape(split.shape), " (", shape, ")"));
}

bool CheckSource(absl::string_view code, bool check_functionality, int64_t max_source_bytes,
                 Verdict* verdict) {
  LayerResult* syntax = MutableResult(LAYER_SYNTAX, verdict);
  if (static_cast<int64_t>(code.size()) > max_source_bytes) {
    syntax->set_reason(Outcome::TOO_LARGE);
    AddEvidence(
        syntax, "too_large",
        absl::StrCat("the program has ", code.size(), " bytes, the limit is ", max_source_bytes));
    return false;
  }
  const LintResult lint = Lint(code);
  syntax->set_reason(Outcome::OK);
  for (const LintFinding& finding : lint.findings) {
    if (IsSyntaxRule(finding.rule)) AddFinding(finding, syntax);
  }
  if (syntax->reason() != Outcome::OK) return false;
  LayerResult* functionality = MutableResult(LAYER_FUNCTIONALITY, verdict);
  functionality->set_reason(Outcome::OK);
  if (!check_functionality) return true;
  for (const LintFinding& finding : lint.findings) AddFinding(finding, functionality);
  return functionality->reason() == Outcome::OK;
}

void ApplyExecResult(const ExecResult& result, RunAudit audit, bool measure_time, int trials,
                     Verdict* verdict) {
  verdict->set_modelled(result.modelled());
  verdict->set_seconds_run(result.wall_seconds());
  const Outcome& outcome = result.outcome();
  const Outcome::Status status = StatusOf(outcome.reason());
  if (status == Outcome::STATUS_TASK_FAILED) {
    const std::string line = outcome.line() > 0 ? absl::StrCat(" at line ", outcome.line()) : "";
    return SetOutcome(outcome.reason(),
                      absl::StrCat("the reference of task ", verdict->task_id(), " fails", line,
                                   ": ", MessageOf(outcome)),
                      verdict->mutable_outcome());
  }
  if (status == Outcome::STATUS_INFRA_ERROR) {
    return SetOutcome(outcome.reason(), MessageOf(outcome), verdict->mutable_outcome());
  }
  AddKernels(result, verdict);
  // The executor asked already, and refused.
  if (outcome.reason() == Outcome::RUNTIME_COMPUTE) {
    return ApplyEnd(outcome, MutableResult(LAYER_FUNCTIONALITY, verdict));
  }
  if (audit != RunAudit::kNone &&
      !AuditRuntime(result, audit, MutableResult(LAYER_FUNCTIONALITY, verdict)))
    return;
  LayerResult* compiled = MutableResult(LAYER_COMPILED, verdict);
  if (!IsCompiled(result)) return ApplyEnd(outcome, compiled);
  compiled->set_reason(Outcome::OK);
  ApplyCorrect(result, trials, verdict);
  if (outcome.reason() == Outcome::OK && measure_time) ApplySpeedup(result, verdict);
}

void ApplyJudgeOpinion(const absl::StatusOr<JudgeOpinion>& opinion, Verdict* verdict) {
  if (!opinion.ok()) {
    return SetOutcome(
        absl::IsCancelled(opinion.status()) ? Outcome::CANCELLED : Outcome::JUDGE_UNAVAILABLE,
        Message(opinion.status()), verdict->mutable_outcome());
  }
  LayerResult* judge = MutableResult(LAYER_JUDGE, verdict);
  judge->set_reason(opinion->cheating ? Outcome::CHEATING : Outcome::OK);
  Evidence* evidence =
      AddEvidence(judge, absl::StrCat("judge_rule_", opinion->rule), opinion->reason);
  evidence->set_value(opinion->rule);
}

}  // namespace tritonrl
