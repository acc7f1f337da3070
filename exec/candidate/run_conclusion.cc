#include "exec/candidate/run_conclusion.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "exec/device_backend.h"
#include "exec/reference/job_json.h"
#include "exec/timing/speedup.h"

namespace tritonrl {
namespace {

void NoteTiming(const TimingResult& timing, ExecResult* result) {
  auto& seconds = *result->mutable_phase_seconds();
  seconds["timing: ready"] = timing.ready_seconds;
  seconds["timing: wait for the GPU"] = timing.wait_seconds;
  seconds["timing: rounds"] = timing.round_seconds;
}

// False when it cannot be known whether the kernels do the work.
bool ConcludeAblation(const RunFindings& found, ExecResult* result) {
  result->set_ablation_all(found.ablation.all);
  for (const KernelAblation& kernel : found.ablation.kernels) *result->add_ablations() = kernel;
  if (found.ablation.all != ABLATION_UNCLEAR) return true;
  SetOutcome(Outcome::INCONCLUSIVE,
             absl::StrCat("without its kernels the result ", found.ablation.kernels[0].text()),
             result->mutable_outcome());
  return false;
}

// Names the first output that is no better than a constant.
void NoteConstants(const RunFindings& found, ExecResult* result) {
  for (size_t i = 0; i < found.following.size(); ++i) {
    const InputSensitivity& sums = found.following[i];
    if (!sums.IsNoBetterThanConstant()) continue;
    result->mutable_constant_output()->set_output(static_cast<int>(i));
    result->mutable_constant_output()->set_variation(sums.VariationPerElement());
    result->mutable_constant_output()->set_error(sums.ErrorPerElement());
    return;
  }
}

void ConcludeWrong(const ReferenceResult& reference_result, const RunFindings& found,
                   ExecResult* result) {
  const std::string name = reference_result.trial_names[found.wrong.mismatch.trial()];
  *result->mutable_mismatch() = found.wrong.mismatch;
  result->mutable_mismatch()->set_trial_name(name);
  result->set_correct(false);
  result->set_phase("compare");
  result->mutable_outcome()->clear_detail();
  result->mutable_outcome()->clear_line();
  const char* again = found.timed      ? ", in a timed call"
                      : found.repeated ? ", called once more"
                                       : "";
  std::string own;  // it may be why
  for (const std::string& sentence : result->own_parameters()) {
    absl::StrAppend(&own, "; ", sentence);
  }
  SetOutcome(Outcome::MISMATCH,
             absl::StrCat("trial ", found.wrong.mismatch.trial() + 1, " of ",
                          reference_result.inputs.size(),
                          name == "random" ? "" : absl::StrCat(" (inputs: ", name, ")"), again,
                          ": ", found.wrong.message, own),
             result->mutable_outcome());
}

}  // namespace

void Conclude(const ExecRequest& request, const ReferenceResult& reference_result,
              const RunFindings& found, ExecResult* result) {
  const std::vector<int> calls = CallsOf(static_cast<int>(reference_result.inputs.size()));
  result->set_modelled(reference_result.run.modelled());
  result->set_device_name(reference_result.run.device_name());
  *result->mutable_versions() = reference_result.run.versions();
  *result->mutable_reference_ops() = reference_result.run.reference_ops();
  for (const auto& [phase, seconds] : reference_result.run.phase_seconds()) {
    if (phase != "rest") (*result->mutable_phase_seconds())[phase] = seconds;
  }
  if (found.timing.has_value()) NoteTiming(*found.timing, result);
  if (found.compared > 0) result->set_trials_run(calls[found.compared - 1] + 1);
  if (found.max_error.has_value()) result->set_max_error(*found.max_error);
  if (request.rules() == RULES_ROBUST) {
    RobustEvidence* const robust = result->mutable_robust();
    *robust = found.robust;
    for (const std::string& name : reference_result.trial_names) robust->add_trial_names(name);
    for (const std::string& note : reference_result.notes) robust->add_notes(note);
    for (const std::string& text : reference_result.left_out) robust->add_left_out(text);
  }
  if (!found.wrong.equal) {
    // That the kernels do not do the work is known, whatever the result is.
    if (result->outcome().reason() == Outcome::RUNTIME_COMPUTE) return;
    return ConcludeWrong(reference_result, found, result);
  }
  if (result->outcome().reason() != Outcome::OK) return;
  if (found.compared < calls.size()) {
    return SetOutcome(
        Outcome::INTERNAL_ERROR,
        absl::StrCat("only ", found.compared, " of ", calls.size(), " calls were judged"),
        result->mutable_outcome());
  }
  result->set_correct(true);
  NoteConstants(found, result);
  if (!ConcludeAblation(found, result)) return;
  if (!request.skip_timing()) ConcludeSpeedup(reference_result, found.timing, result);
}

}  // namespace tritonrl
