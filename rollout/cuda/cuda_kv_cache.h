#ifndef TRITONRL_ROLLOUT_CUDA_CUDA_KV_CACHE_H_
#define TRITONRL_ROLLOUT_CUDA_CUDA_KV_CACHE_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <memory>

#include "model/cuda/common/virtual_memory.h"
#include "model/weights/model_config.h"
#include "rollout/cuda/attention/paged_kv_layout.h"

// A GPU's memory that can be given back and taken again while its addresses stay.
//
// The paged cache in a GPU's memory (paged_kv_layout.h): two pools for each layer.

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
  void Unmap();
  // Takes as much again, with no telling what is in it. What torch's allocator keeps for later it
  // has to give back, if there is not enough otherwise. Throws c10::OutOfMemoryError, and holds
  // nothing then. Does nothing if held.
  void Map();

 private:
  // Also what torch's allocator keeps for later, if nothing else is free.
  CudaVirtualMemory::Memory Allocate(int64_t chunk);

  CudaVirtualMemory range_;
  bool held_ = false;
};

class CudaKvCache {
 public:
  // Bytes of a page: kPageTokens positions in all layers.
  static int64_t PageBytes(const ModelConfig& config, CacheType type = CacheType::kBFloat16);

  // Throws c10::Error without the memory. What pages hold at first is not defined. can_sleep: the
  // memory is not torch's, and Release gives it back.
  CudaKvCache(const ModelConfig& config, int64_t pages, at::Device device, bool can_sleep = false,
              CacheType type = CacheType::kBFloat16);

  int64_t pages() const { return pages_; }
  void* keys(int64_t layer) const { return Pool(2 * layer); }
  void* values(int64_t layer) const { return Pool(2 * layer + 1); }

  // Gives back the memory of a can_sleep cache, and takes it again at the same addresses; see
  // MappedMemory. One that is not can_sleep keeps it.
  void Sleep();
  void Wake();
  bool asleep() const { return mapped_ != nullptr && !mapped_->held(); }

  // Page pairs[2 i + 1] becomes a copy of page pairs[2 i] in all layers, i below `count`, on the
  // current stream; `pairs` in GPU memory. See LaunchCopyPages.
  void Copy(const int32_t* pairs, int count);

 private:
  void* Pool(int64_t i) const { return base_ + i * pages_ * page_bytes_; }

  const int64_t pages_, layers_;
  const int64_t page_bytes_;  // of one pool
  at::Tensor memory_;         // all pools; if can_sleep, these instead:
  std::unique_ptr<MappedMemory> mapped_;
  uint8_t* base_ = nullptr;  // of either
  at::Tensor pools_;         // [2 layers] their addresses, on the GPU
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_CUDA_KV_CACHE_H_
