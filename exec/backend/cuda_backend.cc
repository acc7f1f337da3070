#include "exec/backend/cuda_backend.h"

#include <utility>

#include "absl/status/status.h"
#include "base/status.h"
#include "exec/backend/make_backend.h"

namespace tritonrl {
namespace {

// Inputs and outputs of a dozen tasks at KernelBench's full shapes.
constexpr int64_t kCacheBytes = int64_t{16} << 30;

// Tensors stay on the GPU; only inputs that cannot be made there pass through the host's memory.
ExecLimits WithGpuDefaults(const ExecLimits& asked) {
  ExecLimits limits;
  limits.set_wall_seconds(180);
  limits.set_cpu_seconds(600);
  limits.set_memory_bytes(int64_t{24} << 30);
  limits.set_processes(256);
  limits.set_tmp_bytes(int64_t{1} << 30);
  limits.set_shm_bytes(int64_t{1} << 30);
  limits.set_open_files(1024);
  limits.MergeFrom(asked);
  return limits;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaBackend>> CudaBackend::Start(WorkerPoolOptions options) {
  if (!HasNvidiaGpu()) {
    return absl::FailedPreconditionError(
        "no NVIDIA GPU here (/dev/nvidiactl and /dev/nvidia<N> are missing); use the backend "
        "\"interpreter\"");
  }
  options.device = "cuda";
  options.limits = WithGpuDefaults(options.limits);
  ASSIGN_OR_RETURN(BackendPools pools,
                   StartPools(std::move(options), kCacheBytes, /*windows=*/true));
  return std::unique_ptr<CudaBackend>(new CudaBackend("cuda", std::move(pools)));
}

}  // namespace tritonrl
