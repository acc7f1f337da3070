#include "exec/cuda_backend.h"

#include <utility>

#include "absl/status/status.h"
#include "base/status.h"
#include "exec/make_backend.h"

namespace tritonrl {

absl::StatusOr<std::unique_ptr<CudaBackend>> CudaBackend::Start(WorkerPoolOptions options) {
  if (!HasNvidiaGpu()) {
    return absl::FailedPreconditionError(
        "no NVIDIA GPU here (/dev/nvidiactl and /dev/nvidia<N> are missing); use the backend "
        "\"interpreter\"");
  }
  options.device = "cuda";
  ASSIGN_OR_RETURN(auto pool, WorkerPool::Start(options));
  const ExecLimits limits = pool->limits();
  return std::unique_ptr<CudaBackend>(new CudaBackend("cuda", std::move(pool), limits));
}

}  // namespace tritonrl
