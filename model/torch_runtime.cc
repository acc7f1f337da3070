#include "model/torch_runtime.h"

#include <c10/core/AllocatorConfig.h>
#include <c10/cuda/CUDAFunctions.h>

#include <cstdlib>

namespace tritonrl {
namespace {

constexpr char kForTraining[] =
    "expandable_segments:True,pinned_use_cuda_host_register:True,pinned_num_register_threads:8";

}  // namespace

absl::Status InitializeGpu(at::Device device, bool trains) {
  if (!device.is_cuda()) return absl::OkStatus();
  return CatchTorch("the use of " + device.str(), "free memory there", [&] {
    c10::cuda::set_device(device.index());
    const bool chosen = std::getenv("PYTORCH_CUDA_ALLOC_CONF") != nullptr ||
                        std::getenv("PYTORCH_ALLOC_CONF") != nullptr;
    if (trains && !chosen) c10::CachingAllocator::setAllocatorSettings(kForTraining);
  });
}

}  // namespace tritonrl
