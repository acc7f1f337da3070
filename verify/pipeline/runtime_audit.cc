#include "verify/pipeline/runtime_audit.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "verify/verdict/verdict.h"

namespace tritonrl {

namespace {

// Maximum number of kernels in the evidence, and of tensors of each.
constexpr size_t kMaxKernels = 16;
constexpr int kMaxTensors = 12;

// Returns e.g. "x = input 0 float32[64, 200], y = output 0 float32[64, 200]".
std::string TensorsText(const KernelLaunch& launch) {
  std::vector<std::string> texts;
  for (const KernelArgument& argument : launch.arguments()) {
    if (static_cast<int>(texts.size()) == kMaxTensors) {
      texts.push_back(absl::StrCat(launch.arguments_size() - kMaxTensors, " more"));
      break;
    }
    texts.push_back(absl::StrCat(argument.name(), " = ", argument.what(), " ", argument.dtype(),
                                 "[", absl::StrJoin(argument.shape(), ", "), "]"));
  }
  return absl::StrJoin(texts, ", ");
}

// Adds the first launch of each kernel, with its tensors, as evidence.
void AddLaunches(const ExecResult& result, LayerResult* functionality) {
  std::set<std::pair<std::string, int>> seen;
  for (const KernelLaunch& launch : result.launches()) {
    if (!seen.insert({launch.name(), launch.line()}).second) continue;
    if (seen.size() > kMaxKernels) return;
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
                   LayerResult* functionality) {
  Evidence* evidence = AddEvidence(functionality, rule, text);
  evidence->set_kernel(kernel.name());
  evidence->set_line(kernel.line());
}

// Fails the layer if the result stays right while all kernels write nothing.
void CheckAblation(const ExecResult& result, LayerResult* functionality) {
  const bool decoration = result.ablation_all() == ABLATION_UNCHANGED;
  if (decoration && functionality->reason() == Outcome::OK) {
    functionality->set_reason(Outcome::DECORATION);
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

// The input-sensitivity check: fails the layer if an output follows the inputs no better than a
// constant, and passes only because the expected values vary less than the tolerance.
void CheckConstants(const ExecResult& result, LayerResult* functionality) {
  if (!result.has_constant_output() || functionality->reason() != Outcome::OK) return;
  const ConstantOutput& constant = result.constant_output();
  functionality->set_reason(Outcome::HARD_CODED);
  Evidence* evidence = AddEvidence(
      functionality, "ignores_inputs",
      absl::StrFormat("output %d follows the inputs no better than a constant would: what is "
                      "expected varies by %.2g from trial to trial, and the output misses that by "
                      "%.2g, which only the tolerance hides",
                      constant.output(), constant.variation(), constant.error()));
  evidence->set_value(constant.error());
}

}  // namespace

bool AuditRuntime(const ExecResult& result, RunAudit audit, LayerResult* functionality) {
  const bool finished =
      result.outcome().reason() == Outcome::OK || result.outcome().reason() == Outcome::MISMATCH;
  if (finished && result.launches().empty()) {
    functionality->set_reason(Outcome::NOT_LAUNCHED);
    AddEvidence(functionality, "not_launched", "forward ran without launching any Triton kernel");
    return false;
  }
  if (audit == RunAudit::kAll) {
    CheckConstants(result, functionality);
    CheckAblation(result, functionality);
  }
  AddLaunches(result, functionality);
  return functionality->reason() == Outcome::OK;
}

}  // namespace tritonrl
