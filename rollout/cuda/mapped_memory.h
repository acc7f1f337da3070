// A GPU's memory that can be given back and taken again while its addresses stay.
#ifndef TRITONRL_ROLLOUT_CUDA_MAPPED_MEMORY_H_
#define TRITONRL_ROLLOUT_CUDA_MAPPED_MEMORY_H_

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>

namespace tritonrl {

// Addresses that are reserved for an object's life, with memory behind them while it is held. By
// CUDA's virtual memory: torch's allocator knows nothing of it, and finds what is given back free.
class MappedMemory {
 public:
  // Reserves addresses for at least `bytes` and takes the memory. Throws c10::OutOfMemoryError if
  // it is not free, c10::Error if the driver cannot map memory.
  MappedMemory(int64_t bytes, at::Device device);
  // Nothing on the GPU may use it any more.
  ~MappedMemory();
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;

  void* data() const;
  int64_t bytes() const;  // rounded up to what is mapped
  bool held() const;

  // Gives the memory back; what it held is lost. What reads or writes it meanwhile fails and takes
  // the process's GPU with it, so nothing that does may be under way. Does nothing if not held.
  // Throws c10::Error.
  void Release();
  // Takes as much again, with no telling what is in it. What torch's allocator keeps for later it
  // has to give back, if there is not enough otherwise. Throws c10::OutOfMemoryError, and holds
  // nothing then. Does nothing if held.
  void Take();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_MAPPED_MEMORY_H_
