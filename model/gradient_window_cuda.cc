#include "model/gradient_window_cuda.h"

#include <ATen/ops/from_blob.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "model/cuda/driver.h"

namespace tritonrl {
namespace {

struct Driver {
  decltype(&cuMemGetAllocationGranularity) granularity =
      FindDriverFunction<decltype(cuMemGetAllocationGranularity)>("cuMemGetAllocationGranularity");
  decltype(&cuMemAddressReserve) reserve =
      FindDriverFunction<decltype(cuMemAddressReserve)>("cuMemAddressReserve");
  decltype(&cuMemAddressFree) free =
      FindDriverFunction<decltype(cuMemAddressFree)>("cuMemAddressFree");
  decltype(&cuMemCreate) create = FindDriverFunction<decltype(cuMemCreate)>("cuMemCreate");
  decltype(&cuMemRelease) release = FindDriverFunction<decltype(cuMemRelease)>("cuMemRelease");
  decltype(&cuMemMap) map = FindDriverFunction<decltype(cuMemMap)>("cuMemMap");
  decltype(&cuMemUnmap) unmap = FindDriverFunction<decltype(cuMemUnmap)>("cuMemUnmap");
  decltype(&cuMemSetAccess) set_access =
      FindDriverFunction<decltype(cuMemSetAccess)>("cuMemSetAccess");
};

void Check(CUresult result, const char* what, int64_t bytes) {
  TORCH_CHECK_WITH(OutOfMemoryError, result != CUDA_ERROR_OUT_OF_MEMORY, "no ", bytes,
                   " bytes of GPU memory are free for gradients");
  TORCH_CHECK(result == CUDA_SUCCESS, what, " of ", bytes,
              " bytes for gradients: CUDA driver error ", static_cast<int>(result));
}

class CudaMapping {
 public:
  CudaMapping(at::Device device, int64_t own, int64_t ring, int64_t bytes)
      : device_(device), size_(own + (bytes - own + ring - 1) / ring * ring) {
    try {
      Map(own, ring);
    } catch (...) {
      Free();
      throw;
    }
  }
  ~CudaMapping() { Free(); }
  CudaMapping(const CudaMapping&) = delete;
  CudaMapping& operator=(const CudaMapping&) = delete;

  void* data() const { return reinterpret_cast<void*>(base_); }

 private:
  struct Mapped {
    CUdeviceptr at;
    int64_t bytes;
  };

  void Map(int64_t own, int64_t ring) {
    const c10::cuda::CUDAGuard guard(device_);
    C10_CUDA_CHECK(cudaFree(nullptr));              // the device's context is there
    c10::cuda::CUDACachingAllocator::emptyCache();  // what torch keeps for later
    CUmemAllocationProp kind = {};
    kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    kind.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_.index()};
    size_t unit = 0;
    Check(driver_.granularity(&unit, &kind, CU_MEM_ALLOC_GRANULARITY_MINIMUM), "the granularity",
          size_);
    TORCH_CHECK(unit > 0 && kCudaWindowUnit % unit == 0, "memory is mapped in units of ", unit);
    Check(driver_.reserve(&base_, size_, kCudaWindowUnit, 0, 0), "a range of addresses", size_);
    CUmemGenericAllocationHandle memory = 0;
    if (own > 0) {
      Allocate(own, kind, &memory);
      Put(base_, own, memory);
    }
    Allocate(ring, kind, &memory);
    for (int64_t at = own; at < size_; at += ring) Put(base_ + at, ring, memory);
    const CUmemAccessDesc access = {kind.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    Check(driver_.set_access(base_, size_, &access, 1), "access to memory", size_);
    C10_CUDA_CHECK(cudaMemset(data(), 0, own + ring));
  }

  void Allocate(int64_t bytes, const CUmemAllocationProp& kind,
                CUmemGenericAllocationHandle* memory) {
    Check(driver_.create(memory, bytes, &kind, 0), "memory", bytes);
    memory_.push_back(*memory);
  }

  void Put(CUdeviceptr at, int64_t bytes, CUmemGenericAllocationHandle memory) {
    Check(driver_.map(at, bytes, 0, memory, 0), "a mapping", bytes);
    mapped_.push_back({at, bytes});
  }

  void Free() {
    const c10::cuda::CUDAGuard guard(device_);
    // Nothing uses the memory any more. Not the whole device: a stream of collectives may wait for
    // a rank that is gone.
    C10_CUDA_CHECK_WARN(
        cudaStreamSynchronize(c10::cuda::getCurrentCUDAStream(device_.index()).stream()));
    for (const Mapped& range : mapped_) driver_.unmap(range.at, range.bytes);
    for (const CUmemGenericAllocationHandle memory : memory_) driver_.release(memory);
    if (base_ != 0) driver_.free(base_, size_);
  }

  const Driver driver_;
  const at::Device device_;
  const int64_t size_;
  CUdeviceptr base_ = 0;
  std::vector<CUmemGenericAllocationHandle> memory_;
  std::vector<Mapped> mapped_;
};

}  // namespace

at::Tensor MapCudaWindow(int64_t own, int64_t ring, int64_t elements, at::Device device) {
  const auto memory = std::make_shared<CudaMapping>(device, own, ring, elements * 4);
  return at::from_blob(
      memory->data(), {elements}, [memory](void*) {}, at::TensorOptions(device).dtype(at::kFloat),
      device);
}

}  // namespace tritonrl
