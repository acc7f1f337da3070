#include "model/layer_bytes.h"

#include <algorithm>

#include "model/cuda/packed_lengths.h"

namespace tritonrl {
namespace {

constexpr int64_t kFloat = 4;
constexpr int64_t kShortestPad = 128;  // copies' lengths are multiples of it

}  // namespace

LayerBytes::LayerBytes(const ModelConfig& c, const StepShape& s)
    : hidden(s.tokens * c.hidden_size * s.element_bytes),
      rstd(s.tokens * kFloat),
      qkv(s.tokens * (c.query_size() + 2 * c.kv_size()) * s.element_bytes),
      qk(s.tokens * (c.query_size() + c.kv_size()) * s.element_bytes),
      qk_rstd(c.qk_norm() ? s.tokens * (c.num_heads + c.num_kv_heads) * kFloat : 0),
      attention(s.tokens * c.query_size() * s.element_bytes),
      lse(s.tokens * c.num_heads * kFloat),
      activated(s.tokens * c.intermediate_size * s.element_bytes),
      gate_up(2 * activated) {}

int64_t LayerBytes::Of(LayerTensor tensor) const {
  switch (tensor) {
    case LayerTensor::kActivated:
      return activated;
    case LayerTensor::kNorms:
      return 2 * hidden;
    case LayerTensor::kRotatedHeads:
      return qk + qk_rstd;
    case LayerTensor::kGateUp:
      return gate_up;
    case LayerTensor::kMiddle:
      return hidden;
    case LayerTensor::kQkv:
      return qkv;
    case LayerTensor::kAttention:
      return attention + lse;
  }
  return 0;
}

CopyBytes::CopyBytes(const StepShape& s, bool takes, int64_t n, int64_t k) {
  if (!s.fp8 || !takes) return;
  const int64_t rows = s.fp8_in_hardware ? (s.tokens + 15) / 16 * 16 : s.tokens;
  const int64_t element = s.fp8_in_hardware ? 1 : s.element_bytes;
  input = rows * k * element;
  weight = n * k * element;
  d_out = rows * n * element;
  d_out_both = s.fp8_in_hardware ? 2 * d_out : d_out;  // both layouts in one memory
}

int64_t AttentionRoom(const ModelConfig& c, const StepShape& s) {
  const int64_t longest = s.longest > 0 ? std::min(s.longest, s.tokens) : s.tokens;
  const int64_t lse = c.num_heads * kFloat;
  // dq, dk and dv of a row, and its sums of the softmax.
  const int64_t row = c.query_size() * (kFloat + 2 * s.element_bytes) + lse;
  if (!s.deterministic && !s.one_by_one) {
    // Sequences that share a call are padded to the longest of them, at most twice the shortest.
    return row * (longest == s.tokens ? longest : 2 * s.tokens);
  }
  const bool cudnn = s.element_bytes == 2;  // which alone gets copies
  // q, k, v and their gradients, out and its.
  const int64_t copied = 4 * (c.query_size() + c.kv_size()) * s.element_bytes + lse;
  const auto room = [&](int64_t rows, bool copies) {
    int64_t bytes = rows * row;
    if (s.deterministic) {
      const int64_t calls = CallsForDeterminism(c.num_heads, c.num_kv_heads, rows);
      bytes = (bytes + 2 * c.num_heads * rows * rows) / calls;
    }
    return bytes + (copies ? rows * copied : 0);
  };
  if (!cudnn) return room(longest, false);
  const int64_t most = PaddedLength(longest);
  if (s.longest == 0) return room(most, most != longest);
  // Fewer calls serve shorter sequences, each of which may take more than those of the longest.
  int64_t bytes = 0;
  for (int64_t rows = kShortestPad; rows <= most; rows += kShortestPad) {
    bytes = std::max(bytes, room(PaddedLength(rows), true));
  }
  return bytes;
}

}  // namespace tritonrl
