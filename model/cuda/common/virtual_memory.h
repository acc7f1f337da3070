// CUDA's virtual memory management: reserves address ranges of a GPU and maps physical memory to
// them, outside torch's allocator.

#ifndef TRITONRL_MODEL_CUDA_COMMON_VIRTUAL_MEMORY_H_
#define TRITONRL_MODEL_CUDA_COMMON_VIRTUAL_MEMORY_H_

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <optional>

namespace tritonrl {

// Allocations and mappings are multiples of this number of bytes. The constructor of
// CudaVirtualMemory checks that the driver supports it.
inline constexpr int64_t kMappingGranularity = int64_t{2} << 20;

// An address range to which memory can be mapped; it stays reserved for the object's lifetime. All
// calls throw c10::Error if the driver reports an error, and c10::OutOfMemoryError if GPU memory is
// exhausted.
class CudaVirtualMemory {
 public:
  // The driver's handle of an allocation.
  using Memory = unsigned long long;

  // Reserves a range of `bytes` bytes, a multiple of kMappingGranularity.
  CudaVirtualMemory(int64_t bytes, at::Device device);
  // Frees memory and range. No GPU work that uses the memory may be in flight.
  ~CudaVirtualMemory();
  CudaVirtualMemory(const CudaVirtualMemory&) = delete;
  CudaVirtualMemory& operator=(const CudaVirtualMemory&) = delete;

  void* data() const;
  int64_t bytes() const { return bytes_; }

  // Allocates `bytes` of GPU memory, which this object owns until Unmap. Returns nullopt if the GPU
  // lacks the free memory.
  std::optional<Memory> Allocate(int64_t bytes);
  // Maps a whole allocation of `bytes` at `offset` bytes from the start of the range. One
  // allocation may be mapped several times.
  void Map(int64_t offset, int64_t bytes, Memory memory);
  // Gives kernels read and write access to the whole range, all of which must be mapped.
  void Open();
  // Unmaps and frees all memory. After an error it continues with the rest, then throws the first
  // error.
  void Unmap();

 private:
  struct Impl;

  const int64_t bytes_;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_COMMON_VIRTUAL_MEMORY_H_
