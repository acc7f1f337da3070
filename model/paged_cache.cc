#include "model/paged_cache.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace tritonrl {
namespace {

// Returns zeros aligned to 64 bytes. The system provides the memory at the first access.
at::Tensor UntouchedZeros(at::IntArrayRef shape, at::ScalarType dtype) {
  size_t bytes = c10::elementSize(dtype);
  for (int64_t size : shape) {
    if (__builtin_mul_overflow(bytes, static_cast<size_t>(size), &bytes)) throw std::bad_alloc();
  }
  size_t room = bytes + 64;
  void* memory = room > bytes ? std::calloc(room, 1) : nullptr;
  if (memory == nullptr) throw std::bad_alloc();
  void* aligned = memory;
  std::align(64, bytes, aligned, room);
  return at::from_blob(
      aligned, shape, [memory](void*) { std::free(memory); },
      at::TensorOptions(dtype).device(at::kCPU));
}

at::Tensor Zeros(at::IntArrayRef shape, at::Device device, at::ScalarType dtype) {
  if (device.is_cpu()) return UntouchedZeros(shape, dtype);
  return at::zeros(shape, at::TensorOptions(dtype).device(device));
}

}  // namespace

int64_t PagedKvCache::PageBytes(const ModelConfig& config, at::ScalarType dtype) {
  return 2 * config.num_layers * config.kv_size() * kPageSize *
         static_cast<int64_t>(c10::elementSize(dtype));
}

PagedKvCache::PagedKvCache(const ModelConfig& config, int64_t num_pages, at::Device device,
                           at::ScalarType dtype)
    : num_pages_(num_pages) {
  const int64_t heads = config.num_kv_heads, dim = config.head_dim;
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    keys_.push_back(Zeros({num_pages, heads, dim, kPageSize}, device, dtype));
    values_.push_back(Zeros({num_pages, heads, kPageSize, dim}, device, dtype));
  }
}

void PagedKvCache::Store(int64_t layer, const at::Tensor& pages, const at::Tensor& offsets,
                         const at::Tensor& keys, const at::Tensor& values) {
  // In these views positions come before heads, so that one write covers all rows.
  keys_[layer].permute({0, 3, 1, 2}).index_put_({pages, offsets}, keys);
  values_[layer].permute({0, 2, 1, 3}).index_put_({pages, offsets}, values);
}

at::Tensor PagedKvCache::GatherKeys(int64_t layer, const at::Tensor& pages) const {
  return keys_[layer]
      .index_select(0, pages.flatten())
      .unflatten(0, pages.sizes())  // [B, P, K, D, kPageSize]
      .permute({0, 2, 3, 1, 4})
      .flatten(3, 4);
}

at::Tensor PagedKvCache::GatherValues(int64_t layer, const at::Tensor& pages) const {
  return values_[layer]
      .index_select(0, pages.flatten())
      .unflatten(0, pages.sizes())  // [B, P, K, kPageSize, D]
      .permute({0, 2, 1, 3, 4})
      .flatten(2, 3);
}

void PagedKvCache::CopyPage(int64_t from, int64_t to) {
  TORCH_CHECK(from >= 0 && from < num_pages_ && to >= 0 && to < num_pages_, "page ", from,
              " or page ", to, " is not among the cache's ", num_pages_);
  for (std::vector<at::Tensor>* tensors : {&keys_, &values_}) {
    for (at::Tensor& pages : *tensors) {
      if (!pages.is_cpu()) {
        pages.select(0, to).copy_(pages.select(0, from));
        continue;
      }
      char* data = static_cast<char*>(pages.data_ptr());
      const int64_t bytes = pages.stride(0) * static_cast<int64_t>(pages.element_size());
      std::memcpy(data + to * bytes, data + from * bytes, bytes);
    }
  }
}

}  // namespace tritonrl
