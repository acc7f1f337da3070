// Causal attention of one key/value head in one sequence, with contiguous or paged keys and values.
// kernels.h documents the functions.

#ifndef TRITONRL_MODEL_CPU_ATTENTION_KERNELS_H_
#define TRITONRL_MODEL_CPU_ATTENTION_KERNELS_H_

#include "model/cpu/gemm_kernel.h"
#include "model/cpu/kernels.h"
#include "model/cpu/row_kernels.h"

namespace tritonrl {

namespace TRITONRL_SIMD_NAMESPACE {

// Query rows per block. A block's scores [kQueryBlock, L] stay in cache, and the backward pass
// recomputes them from the saved log-sum-exp.
inline constexpr int64_t kQueryBlock = 48;

inline int64_t RoundUp(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

// Returns an upper bound of the scratch floats of forward and backward: six matrices of head_dim x
// Lp (K^T, V^T, K, V, d_k, d_v), the scores and their gradients [kQueryBlock, Lp], and one row of
// kQueryBlock. Lp is `length` rounded up to a tile.
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

// Writes the transpose of `from`, padded with zeros so that GEMMs may compute whole tiles.
inline void TransposePadded(int64_t length, int64_t head_dim, const float* from, int64_t from_row,
                            float* to, int64_t padded) {
  Transpose(length, head_dim, from, from_row, to, padded);
  for (int64_t d = 0; d < head_dim; ++d) {
    for (int64_t j = length; j < padded; ++j) to[d * padded + j] = 0.0f;
  }
}

// Replaces scores[visible] of one row by softmax(scale * scores), fills the row with zeros up to
// `width`, and returns the log-sum-exp. The order of the sum depends on `visible` alone.
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

// For one row, replaces the scores s by probs = exp(scale s - lse), and d_probs by the gradient of
// the scores, scale probs (d_probs - dot). Both become zero from `visible` to `width`.
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

namespace TRITONRL_SIMD_NAMESPACE {

// Paged attention. A score is a sum over the head's dimension in ascending order. An output is a
// sum over the positions of a page in ascending order and then over the pages. The bits therefore
// depend neither on the other tokens of the task nor on the addresses of the pages.

static_assert(kKvPageSize == kLanes);

// Computes the scores of kHeads queries with kPages pages of keys, from page `i` of the sequence
// on.
template <int kHeads, int kPages>
inline void PageScores(const PagedAttentionTask& t, int64_t i, const float* q, float* scores,
                       int64_t score_row) {
  Vec sum[kHeads][kPages];
  const float* keys[kPages];
#pragma GCC unroll 8
  for (int n = 0; n < kHeads * kPages; ++n) sum[n / kPages][n % kPages] = Zero();
#pragma GCC unroll 4
  for (int p = 0; p < kPages; ++p) keys[p] = t.keys + t.pages[i + p] * t.page_stride;
  for (int64_t d = 0; d < t.head_dim; ++d) {
#pragma GCC unroll 4
    for (int p = 0; p < kPages; ++p) {
      const Vec key = Load(keys[p] + d * kLanes);
#pragma GCC unroll 2
      for (int h = 0; h < kHeads; ++h) {
        sum[h][p] = Fma(Set1(q[h * t.head_dim + d]), key, sum[h][p]);
      }
    }
  }
#pragma GCC unroll 8
  for (int n = 0; n < kHeads * kPages; ++n) {
    Store(scores + n / kPages * score_row + (i + n % kPages) * kLanes, sum[n / kPages][n % kPages]);
  }
}

template <int kHeads>
inline void PageScoresOfHeads(const PagedAttentionTask& t, int64_t pages, const float* q,
                              float* scores, int64_t score_row) {
  constexpr int kTogether = 4;  // independent sums that hide the latency of a multiply-add
  int64_t i = 0;
  for (; i + kTogether <= pages; i += kTogether) {
    PageScores<kHeads, kTogether>(t, i, q, scores, score_row);
  }
  for (; i < pages; ++i) PageScores<kHeads, 1>(t, i, q, scores, score_row);
}

// out[m, D] = probs[m, visible] values[visible, D], page by page.
inline void PageValues(const PagedAttentionTask& t, int64_t m, int64_t visible, const float* probs,
                       int64_t prob_row, float* out, int64_t out_row) {
  for (int64_t j = 0; j < visible; j += kLanes) {
    const int64_t positions = visible - j < kLanes ? visible - j : kLanes;
    GemmBlock(m, t.head_dim, positions, probs + j, prob_row, 1,
              t.values + t.pages[j / kLanes] * t.page_stride, t.head_dim, out, out_row, j > 0);
  }
}

// Adds probs times values of kPages pages to out[kHeads][kVecs * 16], from page `i` of the sequence
// and column `column` of the values on. The sums of the pages are independent, which hides the
// latency of a multiply-add.
template <int kHeads, int kVecs, int kPages>
inline void AddPages(const PagedAttentionTask& t, int64_t i, int64_t positions, int64_t column,
                     const float* probs, int64_t prob_row, Vec (&out)[kHeads][kVecs]) {
  Vec sum[kPages][kHeads][kVecs];
  const float* values[kPages];
#pragma GCC unroll 4
  for (int p = 0; p < kPages; ++p) {
    values[p] = t.values + t.pages[i + p] * t.page_stride + column;
#pragma GCC unroll 4
    for (int n = 0; n < kHeads * kVecs; ++n) sum[p][n / kVecs][n % kVecs] = Zero();
  }
  const float* prob = probs + i * kLanes;
  for (int64_t k = 0; k < positions; ++k) {
#pragma GCC unroll 4
    for (int p = 0; p < kPages; ++p) {
      Vec value[kVecs];
#pragma GCC unroll 2
      for (int v = 0; v < kVecs; ++v) value[v] = Load(values[p] + k * t.head_dim + v * kLanes);
#pragma GCC unroll 2
      for (int h = 0; h < kHeads; ++h) {
        const Vec weight = Set1(prob[h * prob_row + p * kLanes + k]);
#pragma GCC unroll 2
        for (int v = 0; v < kVecs; ++v) sum[p][h][v] = Fma(weight, value[v], sum[p][h][v]);
      }
    }
  }
#pragma GCC unroll 4
  for (int p = 0; p < kPages; ++p) {
#pragma GCC unroll 4
    for (int n = 0; n < kHeads * kVecs; ++n) {
      Vec& to = out[n / kVecs][n % kVecs];
      to = i + p == 0 ? sum[p][n / kVecs][n % kVecs] : Add(to, sum[p][n / kVecs][n % kVecs]);
    }
  }
}

// PageValues for kHeads heads of one row and kVecs * 16 columns, with the same bits.
template <int kHeads, int kVecs>
inline void PageValuesOfHeads(const PagedAttentionTask& t, int64_t visible, int64_t column,
                              const float* probs, int64_t prob_row, float* out) {
  constexpr int kTogether = kTileVecs == 2 ? 4 : 2;  // limited by the number of registers
  Vec total[kHeads][kVecs];
#pragma GCC unroll 4
  for (int n = 0; n < kHeads * kVecs; ++n) total[n / kVecs][n % kVecs] = Zero();
  int64_t i = 0;
  for (; (i + kTogether) * kLanes <= visible; i += kTogether) {
    AddPages<kHeads, kVecs, kTogether>(t, i, kLanes, column, probs, prob_row, total);
  }
  for (; i * kLanes < visible; ++i) {
    const int64_t left = visible - i * kLanes;
    AddPages<kHeads, kVecs, 1>(t, i, left < kLanes ? left : kLanes, column, probs, prob_row, total);
  }
#pragma GCC unroll 4
  for (int n = 0; n < kHeads * kVecs; ++n) {
    Store(out + n / kVecs * t.head_dim + column + n % kVecs * kLanes, total[n / kVecs][n % kVecs]);
  }
}

template <int kHeads>
inline void PageValuesOfRow(const PagedAttentionTask& t, int64_t visible, const float* probs,
                            int64_t prob_row, float* out) {
  if (t.head_dim % kTileColumns != 0) {
    return PageValues(t, kHeads, visible, probs, prob_row, out, t.head_dim);
  }
  for (int64_t column = 0; column < t.head_dim; column += kTileColumns) {
    PageValuesOfHeads<kHeads, kTileVecs>(t, visible, column, probs, prob_row, out);
  }
}

// Paged attention of one row, two heads at a time.
inline void AttentionPagedRow(const PagedAttentionTask& t) {
  const int64_t visible = t.first + 1;
  const int64_t pages = (visible + kLanes - 1) / kLanes, width = pages * kLanes;
  for (int64_t g = 0; g < t.group; g += 2) {
    const float* q = t.q + g * t.head_dim;
    float* out = t.out + g * t.head_dim;
    if (g + 1 == t.group) {
      PageScoresOfHeads<1>(t, pages, q, t.scratch, width);
      SoftmaxRow(visible, visible, t.scale, t.scratch);
      PageValuesOfRow<1>(t, visible, t.scratch, width, out);
    } else {
      PageScoresOfHeads<2>(t, pages, q, t.scratch, width);
      SoftmaxRow(visible, visible, t.scale, t.scratch);
      SoftmaxRow(visible, visible, t.scale, t.scratch + width);
      PageValuesOfRow<2>(t, visible, t.scratch, width, out);
    }
  }
}

// Paged attention of several rows, one head at a time. Probabilities beyond a row's own position
// are 0 and do not change the sums.
inline void AttentionPaged(const PagedAttentionTask& t) {
  if (t.rows == 1) return AttentionPagedRow(t);
  const int64_t visible = t.first + t.rows;
  const int64_t pages = (visible + kLanes - 1) / kLanes, width = pages * kLanes;
  for (int64_t g = 0; g < t.group; ++g) {
    const float* q = t.q + g * t.head_dim;
    for (int64_t i = 0; i < pages; ++i) {
      GemmBlock(t.rows, kLanes, t.head_dim, q, t.q_row, 1, t.keys + t.pages[i] * t.page_stride,
                kLanes, t.scratch + i * kLanes, width, false);
    }
    for (int64_t r = 0; r < t.rows; ++r) {
      SoftmaxRow(t.first + r + 1, visible, t.scale, t.scratch + r * width);
    }
    PageValues(t, t.rows, visible, t.scratch, width, t.out + g * t.head_dim, t.out_row);
  }
}

}  // namespace TRITONRL_SIMD_NAMESPACE

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CPU_ATTENTION_KERNELS_H_
