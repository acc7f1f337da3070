// A GPU's addresses and the memory behind them, apart from each other: CUDA's virtual memory, of
// which torch's allocator knows nothing.
#ifndef TRITONRL_MODEL_CUDA_COMMON_VIRTUAL_MEMORY_H_
#define TRITONRL_MODEL_CUDA_COMMON_VIRTUAL_MEMORY_H_

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <optional>

namespace tritonrl {

// Bytes of which all that is allocated and mapped is a multiple; checked against what the driver
// says.
inline constexpr int64_t kMappingGranularity = int64_t{2} << 20;

// Addresses that are reserved for the object's life, with memory behind those that are mapped. All
// calls throw c10::Error if the driver refuses, c10::OutOfMemoryError if for want of memory.
class CudaVirtualMemory {
 public:
  // The driver's name of a piece of memory.
  using Memory = unsigned long long;

  // `bytes` in whole multiples of kMappingGranularity.
  CudaVirtualMemory(int64_t bytes, at::Device device);
  // Nothing on the GPU may use the memory any more.
  ~CudaVirtualMemory();
  CudaVirtualMemory(const CudaVirtualMemory&) = delete;
  CudaVirtualMemory& operator=(const CudaVirtualMemory&) = delete;

  void* data() const;
  int64_t bytes() const { return bytes_; }

  // Takes so many bytes, which are this object's until Unmap; nullopt if they are not free.
  std::optional<Memory> Allocate(int64_t bytes);
  // Puts all of a piece, `bytes` long, behind the addresses from `offset` on. One piece may lie
  // behind several of them.
  void Map(int64_t offset, int64_t bytes, Memory memory);
  // Lets kernels read and write all addresses. Each must have memory.
  void Open();
  // Takes all memory away from behind the addresses and gives it back, all that can be before the
  // first error is thrown.
  void Unmap();

 private:
  struct Impl;

  const int64_t bytes_;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_COMMON_VIRTUAL_MEMORY_H_
