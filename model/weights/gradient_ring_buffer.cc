#include "model/weights/gradient_ring_buffer.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "model/cuda/common/virtual_memory.h"
#include "model/weights/weights.h"

namespace tritonrl {

namespace {

constexpr int64_t kElement = 4;
constexpr int64_t kRingLayers = 3;  // the backward writes one while two are reduced

int64_t RoundUp(int64_t elements, int64_t unit) { return (elements + unit - 1) / unit * unit; }

int64_t MappingUnit(at::Device device) {
  return (device.is_cuda() ? kMappingGranularity : sysconf(_SC_PAGESIZE)) / kElement;
}

// Pages of an anonymous file, mapped at several addresses.
class HostMapping {
 public:
  HostMapping(int64_t own, int64_t ring, int64_t size) : size_(own + RoundUp(size - own, ring)) {
    const int file = memfd_create("gradient_ring_buffer", MFD_CLOEXEC);
    TORCH_CHECK(file >= 0, "no memory for gradients: ", std::strerror(errno));
    const bool mapped = Map(file, own, ring);
    const int error = errno;
    close(file);  // the mappings keep the memory alive
    if (mapped) return;
    if (base_ != nullptr) munmap(base_, size_);
    TORCH_CHECK(false, "no memory for gradients: ", std::strerror(error));
  }
  ~HostMapping() { munmap(base_, size_); }
  HostMapping(const HostMapping&) = delete;
  HostMapping& operator=(const HostMapping&) = delete;

  void* data() const { return base_; }

 private:
  bool Map(int file, int64_t own, int64_t ring) {
    if (ftruncate(file, own + ring) != 0) return false;
    void* const base =
        mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return false;
    base_ = static_cast<char*>(base);
    const auto put = [&](int64_t at, int64_t from, int64_t bytes) {
      return bytes == 0 || mmap(base_ + at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                                file, from) != MAP_FAILED;
    };
    bool ok = put(0, 0, own);
    for (int64_t at = own; ok && at < size_; at += ring) ok = put(at, own, ring);
    return ok;
  }

  const int64_t size_;
  char* base_ = nullptr;
};

}  // namespace

GradientRingBuffer GradientRingBufferFor(const ParameterLayout& layout, bool tied,
                                         int64_t bucket_elements, at::Device device) {
  const int64_t unit = MappingUnit(device);
  int64_t largest = 0, layer = 0;
  for (size_t i = 0; i < layout.parts.size(); ++i) {
    const int64_t size = layout.parts[i].end - layout.parts[i].begin;
    if (i > 0 || !tied) largest = std::max(largest, size);
    if (i > 0 && i + 1 < layout.parts.size()) layer = std::max(layer, size);
  }
  const GradientRingBuffer ring_buffer = {
      .own = tied ? RoundUp(layout.parts[0].end, unit) : 0,
      .ring = RoundUp(std::max(largest, kRingLayers * layer) + bucket_elements, unit)};
  if (ring_buffer.own + ring_buffer.ring >= layout.flat_size) return {.own = layout.flat_size};
  return ring_buffer;
}

at::Tensor MapGradientRingBuffer(const GradientRingBuffer& ring_buffer, int64_t flat_size,
                                 at::Device device) {
  const at::TensorOptions fp32 = at::TensorOptions(device).dtype(at::kFloat);
  if (!ring_buffer.is_ring()) return at::zeros({flat_size}, fp32);
  const int64_t unit = MappingUnit(device);
  TORCH_CHECK(ring_buffer.own % unit == 0 && ring_buffer.ring % unit == 0,
              "a gradient ring buffer is made of whole mapping units");
  const int64_t own = ring_buffer.own * kElement, ring = ring_buffer.ring * kElement;
  if (device.is_cuda()) return MapCudaRingBuffer(own, ring, flat_size, device);
  const auto memory = std::make_shared<HostMapping>(own, ring, flat_size * kElement);
  return at::from_blob(
      memory->data(), {flat_size}, [memory](void*) {}, fp32);
}

namespace {

class CudaMapping {
 public:
  CudaMapping(at::Device device, int64_t own, int64_t ring, int64_t bytes)
      : device_(device), range_(own + (bytes - own + ring - 1) / ring * ring, device) {
    const c10::cuda::CUDAGuard guard(device_);
    c10::cuda::CUDACachingAllocator::emptyCache();  // frees the blocks that torch caches
    if (own > 0) range_.Map(0, own, Allocate(own));
    const CudaVirtualMemory::Memory shared = Allocate(ring);
    for (int64_t at = own; at < range_.bytes(); at += ring) range_.Map(at, ring, shared);
    range_.Open();
    C10_CUDA_CHECK(cudaMemset(data(), 0, own + ring));
  }
  ~CudaMapping() {
    const c10::cuda::CUDAGuard guard(device_);
    // Waits for the kernels that use the memory, but not for the whole device: a collective on
    // another stream may wait for a rank that has ended.
    C10_CUDA_CHECK_WARN(
        cudaStreamSynchronize(c10::cuda::getCurrentCUDAStream(device_.index()).stream()));
  }
  CudaMapping(const CudaMapping&) = delete;
  CudaMapping& operator=(const CudaMapping&) = delete;

  void* data() const { return range_.data(); }

 private:
  CudaVirtualMemory::Memory Allocate(int64_t bytes) {
    const std::optional<CudaVirtualMemory::Memory> memory = range_.Allocate(bytes);
    TORCH_CHECK_WITH(OutOfMemoryError, memory.has_value(), "no ", bytes,
                     " bytes of GPU memory are free for gradients");
    return *memory;
  }

  const at::Device device_;
  CudaVirtualMemory range_;
};

}  // namespace

at::Tensor MapCudaRingBuffer(int64_t own, int64_t ring, int64_t elements, at::Device device) {
  const auto memory = std::make_shared<CudaMapping>(device, own, ring, elements * 4);
  return at::from_blob(
      memory->data(), {elements}, [memory](void*) {}, at::TensorOptions(device).dtype(at::kFloat),
      device);
}

}  // namespace tritonrl
