// The paged cache in a GPU's memory (paged_layout.h): two pools for each layer.
#ifndef TRITONRL_ROLLOUT_CUDA_GPU_CACHE_H_
#define TRITONRL_ROLLOUT_CUDA_GPU_CACHE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "model/config.h"
#include "rollout/cuda/mapped_memory.h"
#include "rollout/cuda/paged_layout.h"

namespace tritonrl {

class GpuCache {
 public:
  // Bytes of a page: kPageTokens positions in all layers.
  static int64_t PageBytes(const ModelConfig& config, CacheType type = CacheType::kBFloat16);

  // Throws c10::Error without the memory. What pages hold at first is not defined. releasable: the
  // memory is not torch's, and Release gives it back.
  GpuCache(const ModelConfig& config, int64_t pages, at::Device device, bool releasable = false,
           CacheType type = CacheType::kBFloat16);

  int64_t pages() const { return pages_; }
  void* keys(int64_t layer) const { return Pool(2 * layer); }
  void* values(int64_t layer) const { return Pool(2 * layer + 1); }

  // Gives back the memory of a releasable cache, and takes it again at the same addresses; see
  // MappedMemory. One that is not releasable keeps it.
  void Release();
  void Take();
  bool released() const { return mapped_ != nullptr && !mapped_->held(); }

  // Page pairs[2 i + 1] becomes a copy of page pairs[2 i] in all layers, i below `count`, on the
  // current stream; `pairs` in GPU memory. See LaunchCopyPages.
  void Copy(const int32_t* pairs, int count);

 private:
  void* Pool(int64_t i) const { return base_ + i * pages_ * page_bytes_; }

  const int64_t pages_, layers_;
  const int64_t page_bytes_;  // of one pool
  at::Tensor memory_;         // all pools; if releasable, these instead:
  std::unique_ptr<MappedMemory> mapped_;
  uint8_t* base_ = nullptr;  // of either
  at::Tensor pools_;         // [2 layers] their addresses, on the GPU
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_GPU_CACHE_H_
