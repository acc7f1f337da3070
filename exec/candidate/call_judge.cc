#include "exec/candidate/call_judge.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tritonrl {

OutputAccess AccessInMemory(const ExecRequest& request, const ReferenceResult& reference_result,
                            std::function<absl::string_view()> memory) {
  OutputAccess access;
  access.compare = [&request, &reference_result, memory](
                       size_t call, const std::vector<Leaf>& output) -> absl::StatusOr<Comparison> {
    return CompareOutputs({reference_result.outputs[call], reference_result.hidden.view()},
                          {output, memory()}, reference_result.ToleranceOf(request, call));
  };
  const auto firsts = std::make_shared<std::map<int, FirstElements>>();  // by leaf
  access.follow = [&reference_result, memory, firsts](
                      size_t call, int leaf, const Leaf& got) -> absl::StatusOr<InputSensitivity> {
    const Leaf& want = reference_result.outputs[call][leaf];
    if (!want.offset.has_value()) return InputSensitivity();
    const char* const expected = reference_result.hidden.view().data() + *want.offset;
    const char* const there = memory().data() + *got.offset;
    if (call == 0) {
      (*firsts)[leaf] = {SampleElements(want, expected), SampleElements(got, there)};
      return InputSensitivity();
    }
    return MeasureInputSensitivity(want, (*firsts)[leaf], expected, there);
  };
  return access;
}

std::vector<int> FollowedLeaves(const ReferenceResult& reference_result, int trial, size_t call,
                                const std::vector<Leaf>& output) {
  std::vector<int> leaves;
  const std::vector<Leaf>& first = reference_result.outputs[0];
  if (call == 1 || reference_result.trial_names[trial] != "random" ||
      output.size() != first.size()) {
    return leaves;
  }
  for (size_t i = 0; i < output.size(); ++i) {
    if (output[i].kind != Leaf::Kind::kTensor || !output[i].offset.has_value() ||
        output[i].elements == 0 || output[i].shape != first[i].shape ||
        !SupportsSensitivityCheck(output[i].type)) {
      continue;
    }
    leaves.push_back(static_cast<int>(i));
  }
  return leaves;
}

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
  found_.following.resize(std::max(found_.following.size(), output.size()));
  for (const int i : FollowedLeaves(reference_result_, trial, call, output)) {
    found_.following[i].Add(Answered(access_.follow(call, i, output[i]), InputSensitivity()));
  }
}

bool CallJudge::CheckSharing(int trial, const std::vector<Leaf>& output,
                             const std::vector<Leaf>& inputs) {
  if (request_.rules() != RULES_ROBUST || reference_result_.shares_memory) return true;
  const std::string shared = FindSharedOutputs(output, inputs);
  if (shared.empty()) return true;
  Refuse(trial, "shared_memory", absl::StrCat(shared, ", but the reference's do not"));
  return false;
}

bool CallJudge::CheckInputs(int trial, bool unchanged) {
  if (unchanged || request_.rules() == RULES_PAPER || reference_result_.mutates_inputs) return true;
  Refuse(trial, "input_changed", "forward changed its inputs in place");
  return false;
}

void CallJudge::Refuse(int trial, const char* kind, const std::string& message) {
  found_.wrong = Comparison();
  found_.wrong.equal = false;
  found_.wrong.message = message;
  found_.wrong.mismatch.set_kind(kind);
  found_.wrong.mismatch.set_trial(trial);
}

// Keeps the largest share of the tolerance that an error took.
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
