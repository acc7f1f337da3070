#include "model/attention_cuda.h"

#include <ATen/ops/_efficient_attention_backward.h>
#include <ATen/ops/_efficient_attention_forward.h>
#include <ATen/ops/empty.h>

#include <cmath>
#include <optional>
#include <tuple>

namespace tritonrl {
namespace {

constexpr int64_t kCausalFromTopLeft = 1;  // the kernel's name for "key j visible to query i >= j"

struct PackedHeads {
  at::Tensor q, k, v;  // [1, T, H, D]; keys and values repeated for their group of queries
};

PackedHeads SplitHeads(const ModelConfig& config, const at::Tensor& qk, const at::Tensor& qkv) {
  const int64_t heads = config.num_heads, kv_heads = config.num_kv_heads, dim = config.head_dim;
  const int64_t rows = qk.size(0);
  auto take = [&](const at::Tensor& x, int64_t first, int64_t count) {
    const at::Tensor slice = x.narrow(1, first * dim, count * dim).unflatten(1, {count, dim});
    if (count == heads) return slice.unsqueeze(0);
    return slice.unsqueeze(2)
        .expand({rows, count, heads / count, dim})
        .reshape({1, rows, heads, dim});
  };
  return {take(qk, 0, heads), take(qk, heads, kv_heads), take(qkv, heads + kv_heads, kv_heads)};
}

}  // namespace

at::Tensor AttentionForwardCuda(const ModelConfig& config, const SequenceLayout& layout,
                                const at::Tensor& qk, const at::Tensor& qkv, at::Tensor* lse) {
  const PackedHeads heads = SplitHeads(config, qk, qkv);
  auto result = at::_efficient_attention_forward(
      heads.q, heads.k, heads.v, /*bias=*/std::nullopt, layout.device_offsets,
      layout.device_offsets, layout.max_length, layout.max_length, /*dropout_p=*/0.0,
      kCausalFromTopLeft, /*compute_log_sumexp=*/true,
      1.0 / std::sqrt(static_cast<double>(config.head_dim)));
  *lse = std::get<1>(result);
  return std::get<0>(result).reshape({qk.size(0), config.query_size()});
}

void AttentionBackwardCuda(const ModelConfig& config, const SequenceLayout& layout,
                           const at::Tensor& qk, const at::Tensor& qkv, const at::Tensor& out,
                           const at::Tensor& lse, const at::Tensor& d_out, at::Tensor d_qkv) {
  const int64_t heads = config.num_heads, kv_heads = config.num_kv_heads, dim = config.head_dim;
  const int64_t rows = qk.size(0);
  const PackedHeads packed = SplitHeads(config, qk, qkv);
  const at::Tensor no_dropout = at::empty({}, at::kLong);  // seed and offset are not read
  auto result = at::_efficient_attention_backward(
      d_out.view({1, rows, heads, dim}), packed.q, packed.k, packed.v, /*bias=*/std::nullopt,
      out.view({1, rows, heads, dim}), layout.device_offsets, layout.device_offsets,
      layout.max_length, layout.max_length, lse, /*dropout_p=*/0.0, no_dropout, no_dropout,
      kCausalFromTopLeft, /*bias_requires_grad=*/false, 1.0 / std::sqrt(static_cast<double>(dim)),
      /*num_splits_key=*/1);
  auto write = [&](int64_t first, int64_t count, const at::Tensor& d) {
    at::Tensor summed = d.reshape({rows, count, heads / count, dim});
    summed = count == heads ? summed.squeeze(2) : summed.sum(2);
    d_qkv.narrow(1, first * dim, count * dim).copy_(summed.reshape({rows, count * dim}));
  };
  write(0, heads, std::get<0>(result));
  write(heads, kv_heads, std::get<1>(result));
  write(heads + kv_heads, kv_heads, std::get<2>(result));
}

}  // namespace tritonrl
