// Modelled times: a roofline of one GPU, fed with bytes and operations that the executor counted.
//
// A kernel takes
//   launch + max(DRAM, L2, fp32, tensor cores) / fill + programs * time per program
// where DRAM counts each touched 32-byte sector once, L2 counts the sectors of every access, and
// fill = min(1, programs * warps / full_warps) is the share of the GPU that the launch occupies.
// Spills, latency and bank conflicts are not modelled: the time is good for gross ratios, not for
// ranking tuned kernels. Every display of a time from here must say "modelled".
#ifndef TRITONRL_EXEC_TIMING_ROOFLINE_H_
#define TRITONRL_EXEC_TIMING_ROOFLINE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "exec/messages.pb.h"
#include "exec/reference/reference_runner.h"

namespace tritonrl {

// Rates of one GPU, in units per second.
struct RooflineModel {
  std::string device_name;  // "NVIDIA L40S (modelled)"
  double launch_seconds = 0;
  double dram_bytes = 0;
  double l2_bytes = 0;
  double fp32_flops = 0;
  double tensor_flops = 0;
  double full_warps = 0;       // warps in flight that saturate the memory system
  double program_seconds = 0;  // scheduling cost of one program
};

// Returns the model of ExecRequest::device_model; "" is "l40s". InvalidArgument names the known
// ones.
absl::StatusOr<RooflineModel> FindRooflineModel(absl::string_view name);

// Returns the seconds of one launch from its grid, warps and counts.
double LaunchSeconds(const RooflineModel& model, const KernelLaunch& launch);

// Returns the seconds of `calls` calls of one operator (a copy, a fill, another operator of torch)
// that move `bytes` and compute `flops` in all, at full occupancy.
double OperatorSeconds(const RooflineModel& model, int64_t calls, double bytes, double flops);

// Gives a reference that ran on the CPU the GPU of the request's model: name, memory bandwidth and,
// unless the request skips timing, the seconds of one forward by the operators that were counted in
// it. InvalidArgument: FindRooflineModel.
absl::Status ModelReference(const ExecRequest& request, ReferenceResult* reference_result);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_TIMING_ROOFLINE_H_
