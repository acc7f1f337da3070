#include "rollout/cuda/mapped_memory.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <optional>

namespace tritonrl {
namespace {

// Bytes of one allocation: each takes the driver some time whatever its size, and a cache can have
// a hundred of them.
constexpr int64_t kChunk = int64_t{1} << 30;

int64_t RoundedUp(int64_t bytes) {
  return std::max<int64_t>(1, (bytes + kMappedUnit - 1) / kMappedUnit) * kMappedUnit;
}

}  // namespace

MappedMemory::MappedMemory(int64_t bytes, at::Device device) : range_(RoundedUp(bytes), device) {
  Take();
}

void MappedMemory::Release() {
  held_ = false;
  range_.Unmap();
}

void MappedMemory::Take() {
  if (held_) return;
  try {
    for (int64_t at = 0; at < bytes(); at += kChunk) {
      const int64_t chunk = std::min(kChunk, bytes() - at);
      range_.Map(at, chunk, Allocate(chunk));
    }
    range_.Open();
  } catch (...) {
    range_.Unmap();
    throw;
  }
  held_ = true;
}

AddressRange::Memory MappedMemory::Allocate(int64_t chunk) {
  std::optional<AddressRange::Memory> memory = range_.Allocate(chunk);
  if (!memory.has_value()) {
    c10::cuda::CUDACachingAllocator::emptyCache();
    memory = range_.Allocate(chunk);
  }
  TORCH_CHECK_WITH(OutOfMemoryError, memory.has_value(), "no ", bytes(),
                   " bytes of GPU memory are free");
  return *memory;
}

}  // namespace tritonrl
