// Hand-written fp32 CPU kernels, as one table of functions per instruction set.

#ifndef TRITONRL_MODEL_CPU_KERNELS_H_
#define TRITONRL_MODEL_CPU_KERNELS_H_

#include <stdint.h>

namespace tritonrl {

// Positions per page of keys and values, equal to the vector width.
inline constexpr int64_t kKvPageSize = 16;

// Causal attention of the query heads that share one key/value head, in one sequence of L tokens.
// Rows are tokens; D is the head dimension; head g of a group starts D floats after head g - 1.
struct AttentionTask {
  int64_t length = 0;    // L
  int64_t head_dim = 0;  // D
  int64_t group = 0;     // number of query heads
  float scale = 1.0f;    // factor of q . k, 1 / sqrt(D)
  const float* q = nullptr;
  int64_t q_row = 0;
  const float* k = nullptr;
  int64_t k_row = 0;
  const float* v = nullptr;
  int64_t v_row = 0;
  float* out = nullptr;  // [L, group * D], written by forward, read by backward
  int64_t out_row = 0;
  float* lse = nullptr;  // [L] of head g at lse + g * lse_head: log of the sum of exp(scale q . k)
  int64_t lse_head = 0;
  // Backward only. d_q, d_k and d_v are overwritten.
  const float* d_out = nullptr;
  int64_t d_out_row = 0;
  float* d_q = nullptr;
  int64_t d_q_row = 0;
  float* d_k = nullptr;
  int64_t d_k_row = 0;
  float* d_v = nullptr;
  int64_t d_v_row = 0;
  float* scratch = nullptr;  // attention_scratch(length, head_dim) floats
};

// Causal attention of consecutive tokens of one sequence to keys and values in pages of 16
// positions (kKvPageSize), for the query heads that share one key/value head.
struct PagedAttentionTask {
  int64_t first = 0;     // position of the first query; pages hold all positions up to each query
  int64_t rows = 0;      // queries, at positions first, first + 1, ...; at most 1024
  int64_t head_dim = 0;  // D
  int64_t group = 0;     // number of query heads; head g starts D floats after head g - 1
  float scale = 1.0f;    // factor of q . k, 1 / sqrt(D)
  const float* q = nullptr;
  int64_t q_row = 0;
  // Page i of the sequence has its keys [D, 16] at keys + pages[i] * page_stride and its values
  // [16, D] at values + pages[i] * page_stride.
  const float* keys = nullptr;
  const float* values = nullptr;
  int64_t page_stride = 0;
  const int32_t* pages = nullptr;
  float* out = nullptr;  // [rows, group * D]
  int64_t out_row = 0;
  float* scratch = nullptr;  // max(rows, 2) * (first + rows rounded up to 16) floats
};

// The kernels of one instruction set. Each function is serial and works on raw row-major memory;
// callers distribute rows, heads or sequences over threads. "_row" arguments are distances between
// rows in floats. AVX-512 and AVX2 give the same bits; SSE2, for very old machines, rounds slightly
// differently.
struct CpuKernels {
  const char* name;

  // C[m, n] = A[m, k] B[k, n], or += if `accumulate`. Element (i, p) of A is a[i * a_row + p *
  // a_col]; rows of B and C are contiguous. The bits of an element depend on neither m nor n.
  void (*gemm)(int64_t m, int64_t n, int64_t k, const float* a, int64_t a_row, int64_t a_col,
               const float* b, int64_t b_row, float* c, int64_t c_row, bool accumulate);
  // to[cols, rows] = from[rows, cols] transposed.
  void (*transpose)(int64_t rows, int64_t cols, const float* from, int64_t from_row, float* to,
                    int64_t to_row);

  // y = weight * x * rstd with rstd = 1 / sqrt(mean(x^2) + eps). rstd may be null.
  void (*rms_norm)(int64_t rows, int64_t cols, const float* x, const float* weight, float eps,
                   float* y, float* rstd);
  // y = weight * x * rstd with a known rstd.
  void (*rms_norm_apply)(int64_t rows, int64_t cols, const float* x, const float* weight,
                         const float* rstd, float* y);
  // d_x += rstd (w dy - xhat mean(w dy xhat)), d_weight += sum over rows of dy xhat.
  void (*rms_norm_backward)(int64_t rows, int64_t cols, const float* x, const float* weight,
                            const float* rstd, const float* d_y, float* d_x, float* d_weight);

  // RMSNorm (unless `weight` is null), then rotary embedding of `heads` heads of D floats per row:
  // the halves (a, b) of a head become (a cos - b sin, b cos + a sin). cos, sin: [*, D / 2], read
  // at positions[row]. rstd: [rows, rstd_row] or null.
  void (*head_norm_rotary)(int64_t rows, int64_t heads, int64_t head_dim, const float* x,
                           int64_t x_row, const float* weight, float eps, const float* cos,
                           const float* sin, const int64_t* positions, float* y, int64_t y_row,
                           float* rstd, int64_t rstd_row);
  // Replaces d, the gradient of y, by the gradient of x. d_weight[D] += the gradient of `weight`,
  // unless `weight` is null.
  void (*head_norm_rotary_backward)(int64_t rows, int64_t heads, int64_t head_dim, const float* x,
                                    int64_t x_row, const float* weight, const float* cos,
                                    const float* sin, const int64_t* positions, float* d,
                                    int64_t d_row, const float* rstd, int64_t rstd_row,
                                    float* d_weight);

  // gate_up: [rows, 2F], gate first. out[rows, F] = silu(gate) * up.
  void (*swiglu)(int64_t rows, int64_t size, const float* gate_up, float* out);
  // out = silu(gate) * up for separate arrays of n elements.
  void (*swiglu_flat)(int64_t n, const float* gate, const float* up, float* out);
  // Computes d_gate_up[rows, 2F] from d_out[rows, F], and writes silu(gate) * up again to
  // out[rows, F], which may be d_out.
  void (*swiglu_backward)(int64_t rows, int64_t size, const float* gate_up, const float* d_out,
                          float* d_gate_up, float* out);

  int64_t (*attention_scratch)(int64_t length, int64_t head_dim);  // in floats
  void (*attention)(const AttentionTask& task);
  void (*attention_backward)(const AttentionTask& task);
  // The bits of a row do not depend on the other rows of the task.
  void (*attention_paged)(const PagedAttentionTask& task);

  // For each row of logits[rows, vocab] with x = logits * inverse_temperature:
  // lse = log sum exp x; log_probs = x[target] - lse; entropy = lse - sum softmax(x) x.
  void (*log_softmax)(int64_t rows, int64_t vocab, const float* logits, float inverse_temperature,
                      const int64_t* targets, float* log_probs, float* entropy, float* lse);
  // Replaces the logits by their gradient d_log_probs[row] * inverse_temperature * (onehot(target)
  // - softmax(x)).
  void (*log_softmax_backward)(int64_t rows, int64_t vocab, float* logits,
                               float inverse_temperature, const int64_t* targets, const float* lse,
                               const float* d_log_probs);

  void (*add)(int64_t n, const float* x, float* y);  // y += x
};

// The tables of the instruction sets. Call only functions that the processor supports.
const CpuKernels& Avx512Kernels();
const CpuKernels& Avx2Kernels();
const CpuKernels& Sse2Kernels();

// Returns the fastest table that this processor supports.
const CpuKernels& BestCpuKernels();

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CPU_KERNELS_H_
