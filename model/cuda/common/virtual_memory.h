// CUDA's virtual memory: address ranges of a GPU and the physical memory mapped to them, outside
// torch's allocator.

#ifndef TRITONRL_MODEL_CUDA_COMMON_VIRTUAL_MEMORY_H_
#define TRITONRL_MODEL_CUDA_COMMON_VIRTUAL_MEMORY_H_

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <optional>

namespace tritonrl {

// Allocations and mappings are multiples of this many bytes; checked against the driver's value.
inline constexpr int64_t kMappingGranularity = int64_t{2} << 20;

// An address range, reserved for the object's life, to which memory can be mapped. All calls throw
// c10::Error if the driver refuses, c10::OutOfMemoryError if memory is missing.
class CudaVirtualMemory {
 public:
  // The driver's handle of an allocation.
  using Memory = unsigned long long;

  // `bytes` in whole multiples of kMappingGranularity.
  CudaVirtualMemory(int64_t bytes, at::Device device);
  // Nothing on the GPU may use the memory any more.
  ~CudaVirtualMemory();
  CudaVirtualMemory(const CudaVirtualMemory&) = delete;
  CudaVirtualMemory& operator=(const CudaVirtualMemory&) = delete;

  void* data() const;
  int64_t bytes() const { return bytes_; }

  // Allocates `bytes`, which this object owns until Unmap; nullopt if they are not free.
  std::optional<Memory> Allocate(int64_t bytes);
  // Maps a whole allocation of `bytes` to the addresses from `offset` on. One allocation may be
  // mapped several times.
  void Map(int64_t offset, int64_t bytes, Memory memory);
  // Lets kernels read and write the whole range, all of which must be mapped.
  void Open();
  // Unmaps and frees all memory; frees what it can before it throws the first error.
  void Unmap();

 private:
  struct Impl;

  const int64_t bytes_;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_COMMON_VIRTUAL_MEMORY_H_
