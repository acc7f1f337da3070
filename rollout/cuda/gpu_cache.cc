#include "rollout/cuda/gpu_cache.h"

#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAStream.h>

#include "rollout/cuda/step_kernels.h"

namespace tritonrl {
namespace {

int64_t PoolPageBytes(const ModelConfig& config, CacheType type) {
  return CacheHeads{.key_heads = static_cast<int>(config.num_kv_heads),
                    .head_dim = static_cast<int>(config.head_dim),
                    .type = type}
      .PageBytes();
}

}  // namespace

int64_t GpuCache::PageBytes(const ModelConfig& config, CacheType type) {
  return 2 * config.num_layers * PoolPageBytes(config, type);
}

GpuCache::GpuCache(const ModelConfig& config, int64_t pages, at::Device device, bool releasable,
                   CacheType type)
    : pages_(pages), layers_(config.num_layers), page_bytes_(PoolPageBytes(config, type)) {
  const at::TensorOptions bytes = at::TensorOptions(device).dtype(at::kByte);
  const int64_t all = 2 * layers_ * pages_ * page_bytes_;
  if (releasable) {
    mapped_ = std::make_unique<MappedMemory>(all, device);
    base_ = static_cast<uint8_t*>(mapped_->data());
  } else {
    memory_ = at::empty({all}, bytes);
    base_ = memory_.data_ptr<uint8_t>();
  }
  at::Tensor pools = at::empty({2 * layers_}, at::kLong);
  for (int64_t i = 0; i < 2 * layers_; ++i) {
    pools.data_ptr<int64_t>()[i] = reinterpret_cast<int64_t>(Pool(i));
  }
  pools_ = pools.to(device);
}

void GpuCache::Release() {
  if (mapped_ != nullptr) mapped_->Release();
}

void GpuCache::Take() {
  if (mapped_ != nullptr) mapped_->Take();
}

void GpuCache::Copy(const int32_t* pairs, int count) {
  LaunchCopyPages({.pools_count = static_cast<int>(2 * layers_),
                   .pools = reinterpret_cast<void* const*>(pools_.const_data_ptr<int64_t>()),
                   .page_bytes = page_bytes_,
                   .pairs_count = count,
                   .pairs = pairs,
                   .stream = c10::cuda::getCurrentCUDAStream().stream()});
}

}  // namespace tritonrl
