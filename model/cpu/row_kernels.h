// Kernels that work row by row: norms, rotary embedding, SwiGLU, log-softmax. kernels.h documents
// the functions.

#ifndef TRITONRL_MODEL_CPU_ROW_KERNELS_H_
#define TRITONRL_MODEL_CPU_ROW_KERNELS_H_

#include "model/cpu/simd.h"

namespace tritonrl {
namespace TRITONRL_SIMD_NAMESPACE {

inline float InverseRms(int64_t cols, const float* x, float eps) {
  Vec sum = Zero();
  for (int64_t c = 0; c < cols; c += kLanes) {
    const Vec xv = LoadUpTo(x + c, cols - c);
    sum = Fma(xv, xv, sum);
  }
  return 1.0f / __builtin_sqrtf(HorizontalSum(sum) / static_cast<float>(cols) + eps);
}

inline void ScaleRow(int64_t cols, const float* x, const float* weight, float rstd, float* y) {
  for (int64_t c = 0; c < cols; c += kLanes) {
    const Vec normal = Mul(LoadUpTo(x + c, cols - c), Set1(rstd));
    StoreUpTo(y + c, Mul(LoadUpTo(weight + c, cols - c), normal), cols - c);
  }
}

inline void RmsNorm(int64_t rows, int64_t cols, const float* x, const float* weight, float eps,
                    float* y, float* rstd) {
  for (int64_t r = 0; r < rows; ++r) {
    const float inverse = InverseRms(cols, x + r * cols, eps);
    if (rstd != nullptr) rstd[r] = inverse;
    ScaleRow(cols, x + r * cols, weight, inverse, y + r * cols);
  }
}

inline void RmsNormApply(int64_t rows, int64_t cols, const float* x, const float* weight,
                         const float* rstd, float* y) {
  for (int64_t r = 0; r < rows; ++r) ScaleRow(cols, x + r * cols, weight, rstd[r], y + r * cols);
}

// Computes d_x (+)= rstd (w dy - xhat mean(w dy xhat)) and d_weight += dy xhat for one row. Without
// kAccumulate d_x may be d_y.
template <bool kAccumulate>
inline void RmsNormBackwardRow(int64_t cols, const float* x, const float* weight, float rstd,
                               const float* d_y, float* d_x, float* d_weight) {
  const Vec inverse = Set1(rstd);
  Vec dot = Zero();
  for (int64_t c = 0; c < cols; c += kLanes) {
    const int64_t left = cols - c;
    const Vec dy = LoadUpTo(d_y + c, left);
    const Vec dy_xhat = Mul(dy, Mul(LoadUpTo(x + c, left), inverse));
    StoreUpTo(d_weight + c, Add(LoadUpTo(d_weight + c, left), dy_xhat), left);
    dot = Fma(LoadUpTo(weight + c, left), dy_xhat, dot);
  }
  const Vec mean = Set1(HorizontalSum(dot) / static_cast<float>(cols));
  for (int64_t c = 0; c < cols; c += kLanes) {
    const int64_t left = cols - c;
    const Vec xhat = Mul(LoadUpTo(x + c, left), inverse);
    const Vec w_dy = Mul(LoadUpTo(weight + c, left), LoadUpTo(d_y + c, left));
    Vec d = Mul(inverse, Sub(w_dy, Mul(xhat, mean)));
    if (kAccumulate) d = Add(LoadUpTo(d_x + c, left), d);
    StoreUpTo(d_x + c, d, left);
  }
}

inline void RmsNormBackward(int64_t rows, int64_t cols, const float* x, const float* weight,
                            const float* rstd, const float* d_y, float* d_x, float* d_weight) {
  for (int64_t r = 0; r < rows; ++r) {
    RmsNormBackwardRow<true>(cols, x + r * cols, weight, rstd[r], d_y + r * cols, d_x + r * cols,
                             d_weight);
  }
}

// Rotates the halves of x: (a, b) -> (a cos - b sin, b cos + a sin). sign = -1 gives the inverse
// rotation, which is the transpose.
inline void Rotate(int64_t half, const float* x, const float* cos, const float* sin, float sign,
                   float* y) {
  for (int64_t c = 0; c < half; c += kLanes) {
    const int64_t left = half - c;
    const Vec a = LoadUpTo(x + c, left);
    const Vec b = LoadUpTo(x + half + c, left);
    const Vec cv = LoadUpTo(cos + c, left);
    const Vec sv = Mul(Set1(sign), LoadUpTo(sin + c, left));
    StoreUpTo(y + c, Sub(Mul(a, cv), Mul(b, sv)), left);
    StoreUpTo(y + half + c, Fma(b, cv, Mul(a, sv)), left);
  }
}

inline void HeadNormRotary(int64_t rows, int64_t heads, int64_t head_dim, const float* x,
                           int64_t x_row, const float* weight, float eps, const float* cos,
                           const float* sin, const int64_t* positions, float* y, int64_t y_row,
                           float* rstd, int64_t rstd_row) {
  const int64_t half = head_dim / 2;
  for (int64_t r = 0; r < rows; ++r) {
    const float* row_cos = cos + positions[r] * half;
    const float* row_sin = sin + positions[r] * half;
    for (int64_t h = 0; h < heads; ++h) {
      const float* from = x + r * x_row + h * head_dim;
      float* to = y + r * y_row + h * head_dim;
      if (weight != nullptr) {
        const float inverse = InverseRms(head_dim, from, eps);
        if (rstd != nullptr) rstd[r * rstd_row + h] = inverse;
        ScaleRow(head_dim, from, weight, inverse, to);
        from = to;
      }
      Rotate(half, from, row_cos, row_sin, 1.0f, to);
    }
  }
}

inline void HeadNormRotaryBackward(int64_t rows, int64_t heads, int64_t head_dim, const float* x,
                                   int64_t x_row, const float* weight, const float* cos,
                                   const float* sin, const int64_t* positions, float* d,
                                   int64_t d_row, const float* rstd, int64_t rstd_row,
                                   float* d_weight) {
  const int64_t half = head_dim / 2;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t h = 0; h < heads; ++h) {
      float* gradient = d + r * d_row + h * head_dim;
      Rotate(half, gradient, cos + positions[r] * half, sin + positions[r] * half, -1.0f, gradient);
      if (weight != nullptr) {
        RmsNormBackwardRow<false>(head_dim, x + r * x_row + h * head_dim, weight,
                                  rstd[r * rstd_row + h], gradient, gradient, d_weight);
      }
    }
  }
}

inline Vec Sigmoid(Vec x) { return Div(Set1(1.0f), Add(Set1(1.0f), Exp(Sub(Zero(), x)))); }

inline void SwigluFlat(int64_t n, const float* gate, const float* up, float* out) {
  for (int64_t i = 0; i < n; i += kLanes) {
    const Vec g = LoadUpTo(gate + i, n - i);
    StoreUpTo(out + i, Mul(Mul(g, Sigmoid(g)), LoadUpTo(up + i, n - i)), n - i);
  }
}

inline void Swiglu(int64_t rows, int64_t size, const float* gate_up, float* out) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* gate = gate_up + r * 2 * size;
    SwigluFlat(size, gate, gate + size, out + r * size);
  }
}

inline void SwigluBackward(int64_t rows, int64_t size, const float* gate_up, const float* d_out,
                           float* d_gate_up, float* out) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* gate = gate_up + r * 2 * size;
    float* d_gate = d_gate_up + r * 2 * size;
    for (int64_t i = 0; i < size; i += kLanes) {
      const int64_t left = size - i;
      const Vec g = LoadUpTo(gate + i, left);
      const Vec u = LoadUpTo(gate + size + i, left);
      const Vec d = LoadUpTo(d_out + r * size + i, left);
      const Vec s = Sigmoid(g);
      const Vec silu = Mul(g, s);
      // silu' = s + g s (1 - s) = s + silu (1 - s)
      const Vec slope = Fma(silu, Sub(Set1(1.0f), s), s);
      StoreUpTo(d_gate + i, Mul(Mul(d, u), slope), left);
      StoreUpTo(d_gate + size + i, Mul(d, silu), left);
      StoreUpTo(out + r * size + i, Mul(silu, u), left);
    }
  }
}

// Returns the largest of n floats.
inline float RowMax(int64_t n, const float* x) {
  float largest = x[0];
  int64_t i = 0;
  if (n >= kLanes) {
    Vec m = Load(x);
    for (i = kLanes; i + kLanes <= n; i += kLanes) m = Max(m, Load(x + i));
    largest = HorizontalMax(m);
  }
  for (; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

inline void LogSoftmax(int64_t rows, int64_t vocab, const float* logits, float inverse_temperature,
                       const int64_t* targets, float* log_probs, float* entropy, float* lse) {
  const Vec scale = Set1(inverse_temperature);
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = logits + r * vocab;
    const float largest = RowMax(vocab, row) * inverse_temperature;
    Vec sum = Zero();
    Vec weighted = Zero();  // sum of e^(x - largest) (x - largest)
    int64_t i = 0;
    for (; i + kLanes <= vocab; i += kLanes) {
      const Vec x = Sub(Mul(Load(row + i), scale), Set1(largest));
      const Vec e = Exp(x);
      sum = Add(sum, e);
      weighted = Fma(e, x, weighted);
    }
    if (i < vocab) {  // lanes beyond the row must not add to the sums
      const int64_t left = vocab - i;
      const Vec x = Sub(Mul(LoadFirst(row + i, left), scale), Set1(largest));
      float e[kLanes] = {};
      StoreFirst(e, Exp(x), left);
      sum = Add(sum, Load(e));
      weighted = Fma(Load(e), x, weighted);
    }
    const float total = HorizontalSum(sum);
    const float log_total = __builtin_logf(total);
    lse[r] = largest + log_total;
    log_probs[r] = row[targets[r]] * inverse_temperature - largest - log_total;
    entropy[r] = log_total - HorizontalSum(weighted) / total;
  }
}

inline void LogSoftmaxBackward(int64_t rows, int64_t vocab, float* logits,
                               float inverse_temperature, const int64_t* targets, const float* lse,
                               const float* d_log_probs) {
  for (int64_t r = 0; r < rows; ++r) {
    float* row = logits + r * vocab;
    const float gradient = d_log_probs[r] * inverse_temperature;
    for (int64_t i = 0; i < vocab; i += kLanes) {
      const Vec x = Mul(LoadUpTo(row + i, vocab - i), Set1(inverse_temperature));
      const Vec p = Exp(Sub(x, Set1(lse[r])));
      StoreUpTo(row + i, Mul(Set1(-gradient), p), vocab - i);
    }
    row[targets[r]] += gradient;
  }
}

inline void AddTo(int64_t n, const float* x, float* y) {
  for (int64_t i = 0; i < n; i += kLanes) {
    StoreUpTo(y + i, Add(LoadUpTo(x + i, n - i), LoadUpTo(y + i, n - i)), n - i);
  }
}

}  // namespace TRITONRL_SIMD_NAMESPACE
}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CPU_ROW_KERNELS_H_
