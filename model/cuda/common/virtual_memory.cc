#include "model/cuda/common/virtual_memory.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/util/Exception.h>
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <type_traits>
#include <vector>

#include "model/cuda/common/driver.h"

namespace tritonrl {
namespace {

static_assert(std::is_same_v<CudaVirtualMemory::Memory, CUmemGenericAllocationHandle>);

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
  TORCH_CHECK_WITH(OutOfMemoryError, result != CUDA_ERROR_OUT_OF_MEMORY, what, " of ", bytes,
                   " bytes of GPU memory: it is not free");
  TORCH_CHECK(result == CUDA_SUCCESS, what, " of ", bytes,
              " bytes of GPU memory: CUDA driver error ", static_cast<int>(result));
}

}  // namespace

struct CudaVirtualMemory::Impl {
  struct Mapped {
    CUdeviceptr at;
    int64_t bytes;
  };

  // Unmaps and frees all memory, also after an error. Returns the first error.
  CUresult Unmap() {
    const c10::cuda::CUDAGuard guard(device);
    CUresult result = CUDA_SUCCESS;
    const auto keep = [&result](CUresult next) {
      if (result == CUDA_SUCCESS) result = next;
    };
    for (const Mapped& range : mapped) keep(driver.unmap(range.at, range.bytes));
    for (const Memory piece : memory) keep(driver.release(piece));
    mapped.clear();
    memory.clear();
    return result;
  }

  const at::Device device;
  const Driver driver = {};
  CUmemAllocationProp kind = {};
  CUdeviceptr base = 0;
  std::vector<Memory> memory = {};
  std::vector<Mapped> mapped = {};
};

CudaVirtualMemory::CudaVirtualMemory(int64_t bytes, at::Device device)
    : bytes_(bytes), impl_(new Impl{.device = device}) {
  const c10::cuda::CUDAGuard guard(device);
  C10_CUDA_CHECK(cudaFree(nullptr));  // creates the device's context, which the driver calls need
  impl_->kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  impl_->kind.location = {CU_MEM_LOCATION_TYPE_DEVICE, device.index()};
  size_t unit = 0;
  Check(impl_->driver.granularity(&unit, &impl_->kind, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
        "the granularity", bytes);
  TORCH_CHECK(unit > 0 && kMappingGranularity % unit == 0, "memory is mapped in units of ", unit);
  Check(impl_->driver.reserve(&impl_->base, bytes, kMappingGranularity, 0, 0),
        "a range of addresses", bytes);
}

CudaVirtualMemory::~CudaVirtualMemory() {
  const c10::cuda::CUDAGuard guard(impl_->device);
  impl_->Unmap();
  impl_->driver.free(impl_->base, bytes_);
}

void* CudaVirtualMemory::data() const { return reinterpret_cast<void*>(impl_->base); }

std::optional<CudaVirtualMemory::Memory> CudaVirtualMemory::Allocate(int64_t bytes) {
  const c10::cuda::CUDAGuard guard(impl_->device);
  Memory piece = 0;
  const CUresult made = impl_->driver.create(&piece, bytes, &impl_->kind, 0);
  if (made == CUDA_ERROR_OUT_OF_MEMORY) return std::nullopt;
  Check(made, "an allocation", bytes);
  impl_->memory.push_back(piece);
  return piece;
}

void CudaVirtualMemory::Map(int64_t offset, int64_t bytes, Memory memory) {
  const c10::cuda::CUDAGuard guard(impl_->device);
  const CUdeviceptr at = impl_->base + offset;
  Check(impl_->driver.map(at, bytes, 0, memory, 0), "a mapping", bytes);
  impl_->mapped.push_back({at, bytes});
}

void CudaVirtualMemory::Open() {
  const c10::cuda::CUDAGuard guard(impl_->device);
  const CUmemAccessDesc access = {impl_->kind.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  Check(impl_->driver.set_access(impl_->base, bytes_, &access, 1), "access", bytes_);
}

void CudaVirtualMemory::Unmap() { Check(impl_->Unmap(), "giving back", bytes_); }

}  // namespace tritonrl
