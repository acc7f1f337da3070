#include "model/gradient_window_cuda.h"

#include <ATen/ops/from_blob.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>

#include <memory>
#include <optional>

#include "model/cuda/address_range.h"

namespace tritonrl {
namespace {

class CudaMapping {
 public:
  CudaMapping(at::Device device, int64_t own, int64_t ring, int64_t bytes)
      : device_(device), range_(own + (bytes - own + ring - 1) / ring * ring, device) {
    const c10::cuda::CUDAGuard guard(device_);
    c10::cuda::CUDACachingAllocator::emptyCache();  // what torch keeps for later
    if (own > 0) range_.Map(0, own, Allocate(own));
    const AddressRange::Memory shared = Allocate(ring);
    for (int64_t at = own; at < range_.bytes(); at += ring) range_.Map(at, ring, shared);
    range_.Open();
    C10_CUDA_CHECK(cudaMemset(data(), 0, own + ring));
  }
  ~CudaMapping() {
    const c10::cuda::CUDAGuard guard(device_);
    // Nothing uses the memory any more. Not the whole device: a stream of collectives may wait for
    // a rank that is gone.
    C10_CUDA_CHECK_WARN(
        cudaStreamSynchronize(c10::cuda::getCurrentCUDAStream(device_.index()).stream()));
  }
  CudaMapping(const CudaMapping&) = delete;
  CudaMapping& operator=(const CudaMapping&) = delete;

  void* data() const { return range_.data(); }

 private:
  AddressRange::Memory Allocate(int64_t bytes) {
    const std::optional<AddressRange::Memory> memory = range_.Allocate(bytes);
    TORCH_CHECK_WITH(OutOfMemoryError, memory.has_value(), "no ", bytes,
                     " bytes of GPU memory are free for gradients");
    return *memory;
  }

  const at::Device device_;
  AddressRange range_;
};

}  // namespace

at::Tensor MapCudaWindow(int64_t own, int64_t ring, int64_t elements, at::Device device) {
  const auto memory = std::make_shared<CudaMapping>(device, own, ring, elements * 4);
  return at::from_blob(
      memory->data(), {elements}, [memory](void*) {}, at::TensorOptions(device).dtype(at::kFloat),
      device);
}

}  // namespace tritonrl
