// Paged KV cache on tensors: the keys and values of running sequences.

#ifndef TRITONRL_MODEL_PAGED_CACHE_H_
#define TRITONRL_MODEL_PAGED_CACHE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "model/cpu/kernels.h"
#include "model/weights/model_config.h"

namespace tritonrl {

// A page holds kPageSize positions of one sequence in all layers; position p of a sequence is in
// its page p / kPageSize. The caller assigns pages to sequences.
class PagedKvCache {
 public:
  static constexpr int64_t kPageSize = kKvPageSize;  // that of the CPU kernels, on all devices

  // Number of pages that a sequence of `length` positions needs.
  static constexpr int64_t NumPages(int64_t length) { return (length + kPageSize - 1) / kPageSize; }
  // Bytes of one page: keys and values of all layers.
  static int64_t PageBytes(const ModelConfig& config, at::ScalarType dtype);

  // Allocates pages of zeros. On the CPU the system provides memory when a page is first written.
  // Throws c10::Error or std::bad_alloc if memory is short.
  PagedKvCache(const ModelConfig& config, int64_t num_pages, at::Device device,
               at::ScalarType dtype);

  int64_t num_pages() const { return num_pages_; }

  // Keys of one layer, [pages, kv_heads, head_dim, kPageSize]. Positions are innermost, so that the
  // scores of one query are computed as a vector.
  const at::Tensor& keys(int64_t layer) const { return keys_[layer]; }
  // Values of one layer, [pages, kv_heads, kPageSize, head_dim].
  const at::Tensor& values(int64_t layer) const { return values_[layer]; }

  // Writes T positions through ATen: row t to position offsets[t] of page pages[t]. pages, offsets:
  // [T] int64 on the cache's device; keys, values: [T, kv_heads, head_dim].
  void Store(int64_t layer, const at::Tensor& pages, const at::Tensor& offsets,
             const at::Tensor& keys, const at::Tensor& values);
  // Read the pages of B sequences through ATen; pages: [B, P] int64. Keys are returned as [B,
  // kv_heads, head_dim, P * kPageSize], values as [B, kv_heads, P * kPageSize, head_dim].
  at::Tensor GatherKeys(int64_t layer, const at::Tensor& pages) const;
  at::Tensor GatherValues(int64_t layer, const at::Tensor& pages) const;

  // Copies a whole page in all layers. Throws c10::Error for a page outside the cache.
  void CopyPage(int64_t from, int64_t to);

 private:
  int64_t num_pages_;
  std::vector<at::Tensor> keys_;
  std::vector<at::Tensor> values_;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_PAGED_CACHE_H_
