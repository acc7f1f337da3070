// The paged KV cache in GPU memory (paged_kv_layout.h), which sleep mode can release.

#ifndef TRITONRL_ROLLOUT_CUDA_CUDA_KV_CACHE_H_
#define TRITONRL_ROLLOUT_CUDA_CUDA_KV_CACHE_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <memory>

#include "model/cuda/common/virtual_memory.h"
#include "model/weights/model_config.h"
#include "rollout/cuda/attention/paged_kv_layout.h"

namespace tritonrl {

// GPU memory that can be released and allocated again at the same addresses. Torch's allocator does
// not manage it, but can use it while it is released. No GPU work may use it when the object is
// destroyed.
class MappedMemory {
 public:
  // Reserves addresses for at least `bytes` and maps memory. Throws c10::OutOfMemoryError if too
  // little memory is free, c10::Error if the driver cannot map memory.
  MappedMemory(int64_t bytes, at::Device device);

  void* data() const { return range_.data(); }
  int64_t bytes() const { return range_.bytes(); }  // rounded up to the mapping granularity
  bool held() const { return held_; }

  // Releases the memory; its contents are lost. No GPU work may use it until Map(): after an access
  // the process cannot use the GPU any more. Does nothing if not held. Throws c10::Error.
  void Unmap();
  // Allocates the memory again with undefined contents. Empties torch's caching allocator if
  // necessary. If it throws (c10::OutOfMemoryError), no memory is held. Does nothing if held.
  void Map();

 private:
  // Empties torch's caching allocator if there is no free memory.
  CudaVirtualMemory::Memory Allocate(int64_t chunk);

  CudaVirtualMemory range_;
  bool held_ = false;
};

// The KV cache: two pools for each layer, one for keys and one for values.
class CudaKvCache {
 public:
  // Bytes of a page: kPageTokens positions in all layers.
  static int64_t PageBytes(const ModelConfig& config, CacheType type = CacheType::kBFloat16);

  // Throws c10::Error if memory is short. The contents are undefined at first. can_sleep: the cache
  // uses MappedMemory instead of torch's allocator, and Sleep releases it.
  CudaKvCache(const ModelConfig& config, int64_t pages, at::Device device, bool can_sleep = false,
              CacheType type = CacheType::kBFloat16);

  int64_t pages() const { return pages_; }
  void* keys(int64_t layer) const { return Pool(2 * layer); }
  void* values(int64_t layer) const { return Pool(2 * layer + 1); }

  // Release the memory of a can_sleep cache and allocate it again at the same addresses; see
  // MappedMemory. Without can_sleep they do nothing.
  void Sleep();
  void Wake();
  bool asleep() const { return mapped_ != nullptr && !mapped_->held(); }

  // Copies page pairs[2 i] to page pairs[2 i + 1] in all layers for i < `count`, on the current
  // stream; `pairs` is in GPU memory. See LaunchCopyPages.
  void Copy(const int32_t* pairs, int count);

 private:
  void* Pool(int64_t i) const { return base_ + i * pages_ * page_bytes_; }

  const int64_t pages_, layers_;
  const int64_t page_bytes_;  // of one pool
  at::Tensor memory_;         // all pools; with can_sleep they are in mapped_ instead
  std::unique_ptr<MappedMemory> mapped_;
  uint8_t* base_ = nullptr;  // address of memory_ or mapped_
  at::Tensor pools_;         // [2 layers] addresses of the pools, on the GPU
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_CUDA_KV_CACHE_H_
