#include "model/cpu/buffer_pool.h"

#include <ATen/ops/from_blob.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace tritonrl {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

// Rounds `bytes` up to one of eight size classes per power of two, so that batches of slightly
// different sizes reuse each other's blocks.
size_t SizeClass(size_t bytes) {
  size_t step = 64;
  while (step * 16 < bytes) step *= 2;
  return (bytes + step - 1) / step * step;
}

}  // namespace

BufferPool::~BufferPool() {
  for (auto& [size, blocks] : idle_) {
    for (void* block : blocks) std::free(block);
  }
}

size_t BufferPool::idle_bytes() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return idle_bytes_;
}

size_t BufferPool::taken_bytes() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return taken_bytes_;
}

size_t BufferPool::peak_bytes() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return peak_bytes_;
}

void BufferPool::ResetPeak() {
  std::lock_guard<std::mutex> lock(mutex_);
  peak_bytes_ = taken_bytes_;
}

void* BufferPool::Take(size_t bytes) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = idle_.find(bytes);
    if (found != idle_.end() && !found->second.empty()) {
      void* data = found->second.back();
      found->second.pop_back();
      idle_bytes_ -= bytes;
      return data;
    }
  }
  const size_t alignment = bytes >= kHugePage ? kHugePage : 64;
  void* data = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (data == nullptr) throw std::bad_alloc();
  if (bytes >= kHugePage) madvise(data, bytes, MADV_HUGEPAGE);  // only advice: may fail
  return data;
}

void BufferPool::GiveBack(void* data, size_t bytes) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    taken_bytes_ -= bytes;
    if (idle_bytes_ + bytes <= max_idle_bytes_) {
      idle_[bytes].push_back(data);
      idle_bytes_ += bytes;
      return;
    }
  }
  std::free(data);
}

at::Tensor BufferPool::Empty(at::IntArrayRef shape, at::ScalarType dtype) {
  size_t bytes = c10::elementSize(dtype);
  for (int64_t size : shape) bytes *= static_cast<size_t>(size);
  bytes = SizeClass(bytes == 0 ? 64 : bytes);
  void* data = Take(bytes);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    taken_bytes_ += bytes;
    peak_bytes_ = std::max(peak_bytes_, taken_bytes_);
  }
  return at::from_blob(
      data, shape,
      [pool = shared_from_this(), bytes](void* block) { pool->GiveBack(block, bytes); },
      at::TensorOptions(dtype));
}

}  // namespace tritonrl
