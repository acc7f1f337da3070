#include "rollout/cuda/mapped_memory.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/util/Exception.h>
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <vector>

#include "model/cuda/driver.h"

namespace tritonrl {
namespace {

// Bytes of one allocation: each takes the driver some time whatever its size, and a cache can have
// a hundred of them.
constexpr int64_t kChunk = int64_t{1} << 30;
// Of which all allocations are multiples; checked against what the driver says.
constexpr int64_t kUnit = int64_t{2} << 20;

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
  TORCH_CHECK(result == CUDA_SUCCESS, what, " of ", bytes,
              " bytes of GPU memory: CUDA driver error ", static_cast<int>(result));
}

int64_t RoundedUp(int64_t bytes) {
  return std::max<int64_t>(1, (bytes + kUnit - 1) / kUnit) * kUnit;
}

}  // namespace

struct MappedMemory::Impl {
  Impl(int64_t wanted, at::Device device) : device(device), bytes(RoundedUp(wanted)) {}

  int64_t ChunkBytes(size_t i) const {
    return std::min(kChunk, bytes - static_cast<int64_t>(i) * kChunk);
  }
  CUdeviceptr ChunkAt(size_t i) const { return base + i * kChunk; }

  void Reserve() {
    const c10::cuda::CUDAGuard guard(device);
    C10_CUDA_CHECK(cudaFree(nullptr));  // the device's context is there
    kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    kind.location = {CU_MEM_LOCATION_TYPE_DEVICE, device.index()};
    size_t unit = 0;
    Check(driver.granularity(&unit, &kind, CU_MEM_ALLOC_GRANULARITY_MINIMUM), "the granularity",
          bytes);
    TORCH_CHECK(unit > 0 && kUnit % unit == 0, "memory is mapped in units of ", unit);
    Check(driver.reserve(&base, bytes, kUnit, 0, 0), "a range of addresses", bytes);
  }

  // The next chunk behind those that are mapped. False if there is no memory.
  bool MapNext() {
    const size_t i = chunks.size();
    CUmemGenericAllocationHandle memory = 0;
    const CUresult made = driver.create(&memory, ChunkBytes(i), &kind, 0);
    if (made == CUDA_ERROR_OUT_OF_MEMORY) return false;
    Check(made, "an allocation", ChunkBytes(i));
    const CUresult mapped = driver.map(ChunkAt(i), ChunkBytes(i), 0, memory, 0);
    if (mapped != CUDA_SUCCESS) driver.release(memory);
    Check(mapped, "a mapping", ChunkBytes(i));
    chunks.push_back(memory);
    return true;
  }

  void Map() {
    bool emptied = false;
    while (static_cast<int64_t>(chunks.size()) * kChunk < bytes) {
      if (MapNext()) continue;
      TORCH_CHECK_WITH(OutOfMemoryError, !emptied, "no ", bytes, " bytes of GPU memory are free");
      c10::cuda::CUDACachingAllocator::emptyCache();
      emptied = true;
    }
    const CUmemAccessDesc access = {kind.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    Check(driver.set_access(base, bytes, &access, 1), "access", bytes);
    held = true;
  }

  // The first error, after all has been tried.
  CUresult Unmap() {
    CUresult result = CUDA_SUCCESS;
    const auto keep = [&result](CUresult next) {
      if (result == CUDA_SUCCESS) result = next;
    };
    for (size_t i = 0; i < chunks.size(); ++i) {
      keep(driver.unmap(ChunkAt(i), ChunkBytes(i)));
      keep(driver.release(chunks[i]));
    }
    chunks.clear();
    held = false;
    return result;
  }

  const Driver driver;
  const at::Device device;
  const int64_t bytes;
  CUmemAllocationProp kind = {};
  CUdeviceptr base = 0;
  std::vector<CUmemGenericAllocationHandle> chunks;  // those that are mapped, in their order
  bool held = false;
};

MappedMemory::MappedMemory(int64_t bytes, at::Device device)
    : impl_(std::make_unique<Impl>(bytes, device)) {
  impl_->Reserve();
  try {
    Take();
  } catch (...) {
    impl_->driver.free(impl_->base, impl_->bytes);
    throw;
  }
}

MappedMemory::~MappedMemory() {
  const c10::cuda::CUDAGuard guard(impl_->device);
  impl_->Unmap();
  impl_->driver.free(impl_->base, impl_->bytes);
}

void* MappedMemory::data() const { return reinterpret_cast<void*>(impl_->base); }
int64_t MappedMemory::bytes() const { return impl_->bytes; }
bool MappedMemory::held() const { return impl_->held; }

void MappedMemory::Release() {
  const c10::cuda::CUDAGuard guard(impl_->device);
  Check(impl_->Unmap(), "giving back", impl_->bytes);
}

void MappedMemory::Take() {
  if (impl_->held) return;
  const c10::cuda::CUDAGuard guard(impl_->device);
  try {
    impl_->Map();
  } catch (...) {
    impl_->Unmap();
    throw;
  }
}

}  // namespace tritonrl
