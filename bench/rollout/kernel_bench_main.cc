// Measures the kernels of a generation step at the shape of Qwen3-8B on the current GPU, beside the
// bound of the memory's bandwidth. Takes two minutes.
#include <ATen/Context.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "bench/rollout/kernel_timer.h"

ABSL_FLAG(
    std::string, only, "",
    "Part to measure: attention, shared_pages, step, sampling, gemms, megakernel, memory, exact "
    "(with fp8), attention_power or gemm_power; empty: all.");

namespace tritonrl {
namespace {

absl::Status Run(Bench* bench) {
  const std::vector<std::pair<std::string, void (*)(Bench*)>> parts = {
      {"attention", BenchAttention},
      {"shared_pages", BenchAttentionTogether},
      {"step", BenchStepKernels},
      {"sampling", BenchSampling},
      {"gemms", BenchGemms},
      {"megakernel", BenchFusedLayer},
      {"memory", BenchMappedMemory},
      {"exact", BenchInvariantAndFp8Gemms},
      {"attention_power", BenchAttentionPower},
      {"gemm_power", BenchGemmPower}};
  const std::string only = absl::GetFlag(FLAGS_only);
  if (!at::globalContext().hasCUDA()) {
    return absl::FailedPreconditionError("this bench measures a GPU, and this machine has none");
  }
  bool known = only.empty();
  for (const auto& [name, run] : parts) {
    if (!only.empty() && only != name) continue;
    known = true;
    run(bench);
    bench->PrintTable();
  }
  if (known) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--only=", only, ": see --help for the names of the parts"));
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::RunBench({.usage = "Times the kernels of a generation step on a GPU."}, argc, argv,
                     tritonrl::Run);
}
