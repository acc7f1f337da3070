#include "exec/timing/roofline.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tritonrl {
namespace {

// NVIDIA L40S data sheet: 864 GB/s, 91.6 TFLOP/s in fp32, 183 TFLOP/s in dense tf32, 142
// multiprocessors. 4 TB/s from the L2 cache is an assumption.
RooflineModel L40s() {
  return {.device_name = "NVIDIA L40S (modelled)",
          .launch_seconds = 2.5e-6,
          .dram_bytes = 864e9,
          .l2_bytes = 4e12,
          .fp32_flops = 91.6e12,
          .tensor_flops = 183e12,
          .full_warps = 142 * 8};
}

// The same ratios scaled down about 200 times, so that tasks of a few thousand elements are not all
// launch overhead.
RooflineModel L40sMini() {
  return {.device_name = "NVIDIA L40S scaled for mini tasks (modelled)",
          .launch_seconds = 2.5e-6,
          .dram_bytes = 4.3e9,
          .l2_bytes = 20e9,
          .fp32_flops = 0.46e12,
          .tensor_flops = 0.46e12,
          .full_warps = 16,
          .program_seconds = 20e-9};
}

}  // namespace

absl::StatusOr<RooflineModel> FindRooflineModel(absl::string_view name) {
  if (name.empty() || name == "l40s") return L40s();
  if (name == "l40s_mini") return L40sMini();
  return absl::InvalidArgumentError(
      absl::StrCat("device_model \"", name, "\" is unknown; known are l40s, l40s_mini"));
}

double LaunchSeconds(const RooflineModel& model, const KernelLaunch& launch) {
  double programs = 1;
  for (const int32_t size : launch.grid()) programs *= size;
  const double busy = std::max({
      launch.unique_bytes() / model.dram_bytes,
      (launch.sector_bytes() + launch.atomic_bytes()) / model.l2_bytes,
      (launch.flops() + launch.dot_flops()) / model.fp32_flops,
      launch.tensor_flops() / model.tensor_flops,
  });
  const double fill = std::min(1.0, programs * launch.num_warps() / model.full_warps);
  return model.launch_seconds + (busy > 0 ? busy / fill : 0) + programs * model.program_seconds;
}

double OperatorSeconds(const RooflineModel& model, int64_t calls, double bytes, double flops) {
  return static_cast<double>(calls) * model.launch_seconds +
         std::max(bytes / model.dram_bytes, flops / model.fp32_flops);
}

absl::Status ModelReference(const ExecRequest& request, ReferenceResult* reference_result) {
  ASSIGN_OR_RETURN(const RooflineModel model, FindRooflineModel(request.device_model()));
  ExecResult& run = reference_result->run;
  run.set_device_name(model.device_name);
  reference_result->bytes_per_second = model.dram_bytes;
  if (request.skip_timing()) return absl::OkStatus();
  double seconds = 0;
  for (const AtenOp& op : run.reference_ops()) {
    if (!op.free()) seconds += OperatorSeconds(model, op.calls(), op.bytes(), op.flops());
  }
  run.set_reference_seconds(seconds);
  return absl::OkStatus();
}

}  // namespace tritonrl
