#include "exec/candidate/call_judge.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tritonrl {

Comparison CallJudge::Compare(size_t call, const std::vector<Leaf>& output) {
  Comparison unknown;
  unknown.equal = false;
  return Answered(access_.compare(call, output), unknown);
}

bool CallJudge::Judge(int trial, size_t call, const std::vector<Leaf>& output) {
  Comparison comparison = Compare(call, output);
  if (comparison.max_error.has_value() && std::isfinite(*comparison.max_error)) {
    found_.max_error = std::max(found_.max_error.value_or(0), *comparison.max_error);
  }
  NoteShare(comparison, trial);
  if (comparison.equal) return true;
  comparison.mismatch.set_trial(trial);
  found_.wrong = std::move(comparison);
  found_.repeated = call == 1;
  return false;
}

void CallJudge::NoteFollowing(int trial, size_t call, const std::vector<Leaf>& output) {
  if (call == 1 || reference_result_.trial_names[trial] != "random") return;
  const std::vector<Leaf>& first = reference_result_.outputs[0];
  if (output.size() != first.size()) return;
  found_.following.resize(output.size());
  for (size_t i = 0; i < output.size(); ++i) {
    if (output[i].kind != Leaf::Kind::kTensor || !output[i].offset.has_value() ||
        output[i].elements == 0 || output[i].shape != first[i].shape ||
        !SupportsSensitivityCheck(output[i].type)) {
      continue;
    }
    found_.following[i].Add(
        Answered(access_.follow(call, static_cast<int>(i), output[i]), InputSensitivity()));
  }
}

bool CallJudge::CheckSharing(int trial, const std::vector<Leaf>& output,
                             const std::vector<Leaf>& inputs) {
  if (request_.rules() != RULES_ROBUST || reference_result_.shares_memory) return true;
  const std::string shared = FindSharedOutputs(output, inputs);
  if (shared.empty()) return true;
  found_.wrong = Comparison();
  found_.wrong.equal = false;
  found_.wrong.message = absl::StrCat(shared, ", but the reference's do not");
  found_.wrong.mismatch.set_kind("shared_memory");
  found_.wrong.mismatch.set_trial(trial);
  return false;
}

// How near the outputs came to what is allowed.
void CallJudge::NoteShare(const Comparison& comparison, int trial) {
  if (!comparison.worst_share.has_value() ||
      (found_.robust.has_worst_share() && found_.robust.worst_share() >= *comparison.worst_share)) {
    return;
  }
  found_.robust.set_worst_share(*comparison.worst_share);
  found_.robust.set_worst_error(comparison.worst_error);
  found_.robust.set_worst_tolerance(comparison.worst_tolerance);
  found_.robust.set_worst_trial(reference_result_.trial_names[trial]);
}

}  // namespace tritonrl
