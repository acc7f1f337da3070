// Causal attention of one key/value head in one sequence. Contracts stand in kernels.h.
//
// Query rows go in blocks of kQueryBlock: a block's scores [kQueryBlock, L] stay in cache, and the
// backward pass computes them again from the saved log-sum-exp.

#ifndef TRITONRL_MODEL_CPU_ATTENTION_KERNEL_H_
#define TRITONRL_MODEL_CPU_ATTENTION_KERNEL_H_

#include "model/cpu/gemm_kernel.h"
#include "model/cpu/kernels.h"
#include "model/cpu/row_kernels.h"

namespace tritonrl {
namespace TRITONRL_SIMD_NAMESPACE {

inline constexpr int64_t kQueryBlock = 48;

inline int64_t RoundUp(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

// Scratch: K^T and V^T [D, Lp], K and V [Lp, D], scores and their gradients [kQueryBlock, Lp],
// d_k and d_v [Lp, D], row dots [kQueryBlock]; Lp = L rounded up to a tile.
inline int64_t AttentionScratch(int64_t length, int64_t head_dim) {
  const int64_t padded = RoundUp(length, kTileColumns);
  return 6 * head_dim * padded + 2 * kQueryBlock * padded + kQueryBlock;
}

inline void CopyRows(int64_t rows, int64_t cols, const float* from, int64_t from_row, float* to,
                     int64_t to_row) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; c += kLanes) {
      StoreUpTo(to + r * to_row + c, LoadUpTo(from + r * from_row + c, cols - c), cols - c);
    }
  }
}

// K^T with zeros in the padding, so that whole tiles may be computed.
inline void TransposePadded(int64_t length, int64_t head_dim, const float* from, int64_t from_row,
                            float* to, int64_t padded) {
  Transpose(length, head_dim, from, from_row, to, padded);
  for (int64_t d = 0; d < head_dim; ++d) {
    for (int64_t j = length; j < padded; ++j) to[d * padded + j] = 0.0f;
  }
}

// Turns scores[visible] of one row into softmax(scale * scores) and zeros up to `width`;
// returns the log-sum-exp. Lane order depends on `visible` alone.
inline float SoftmaxRow(int64_t visible, int64_t width, float scale, float* scores) {
  const float largest = RowMax(visible, scores) * scale;
  for (int64_t j = visible; j < width; ++j) scores[j] = 0.0f;
  Vec sum = Zero();
  for (int64_t j = 0; j < visible; j += kLanes) {
    const int64_t left = visible - j;
    const Vec e = Exp(Fma(LoadUpTo(scores + j, left), Set1(scale), Set1(-largest)));
    StoreUpTo(scores + j, e, left);
    sum = Add(sum, LoadUpTo(scores + j, left));
  }
  const float total = HorizontalSum(sum);
  const Vec inverse = Set1(1.0f / total);
  for (int64_t j = 0; j < visible; j += kLanes) {
    const int64_t left = visible - j;
    StoreUpTo(scores + j, Mul(LoadUpTo(scores + j, left), inverse), left);
  }
  return largest + __builtin_logf(total);
}

inline void Attention(const AttentionTask& t) {
  const int64_t dim = t.head_dim;
  const int64_t padded = RoundUp(t.length, kTileColumns);
  float* k_transposed = t.scratch;
  float* v = k_transposed + dim * padded;
  float* scores = v + dim * padded;
  TransposePadded(t.length, dim, t.k, t.k_row, k_transposed, padded);
  CopyRows(t.length, dim, t.v, t.v_row, v, dim);
  for (int64_t g = 0; g < t.group; ++g) {
    for (int64_t i0 = 0; i0 < t.length; i0 += kQueryBlock) {
      const int64_t rows = t.length - i0 < kQueryBlock ? t.length - i0 : kQueryBlock;
      const int64_t visible = i0 + rows;
      const int64_t width = RoundUp(visible, kTileColumns);
      Gemm(rows, width, dim, t.q + i0 * t.q_row + g * dim, t.q_row, 1, k_transposed, padded, scores,
           padded, false);
      for (int64_t i = 0; i < rows; ++i) {
        const float lse = SoftmaxRow(i0 + i + 1, visible, t.scale, scores + i * padded);
        t.lse[g * t.lse_head + i0 + i] = lse;
      }
      Gemm(rows, dim, visible, scores, padded, 1, v, dim, t.out + i0 * t.out_row + g * dim,
           t.out_row, false);
    }
  }
}

// From scores and d_probs of one row: probs = exp(scale s - lse), d_s = scale probs (dp - dot);
// zeros beyond the visible columns.
inline void SoftmaxBackwardRow(int64_t visible, int64_t width, float scale, float lse, float dot,
                               float* scores, float* d_probs) {
  for (int64_t j = 0; j < visible; j += kLanes) {
    const int64_t left = visible - j;
    const Vec p = Exp(Fma(LoadUpTo(scores + j, left), Set1(scale), Set1(-lse)));
    const Vec d = Sub(LoadUpTo(d_probs + j, left), Set1(dot));
    StoreUpTo(scores + j, p, left);
    StoreUpTo(d_probs + j, Mul(Mul(p, Set1(scale)), d), left);
  }
  for (int64_t j = visible; j < width; ++j) scores[j] = d_probs[j] = 0.0f;
}

inline float Dot(int64_t n, const float* a, const float* b) {
  Vec sum = Zero();
  for (int64_t i = 0; i < n; i += kLanes) {
    sum = Fma(LoadUpTo(a + i, n - i), LoadUpTo(b + i, n - i), sum);
  }
  return HorizontalSum(sum);
}

inline void AttentionBackward(const AttentionTask& t) {
  const int64_t dim = t.head_dim;
  const int64_t padded = RoundUp(t.length, kTileColumns);
  float* k_transposed = t.scratch;
  float* v_transposed = k_transposed + dim * padded;
  float* k = v_transposed + dim * padded;
  float* d_k = k + dim * padded;
  float* d_v = d_k + dim * padded;
  float* scores = d_v + dim * padded;
  float* d_scores = scores + kQueryBlock * padded;
  TransposePadded(t.length, dim, t.k, t.k_row, k_transposed, padded);
  TransposePadded(t.length, dim, t.v, t.v_row, v_transposed, padded);
  CopyRows(t.length, dim, t.k, t.k_row, k, dim);
  for (int64_t i = 0; i < t.length * dim; ++i) d_k[i] = d_v[i] = 0.0f;
  for (int64_t g = 0; g < t.group; ++g) {
    for (int64_t i0 = 0; i0 < t.length; i0 += kQueryBlock) {
      const int64_t rows = t.length - i0 < kQueryBlock ? t.length - i0 : kQueryBlock;
      const int64_t visible = i0 + rows;
      const int64_t width = RoundUp(visible, kTileColumns);
      const float* q = t.q + i0 * t.q_row + g * dim;
      const float* out = t.out + i0 * t.out_row + g * dim;
      const float* d_out = t.d_out + i0 * t.d_out_row + g * dim;
      Gemm(rows, width, dim, q, t.q_row, 1, k_transposed, padded, scores, padded, false);
      Gemm(rows, width, dim, d_out, t.d_out_row, 1, v_transposed, padded, d_scores, padded, false);
      for (int64_t i = 0; i < rows; ++i) {
        const float dot = Dot(dim, d_out + i * t.d_out_row, out + i * t.out_row);
        SoftmaxBackwardRow(i0 + i + 1, visible, t.scale, t.lse[g * t.lse_head + i0 + i], dot,
                           scores + i * padded, d_scores + i * padded);
      }
      Gemm(rows, dim, visible, d_scores, padded, 1, k, dim, t.d_q + i0 * t.d_q_row + g * dim,
           t.d_q_row, false);
      Gemm(visible, dim, rows, d_scores, 1, padded, q, t.q_row, d_k, dim, true);
      Gemm(visible, dim, rows, scores, 1, padded, d_out, t.d_out_row, d_v, dim, true);
    }
  }
  CopyRows(t.length, dim, d_k, dim, t.d_k, t.d_k_row);
  CopyRows(t.length, dim, d_v, dim, t.d_v, t.d_v_row);
}

}  // namespace TRITONRL_SIMD_NAMESPACE
}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CPU_ATTENTION_KERNEL_H_
