// Keys and values of running sequences, in pages.

#ifndef TRITONRL_MODEL_PAGED_CACHE_H_
#define TRITONRL_MODEL_PAGED_CACHE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "model/cpu/kernels.h"
#include "model/weights/model_config.h"

namespace tritonrl {

// Which pages hold what is the caller's bookkeeping: a page is plain memory of kPageSize positions
// of one sequence, in all layers, and position p of a sequence lies in its page p / kPageSize.
class PagedKvCache {
 public:
  static constexpr int64_t kPageSize = kKvPageSize;  // those of the CPU's kernels, on all devices

  // Pages of a sequence of `length` positions.
  static constexpr int64_t NumPages(int64_t length) { return (length + kPageSize - 1) / kPageSize; }
  // Bytes of one page, keys and values of all layers.
  static int64_t PageBytes(const ModelConfig& config, at::ScalarType dtype);

  // All zero. On the CPU memory is taken when a page is first written.
  PagedKvCache(const ModelConfig& config, int64_t num_pages, at::Device device,
               at::ScalarType dtype);

  int64_t num_pages() const { return num_pages_; }

  // Of one layer. The positions of a page are innermost in keys, so that a query's scores with them
  // are computed side by side: [pages, kv_heads, head_dim, kPageSize]
  const at::Tensor& keys(int64_t layer) const { return keys_[layer]; }
  // [pages, kv_heads, kPageSize, head_dim]
  const at::Tensor& values(int64_t layer) const { return values_[layer]; }

  // Writes T positions through ATen: row t goes to place offsets[t] of page pages[t] (both [T]
  // int64 on the cache's device). keys, values: [T, kv_heads, head_dim].
  void Store(int64_t layer, const at::Tensor& pages, const at::Tensor& offsets,
             const at::Tensor& keys, const at::Tensor& values);
  // Reads through ATen the pages of B sequences, pages [B, P] int64, as
  // keys [B, kv_heads, head_dim, P * kPageSize] and values [B, kv_heads, P * kPageSize, head_dim].
  at::Tensor GatherKeys(int64_t layer, const at::Tensor& pages) const;
  at::Tensor GatherValues(int64_t layer, const at::Tensor& pages) const;

  // Copies a whole page in all layers.
  void CopyPage(int64_t from, int64_t to);

 private:
  int64_t num_pages_;
  std::vector<at::Tensor> keys_;
  std::vector<at::Tensor> values_;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_PAGED_CACHE_H_
