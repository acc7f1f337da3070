// A paged cache of random sequences on a GPU, and reference attention over them in fp64.
#ifndef TRITONRL_ROLLOUT_CUDA_TESTING_PAGED_CACHE_FIXTURE_H_
#define TRITONRL_ROLLOUT_CUDA_TESTING_PAGED_CACHE_FIXTURE_H_

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "rollout/cuda/attention/paged_attention.h"
#include "rollout/cuda/testing/device_fixture.h"

namespace tritonrl {

inline constexpr int64_t kMaxTokens = 5120;
inline constexpr int64_t kTablePages = kMaxTokens / kPageTokens;  // pages of a sequence
inline constexpr int kSlots = 44;
inline constexpr double kTolerance = 0.006;  // relative; rounding the result to bf16 takes 0.002

inline std::string Name(const CacheHeads& shape) {
  return absl::StrCat(shape.query_heads, " heads of ", shape.head_dim,
                      shape.type == CacheType::kE4M3 ? " in 8 bits" : "");
}

class PagedCacheTest : public DeviceTest {
 protected:
  // Makes pools with the pages of kSlots sequences of kMaxTokens tokens in random order. The rest
  // of the pools is NaN, so that reading it shows in the results.
  void MakeCache(const CacheHeads& shape) {
    shape_ = shape;
    const int64_t pages = kSlots * kTablePages + 50;
    std::vector<int32_t> order(pages);
    std::iota(order.begin(), order.end(), 0);
    Philox(1).Shuffle(&order);
    order.resize(kSlots * kTablePages);
    table_ = Ints(order);
    pools_[0] = Empty({pages * kPageTokens, shape.key_heads, shape.head_dim}, at::kBFloat16);
    pools_[1] = at::empty_like(pools_[0]);
    for (at::Tensor& pool : pools_) {
      pool.normal_();
      at::Tensor used = at::zeros({pages}, table_.options().dtype(at::kBool));
      used.index_fill_(0, table_.to(at::kLong), 1);
      pool.view({pages, -1}).masked_fill_(used.logical_not().unsqueeze(1), std::nan(""));
    }
    Store();
  }

  // Sets stored_, the pools as the kernels read them. With FP8, pools_ is rounded to FP8 too.
  void Store() {
    for (int i = 0; i < 2; ++i) {
      const bool fp8 = shape_.type == CacheType::kE4M3;
      stored_[i] = fp8 ? pools_[i].to(at::kFloat8_e4m3fn) : pools_[i];
      if (fp8) pools_[i] = stored_[i].to(at::kBFloat16);
    }
  }

  PagedKeysValues Cache() const {
    return {stored_[0].const_data_ptr(), stored_[1].const_data_ptr(),
            table_.const_data_ptr<int32_t>()};
  }
  AttentionRows Rows(const at::Tensor& queries, const at::Tensor& out) const {
    return {queries.const_data_ptr(), out.data_ptr(), queries.size(0),
            1.0f / std::sqrt(static_cast<float>(shape_.head_dim))};
  }
  at::Tensor Queries(int64_t rows, uint64_t seed) const {
    return Numbers({rows, shape_.query_heads, shape_.head_dim}, seed);
  }

  at::Tensor PageSlots(int slot, const at::Tensor& positions) const {
    const at::Tensor pages = table_.to(at::kLong).slice(0, slot * kTablePages);
    return pages.index_select(0, positions.div(kPageTokens, "floor")) * kPageTokens +
           positions % kPageTokens;
  }

  // Replaces the first pages of the sequence in `slot` by those of the sequence in `from`.
  void SharePages(int slot, int from, int64_t pages) {
    table_.slice(0, slot * kTablePages, slot * kTablePages + pages)
        .copy_(table_.slice(0, from * kTablePages, from * kTablePages + pages));
  }

  // Sets the positions of a sequence from `length` on to NaN, as if they were not written yet.
  void ForgetFrom(int slot, int64_t length) {
    const at::Tensor rest = at::arange(length, kMaxTokens, table_.options().dtype(at::kLong));
    for (at::Tensor& pool : pools_) pool.index_fill_(0, PageSlots(slot, rest), std::nan(""));
    Store();
  }

  // Attention in fp64 for the last rows of `length` positions of the sequence in `slot`. queries:
  // [rows, H, D].
  at::Tensor Reference(const at::Tensor& queries, int slot, int64_t length) const {
    const int64_t rows = queries.size(0), group = shape_.query_heads / shape_.key_heads;
    const at::Tensor positions = at::arange(length, table_.options().dtype(at::kLong));
    const at::Tensor slots = PageSlots(slot, positions);
    const at::Tensor k = pools_[0].index_select(0, slots).to(at::kDouble).transpose(0, 1);
    const at::Tensor v = pools_[1].index_select(0, slots).to(at::kDouble).transpose(0, 1);
    const at::Tensor q = queries.to(at::kDouble)
                             .view({rows, shape_.key_heads, group, shape_.head_dim})
                             .permute({1, 2, 0, 3});  // [K, G, rows, D]
    at::Tensor scores = q.matmul(k.unsqueeze(1).transpose(2, 3)) / std::sqrt(shape_.head_dim);
    const at::Tensor own = positions.slice(0, length - rows).unsqueeze(1);  // each row's position
    scores.masked_fill_(positions.unsqueeze(0) > own, -std::numeric_limits<double>::infinity());
    const at::Tensor out = scores.softmax(-1).matmul(v.unsqueeze(1));
    return out.permute({2, 0, 1, 3}).reshape({rows, shape_.query_heads, shape_.head_dim});
  }

  static double Error(const at::Tensor& actual, const at::Tensor& expected) {
    const at::Tensor difference = actual.to(at::kDouble) - expected;
    return (difference.norm() / expected.norm()).item<double>();
  }

  CacheHeads shape_;
  at::Tensor table_, pools_[2], stored_[2];
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_TESTING_PAGED_CACHE_FIXTURE_H_
