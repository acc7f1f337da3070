// One more call of forward under a profiler, on a GPU: which kernels took the GPU's time there.
#ifndef TRITONRL_EXEC_CANDIDATE_GPU_PROFILE_H_
#define TRITONRL_EXEC_CANDIDATE_GPU_PROFILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "exec/compare/tensor_layout.h"
#include "exec/messages.pb.h"

namespace tritonrl {

struct GpuProfile {
  std::optional<std::vector<Leaf>> output;  // nothing: the call failed, and `note` says how
  std::vector<GpuKernel> kernels;           // the longest first
  std::string note;                         // why there are none
};

// The order to the runner, for the inputs of `trial`; it is told to end within so many seconds.
std::string ProfileOrder(int trial, double seconds);

// The runner's answer (format in docs/protocol.md), nothing of which is trusted.
// InvalidArgument when it makes no sense.
absl::StatusOr<GpuProfile> ParseGpuProfile(absl::string_view answer, uint64_t memory_bytes);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_CANDIDATE_GPU_PROFILE_H_
