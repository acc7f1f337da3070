#include "rollout/cuda/cuda_kv_cache.h"

#include <ATen/ops/empty.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <optional>

#include "rollout/cuda/step_kernels.h"

namespace tritonrl {
namespace {

// Bytes of one allocation. The driver takes the same time for an allocation of any size, and a
// cache can have a hundred allocations.
constexpr int64_t kChunk = int64_t{1} << 30;

int64_t RoundedUp(int64_t bytes) {
  return std::max<int64_t>(1, (bytes + kMappingGranularity - 1) / kMappingGranularity) *
         kMappingGranularity;
}

}  // namespace

MappedMemory::MappedMemory(int64_t bytes, at::Device device) : range_(RoundedUp(bytes), device) {
  Map();
}

void MappedMemory::Unmap() {
  held_ = false;
  range_.Unmap();
}

void MappedMemory::Map() {
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

CudaVirtualMemory::Memory MappedMemory::Allocate(int64_t chunk) {
  std::optional<CudaVirtualMemory::Memory> memory = range_.Allocate(chunk);
  if (!memory.has_value()) {
    c10::cuda::CUDACachingAllocator::emptyCache();
    memory = range_.Allocate(chunk);
  }
  TORCH_CHECK_WITH(OutOfMemoryError, memory.has_value(), "no ", bytes(),
                   " bytes of GPU memory are free");
  return *memory;
}

namespace {

int64_t PoolPageBytes(const ModelConfig& config, CacheType type) {
  return CacheHeads{.key_heads = static_cast<int>(config.num_kv_heads),
                    .head_dim = static_cast<int>(config.head_dim),
                    .type = type}
      .PageBytes();
}

}  // namespace

int64_t CudaKvCache::PageBytes(const ModelConfig& config, CacheType type) {
  return 2 * config.num_layers * PoolPageBytes(config, type);
}

CudaKvCache::CudaKvCache(const ModelConfig& config, int64_t pages, at::Device device,
                         bool can_sleep, CacheType type)
    : pages_(pages), layers_(config.num_layers), page_bytes_(PoolPageBytes(config, type)) {
  const at::TensorOptions bytes = at::TensorOptions(device).dtype(at::kByte);
  const int64_t all = 2 * layers_ * pages_ * page_bytes_;
  if (can_sleep) {
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

void CudaKvCache::Sleep() {
  if (mapped_ != nullptr) mapped_->Unmap();
}

void CudaKvCache::Wake() {
  if (mapped_ != nullptr) mapped_->Map();
}

void CudaKvCache::Copy(const int32_t* pairs, int count) {
  LaunchCopyPages({.pools_count = static_cast<int>(2 * layers_),
                   .pools = reinterpret_cast<void* const*>(pools_.const_data_ptr<int64_t>()),
                   .page_bytes = page_bytes_,
                   .pairs_count = count,
                   .pairs = pairs,
                   .stream = c10::cuda::getCurrentCUDAStream().stream()});
}

}  // namespace tritonrl
