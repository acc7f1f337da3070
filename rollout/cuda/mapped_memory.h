// A GPU's memory that can be given back and taken again while its addresses stay.
#ifndef TRITONRL_ROLLOUT_CUDA_MAPPED_MEMORY_H_
#define TRITONRL_ROLLOUT_CUDA_MAPPED_MEMORY_H_

#include <c10/core/Device.h>

#include <cstdint>

#include "model/cuda/address_range.h"

namespace tritonrl {

// Addresses that are reserved for an object's life, with memory behind them while it is held.
// Torch's allocator knows nothing of it, and finds what is given back free. Nothing on the GPU may
// use it any more when the object ends.
class MappedMemory {
 public:
  // Reserves addresses for at least `bytes` and takes the memory. Throws c10::OutOfMemoryError if
  // it is not free, c10::Error if the driver cannot map memory.
  MappedMemory(int64_t bytes, at::Device device);

  void* data() const { return range_.data(); }
  int64_t bytes() const { return range_.bytes(); }  // rounded up to what is mapped
  bool held() const { return held_; }

  // Gives the memory back; what it held is lost. What reads or writes it meanwhile fails and takes
  // the process's GPU with it, so nothing that does may be under way. Does nothing if not held.
  // Throws c10::Error.
  void Release();
  // Takes as much again, with no telling what is in it. What torch's allocator keeps for later it
  // has to give back, if there is not enough otherwise. Throws c10::OutOfMemoryError, and holds
  // nothing then. Does nothing if held.
  void Take();

 private:
  // Also what torch's allocator keeps for later, if nothing else is free.
  AddressRange::Memory Allocate(int64_t chunk);

  AddressRange range_;
  bool held_ = false;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_MAPPED_MEMORY_H_
