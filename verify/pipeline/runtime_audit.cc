#include "verify/pipeline/runtime_audit.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "verify/verdict/verdict.h"

namespace tritonrl {

namespace {

// Neutral operators, without "aten.".
constexpr absl::string_view kNonComputeOps[] = {
    // Allocation.
    "empty empty_like empty_strided empty_permuted new_empty new_empty_strided "
    "_efficientzerotensor "
    "resize_ resize_as_",
    // Changes of shape, and reads of one element. Operators that are views by their schema need not
    // be listed.
    "detach detach_ lift lift_fresh lift_fresh_copy alias _unsafe_view _reshape_alias set_ "
    "squeeze_ unsqueeze_ t_ transpose_ swapaxes_ swapdims_ as_strided_ resolve_conj resolve_neg "
    "_local_scalar_dense item is_nonzero is_same_size is_pinned _pin_memory sym_size sym_stride "
    "sym_numel sym_storage_offset record_stream",
    // Copies and casts.
    "clone copy_ _to_copy to contiguous cat stack repeat constant_pad_nd",
    // Fills with constants of the program.
    "zeros zeros_like new_zeros ones ones_like new_ones full full_like new_full fill fill_ zero_ "
    "zero scalar_tensor arange linspace logspace range eye tensor",
    // Random numbers.
    "rand rand_like randn randn_like randint randint_like randperm random_ uniform_ normal_ "
    "bernoulli_",
};

using Names = absl::flat_hash_set<absl::string_view>;

const Names& NonComputeNames() {
  static const Names* const names = [] {
    auto* all = new Names;
    for (const absl::string_view group : kNonComputeOps) {
      for (const absl::string_view name : absl::StrSplit(group, ' ')) all->insert(name);
    }
    return all;
  }();
  return *names;
}

// True for operators of torch and its libraries, false for those that a program registers.
bool IsLibrarys(absl::string_view name) {
  for (const absl::string_view space :
       {"aten.", "prims.", "quantized.", "mkldnn.", "torchvision.", "sparse."}) {
    if (absl::StartsWith(name, space)) return true;
  }
  return false;
}

}  // namespace

double CountScalarElements(const google::protobuf::RepeatedPtrField<AtenOp>& ops) {
  double sum = 0;
  for (const AtenOp& op : ops) {
    absl::string_view name = op.name();
    if (op.view() || !absl::ConsumePrefix(&name, "aten.") || NonComputeNames().contains(name))
      continue;
    if (op.largest() <= kScalarElements) sum += op.elements();
  }
  return sum;
}

bool IsNonComputeOp(const AtenOp& op) {
  absl::string_view name = op.name();
  // A call without tensors (largest 0) has nothing to compute on.
  const bool small =
      op.calls() > 0 && op.largest() <= kScalarElements && op.elements() <= kMaxScalarElements;
  if (absl::StartsWith(name, "python.")) return small;
  if (name == "aten._local_scalar_dense") return op.calls() <= kMaxReadBack;
  // These operators are views by their schema, but change signs.
  if (name == "aten._neg_view" || name == "aten._conj") return small;
  if (!IsLibrarys(name) || op.view() || small) return true;
  return absl::ConsumePrefix(&name, "aten.") && NonComputeNames().contains(name);
}

namespace {

constexpr double kForeignShare = 0.05;
// Upper bound of the GPU time of one operator on few elements.
constexpr double kScalarSeconds = 4e-6;
constexpr int kShownKernels = 8;

// Upper bound of the GPU time of all operators on few elements.
double ScalarSeconds(const ExecResult& result) {
  double calls = 0;
  for (const AtenOp& op : result.candidate_ops()) {
    if (!op.view() && op.largest() <= kScalarElements) calls += static_cast<double>(op.calls());
  }
  return calls * kScalarSeconds;
}

}  // namespace

bool IsNonComputeGpuKernel(absl::string_view kernel) {
  if (absl::StartsWith(kernel, "Memcpy ") || absl::StartsWith(kernel, "Memset ")) return true;
  if (!absl::StrContains(kernel, "at::native::")) return false;
  for (const absl::string_view plain :
       {"::FillFunctor<", "copy_kernel_cuda", "::CatArrayBatchedCopy", "arange_cuda_out",
        "linspace_cuda_out", "::distribution_elementwise", "::distribution_nullary"}) {
    if (absl::StrContains(kernel, plain)) return true;
  }
  return false;
}

void CheckGpuTimeShare(const ExecResult& result, LayerResult* functionality) {
  if (result.modelled() || result.outcome().reason() != Outcome::OK) return;
  Evidence* share = AddEvidence(functionality, "gpu_share", "");
  double total = 0, own = 0, foreign = 0;
  for (const GpuKernel& kernel : result.gpu_kernels()) {
    total += kernel.seconds();
    if (kernel.own()) own += kernel.seconds();
    if (!kernel.own() && !IsNonComputeGpuKernel(kernel.name())) foreign += kernel.seconds();
  }
  if (!(total > 0)) {
    const std::string& note = result.gpu_profile_note();
    share->set_text(absl::StrCat("share of the GPU's time in its own kernels: not measured",
                                 note.empty() ? "" : absl::StrCat(" (", note, ")")));
    return;
  }
  share->set_value(own / total);
  share->set_text(absl::StrFormat(
      "%.0f%% of the %.1f us on the GPU in its own kernels, %.0f%% in others that compute",
      100 * own / total, 1e6 * total, 100 * foreign / total));
  if (foreign <= kForeignShare * total + ScalarSeconds(result)) return;
  if (functionality->reason() == Outcome::OK) {
    functionality->set_reason(Outcome::RUNTIME_COMPUTE);
  }
  int shown = 0;
  for (const GpuKernel& kernel : result.gpu_kernels()) {
    if (kernel.own() || IsNonComputeGpuKernel(kernel.name()) || shown++ >= kShownKernels) continue;
    Evidence* evidence = AddEvidence(
        functionality, "foreign_gpu_kernel",
        absl::StrFormat(
            "%.0f%% of forward's GPU time is in a kernel that is none of the program's: %s",
            100 * kernel.seconds() / total, kernel.name()));
    evidence->set_name(kernel.name());
    evidence->set_value(kernel.seconds() / total);
  }
}

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

// One sentence about an operator that is not neutral.
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

bool AuditRuntime(const ExecResult& result, LayerResult* functionality) {
  const bool finished =
      result.outcome().reason() == Outcome::OK || result.outcome().reason() == Outcome::MISMATCH;
  if (finished && result.launches().empty()) {
    functionality->set_reason(Outcome::NOT_LAUNCHED);
    AddEvidence(functionality, "not_launched", "forward ran without launching any Triton kernel");
    return false;
  }
  for (const AtenOp& op : result.candidate_ops()) {
    if (IsNonComputeOp(op)) continue;
    functionality->set_reason(Outcome::RUNTIME_COMPUTE);
    Evidence* evidence = AddEvidence(functionality, "runtime_compute", OperatorText(op));
    evidence->set_name(op.name());
    evidence->set_value(op.elements());
    if (op.line() > 0) evidence->set_line(op.line());
  }
  const double scalars = CountScalarElements(result.candidate_ops());
  if (functionality->reason() == Outcome::OK && scalars > kMaxScalarElements) {
    functionality->set_reason(Outcome::RUNTIME_COMPUTE);
    AddEvidence(functionality, "runtime_compute",
                absl::StrCat("operators on few elements worked on ", scalars,
                             " elements of tensors inside forward, all together"));
  }
  CheckConstants(result, functionality);
  CheckAblation(result, functionality);
  CheckGpuTimeShare(result, functionality);
  AddLaunches(result, functionality);
  return functionality->reason() == Outcome::OK;
}

}  // namespace tritonrl
