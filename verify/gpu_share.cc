#include "verify/gpu_share.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "verify/neutral_ops.h"

namespace tritonrl {
namespace {

constexpr double kForeignShare = 0.05;
// What one operator on a handful of elements takes at most, launched alone.
constexpr double kScalarSeconds = 4e-6;
constexpr int kShownKernels = 8;

// GPU time that neutral operators on a handful of elements may have taken.
double ScalarSeconds(const ExecResult& result) {
  double calls = 0;
  for (const AtenOp& op : result.candidate_ops()) {
    if (!op.view() && op.largest() <= kScalarElements) calls += static_cast<double>(op.calls());
  }
  return calls * kScalarSeconds;
}

}  // namespace

bool IsPlainGpuWork(absl::string_view kernel) {
  if (absl::StartsWith(kernel, "Memcpy ") || absl::StartsWith(kernel, "Memset ")) return true;
  if (!absl::StrContains(kernel, "at::native::")) return false;
  for (const absl::string_view plain :
       {"::FillFunctor<", "copy_kernel_cuda", "::CatArrayBatchedCopy", "arange_cuda_out",
        "linspace_cuda_out", "::distribution_elementwise", "::distribution_nullary"}) {
    if (absl::StrContains(kernel, plain)) return true;
  }
  return false;
}

void CheckGpuShare(const ExecResult& result, FunctionalityResult* functionality) {
  if (result.modelled() || result.outcome() != EXEC_OK) return;
  Evidence* share = functionality->add_evidence();
  share->set_rule("gpu_share");
  double total = 0, own = 0, foreign = 0;
  for (const GpuKernel& kernel : result.gpu_kernels()) {
    total += kernel.seconds();
    if (kernel.own()) own += kernel.seconds();
    if (!kernel.own() && !IsPlainGpuWork(kernel.name())) foreign += kernel.seconds();
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
  if (functionality->outcome() == FunctionalityResult::OK) {
    functionality->set_outcome(FunctionalityResult::RUNTIME_COMPUTE);
  }
  int shown = 0;
  for (const GpuKernel& kernel : result.gpu_kernels()) {
    if (kernel.own() || IsPlainGpuWork(kernel.name()) || shown++ >= kShownKernels) continue;
    Evidence* evidence = functionality->add_evidence();
    evidence->set_rule("foreign_gpu_kernel");
    evidence->set_name(kernel.name());
    evidence->set_value(kernel.seconds() / total);
    evidence->set_text(absl::StrFormat(
        "%.0f%% of forward's GPU time is in a kernel that is none of the program's: %s",
        100 * kernel.seconds() / total, kernel.name()));
  }
}

}  // namespace tritonrl
