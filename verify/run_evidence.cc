#include "verify/run_evidence.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "verify/gpu_share.h"
#include "verify/neutral_ops.h"

namespace tritonrl {
namespace {

// Kernels that are described, and tensors of each.
constexpr size_t kMostKernels = 16;
constexpr int kMostTensors = 12;

Evidence* AddEvidence(FunctionalityResult* result, const std::string& rule,
                      const std::string& text) {
  Evidence* evidence = result->add_evidence();
  evidence->set_rule(rule);
  evidence->set_text(text);
  return evidence;
}

// "x = input 0 float32[64, 200], y = output 0 float32[64, 200]".
std::string TensorsText(const KernelLaunch& launch) {
  std::vector<std::string> texts;
  for (const KernelArgument& argument : launch.arguments()) {
    if (static_cast<int>(texts.size()) == kMostTensors) {
      texts.push_back(absl::StrCat(launch.arguments_size() - kMostTensors, " more"));
      break;
    }
    texts.push_back(absl::StrCat(argument.name(), " = ", argument.what(), " ", argument.dtype(),
                                 "[", absl::StrJoin(argument.shape(), ", "), "]"));
  }
  return absl::StrJoin(texts, ", ");
}

// The first launch of each kernel, with its tensors.
void AddLaunches(const ExecResult& result, FunctionalityResult* functionality) {
  std::set<std::pair<std::string, int>> seen;
  for (const KernelLaunch& launch : result.launches()) {
    if (!seen.insert({launch.name(), launch.line()}).second) continue;
    if (seen.size() > kMostKernels) return;
    const std::string tensors = TensorsText(launch);
    Evidence* evidence = AddEvidence(
        functionality, "launched",
        absl::StrCat("kernel ", launch.name(), " ran on a grid of ",
                     absl::StrJoin(launch.grid(), "x"), tensors.empty() ? "" : " with ", tensors));
    evidence->set_kernel(launch.name());
    evidence->set_line(launch.line());
  }
}

void AddDecoration(const KernelAblation& kernel, const std::string& rule, const std::string& text,
                   FunctionalityResult* functionality) {
  Evidence* evidence = AddEvidence(functionality, rule, text);
  evidence->set_kernel(kernel.name());
  evidence->set_line(kernel.line());
}

// What an operator that is not neutral did.
std::string OperatorText(const AtenOp& op) {
  const std::string calls = absl::StrCat(op.calls(), op.calls() == 1 ? " call" : " calls");
  absl::string_view name = op.name();
  if (absl::ConsumePrefix(&name, "python.")) {
    return absl::StrCat("forward moved ", op.elements(), " elements of tensors into Python (", name,
                        ", ", calls, "), where no kernel works on them");
  }
  if (name == "aten._local_scalar_dense") {
    return absl::StrCat("forward read ", op.calls(),
                        " single elements of tensors back into Python (item, float, ...), where no "
                        "kernel works on them");
  }
  if (name == "aten.cast_to_whole_numbers_and_back") {
    return absl::StrCat("forward rounded ", op.elements(),
                        " elements of tensors by casts to whole numbers and back (", calls, ")");
  }
  return absl::StrCat("the operator ", name, " computed on tensors inside forward (", calls, ")");
}

// Fails the layer when the result needs none of the kernels.
void CheckAblation(const ExecResult& result, FunctionalityResult* functionality) {
  const bool decoration = result.ablation_all() == ABLATION_UNCHANGED;
  if (decoration && functionality->outcome() == FunctionalityResult::OK) {
    functionality->set_outcome(FunctionalityResult::DECORATION);
  }
  for (const KernelAblation& kernel : result.ablations()) {
    const std::string name = absl::StrCat("kernel ", kernel.name());
    if (decoration) {
      AddDecoration(kernel, "decoration",
                    absl::StrCat(name, " is decoration: when ",
                                 result.ablations_size() == 1 ? "it writes" : "all kernels write",
                                 " nothing, forward's result is still right"),
                    functionality);
    } else if (kernel.effect() == ABLATION_UNCHANGED) {
      AddDecoration(kernel, "changes_nothing",
                    absl::StrCat(name,
                                 " changes nothing here: when it alone writes nothing, "
                                 "forward's result is still right"),
                    functionality);
    } else if (kernel.effect() == ABLATION_NOT_TRIED || kernel.effect() == ABLATION_UNCLEAR) {
      AddDecoration(kernel, "ablation_not_tried",
                    absl::StrCat(name, " was not left out to see if it matters",
                                 kernel.text().empty() ? "" : ": ", kernel.text()),
                    functionality);
    }
  }
}

// Fails the layer when an output is right only as everything near the mean of all right ones is.
void CheckConstants(const ExecResult& result, FunctionalityResult* functionality) {
  if (!result.has_constant_output() || functionality->outcome() != FunctionalityResult::OK) return;
  const ConstantOutput& constant = result.constant_output();
  functionality->set_outcome(FunctionalityResult::HARD_CODED);
  Evidence* evidence = AddEvidence(
      functionality, "ignores_inputs",
      absl::StrFormat("output %d follows the inputs no better than a constant would: what is "
                      "expected varies by %.2g from trial to trial, and the output misses it by "
                      "%.2g, which only the tolerance hides",
                      constant.output(), constant.variation(), constant.error()));
  evidence->set_value(constant.error());
}

}  // namespace

bool CheckRunTime(const ExecResult& result, FunctionalityResult* functionality) {
  const bool finished = result.outcome() == EXEC_OK || result.outcome() == EXEC_MISMATCH;
  if (finished && result.launches().empty()) {
    functionality->set_outcome(FunctionalityResult::NOT_LAUNCHED);
    AddEvidence(functionality, "not_launched", "forward ran without launching any Triton kernel");
    return false;
  }
  for (const AtenOp& op : result.candidate_ops()) {
    if (IsNeutralOp(op)) continue;
    functionality->set_outcome(FunctionalityResult::RUNTIME_COMPUTE);
    Evidence* evidence = AddEvidence(functionality, "runtime_compute", OperatorText(op));
    evidence->set_name(op.name());
    evidence->set_value(op.elements());
    if (op.line() > 0) evidence->set_line(op.line());
  }
  const double scalars = ScalarElements(result.candidate_ops());
  if (functionality->outcome() == FunctionalityResult::OK && scalars > kMostScalarElements) {
    functionality->set_outcome(FunctionalityResult::RUNTIME_COMPUTE);
    AddEvidence(functionality, "runtime_compute",
                absl::StrCat("operators on few elements worked on ", scalars,
                             " elements of tensors inside forward, all together"));
  }
  CheckConstants(result, functionality);
  CheckAblation(result, functionality);
  CheckGpuShare(result, functionality);
  AddLaunches(result, functionality);
  return functionality->outcome() == FunctionalityResult::OK;
}

}  // namespace tritonrl
