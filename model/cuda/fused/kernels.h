#ifndef TRITONRL_MODEL_CUDA_FUSED_KERNELS_H_
#define TRITONRL_MODEL_CUDA_FUSED_KERNELS_H_

#include <cstdint>

#include "model/cuda/common/fp8_format.h"

// Fused kernels for what lies between the GEMMs of a decoder layer. Each moves every byte
// that it must once; what one saves is in bytes, not in FLOPs.
//
// All pointers are device memory, 16-byte aligned, and rows hold a multiple of 8 elements; see
// CudaSupports. Results are the same bits in every call: sums run in a fixed order, which depends
// on the shape alone. Rounding to the type in between is as in Hugging Face's modules. Launches go
// to `stream` (a cudaStream_t); an error of a launch throws c10::Error in the callers.
//
// Rows of several matrices copied in one launch, to where others lie behind them or nothing does.

namespace tritonrl {

enum class CudaType { kFloat, kBFloat16 };

// T rows, C columns, `type` the type of every matrix; `stream` a cudaStream_t.
struct CudaRows {
  int64_t rows = 0;
  int64_t cols = 0;
  CudaType type = CudaType::kBFloat16;
  void* stream = nullptr;
};

// Where `amax` is not null, it is 0 before and becomes the bits of the largest |x| (in fp32) of
// what is written, see fp8.h.

// y = x * rstd * weight [T, C] with rstd = 1 / sqrt(mean(x^2) + eps) [T] fp32, which is read
// instead of computed if `rstd_known`.
void LaunchRmsNorm(const CudaRows& at, const void* x, const void* weight, float eps, void* y,
                   float* rstd, uint32_t* amax, bool rstd_known = false);

// Rows of partial sums that LaunchRmsNormBackward needs room for.
int64_t RmsNormPartials(const CudaRows& at);
// d_x += (g - xhat mean(g xhat)) rstd with g = d_y weight, xhat = x rstd; d_weight [C] fp32 +=
// sum over rows of d_y xhat. partials: [RmsNormPartials, C] fp32. C at most 8,192. amax: of d_x.
void LaunchRmsNormBackward(const CudaRows& at, const void* x, const void* weight, const float* rstd,
                           const void* d_y, void* d_x, float* partials, float* d_weight,
                           uint32_t* amax);

// gate_up [T, 2C], out [T, C] = silu(gate) * up.
void LaunchSwiglu(const CudaRows& at, const void* gate_up, void* out, uint32_t* amax);
// From d_out [T, C]: d_gate_up [T, 2C] (may be gate_up itself) and out as above (may be d_out;
// null: not wanted), with d_amax and amax of the two. Null: not wanted; amax only with both others.
void LaunchSwigluBackward(const CudaRows& at, const void* gate_up, const void* d_out,
                          void* d_gate_up, void* out, uint32_t* d_amax, uint32_t* amax);

// RMSNorm of query and key heads with rotary embedding; shapes as in model/layers/rotary.h.
struct CudaHeads {
  int64_t rows = 0;
  int query_heads = 0, key_heads = 0;
  int dim = 0;         // 64, 128 or 256
  int64_t stride = 0;  // elements from one row of qkv (and of d_qkv) to the next
  CudaType type = CudaType::kBFloat16;
  const void* q_weight = nullptr;  // [D]; null: no norm
  const void* k_weight = nullptr;
  const float* cos = nullptr;  // [positions, D / 2]
  const float* sin = nullptr;
  const int64_t* positions = nullptr;  // [T]
  void* stream = nullptr;
};

// qk [T, (H + K) D]; rstd [T, H + K], not written without norm.
void LaunchHeadNormRotary(const CudaHeads& at, const void* qkv, float eps, void* qk, float* rstd);
// Rows of partial sums [2 D] fp32 that the backward needs room for.
int64_t HeadPartials(const CudaHeads& at);
// d_qkv in place; d_q_weight, d_k_weight [D] fp32 are added to (not without norm).
void LaunchHeadNormRotaryBackward(const CudaHeads& at, const void* qkv, const float* rstd,
                                  void* d_qkv, float* partials, float* d_q_weight,
                                  float* d_k_weight);

// logits [R, V] fp32. With z = logits / temperature: lse = log sum exp z, log_prob = z[target] -
// lse, entropy = lse - sum softmax(z) z; each [R] fp32.
void LaunchLogSoftmax(const CudaRows& at, const float* logits, float temperature,
                      const int64_t* targets, float* log_prob, float* entropy, float* lse);
// d_logits [R, V] in at.type = d_log_prob / temperature (onehot(target) - softmax(z)).
void LaunchLogSoftmaxBackward(const CudaRows& at, const float* logits, float temperature,
                              const int64_t* targets, const float* lse, const float* d_log_prob,
                              void* d_logits);

// d_table [vocabulary, C] fp32 += the rows of d_out [T, C] by token. order: [T] int64, the rows
// sorted by token (stable); sorted: [T] int64, the tokens in that order.
void LaunchEmbeddingBackward(const CudaRows& at, const int64_t* sorted, const int64_t* order,
                             const void* d_out, float* d_table);

// The same of a matrix x [T, C] of bf16 that is there.
void LaunchAmax(const CudaRows& at, const void* x, uint32_t* amax);

// Where a matrix's FP8 values go; each may be null, but not both. C is a multiple of 16.
struct CudaFp8Outputs {
  void* rows = nullptr;     // [T, C]
  void* columns = nullptr;  // [C, padded_rows], zeros behind the T-th of a row
  int64_t padded_rows = 0;  // T rounded up to a multiple of 16
  float* scale = nullptr;   // one: what the numbers are to be multiplied by
};
// x [T, C] (bf16) divided by a power of two and rounded, see fp8.h; all NaN if amax is not finite.
void LaunchQuantize(const CudaRows& at, Fp8Format format, const void* x, const uint32_t* amax,
                    const CudaFp8Outputs& to);
// To E4M3 with a factor for each row: numbers [T, C] become the row divided by the power of two
// scales[t] [T]. A row with an element that is not finite becomes NaN, and no other does.
void LaunchQuantizeRows(const CudaRows& at, const void* x, void* numbers, float* scales);
// The same of what LaunchRmsNorm makes of x [T, C], and LaunchSwiglu of gate_up [T, 2 C].
void LaunchNormQuantizeRows(const CudaRows& at, const void* x, const void* weight, float eps,
                            void* numbers, float* scales);
void LaunchSwigluQuantizeRows(const CudaRows& at, const void* gate_up, void* numbers,
                              float* scales);

// to[c] += sum over rows of from[row * stride + c], fp32.
void LaunchColumnSums(int64_t rows, int64_t cols, int64_t stride, const float* from, float* to,
                      void* stream);

// Both matrices begin at multiples of 16 bytes, of which all three numbers are multiples too.
struct RowCopy {
  const void* from = nullptr;
  void* to = nullptr;
  int64_t from_stride = 0, to_stride = 0;  // bytes from one row to the next
  int64_t row = 0;                         // bytes of a row
};

struct RowCopies {
  static constexpr int kMaxCopies = 8;
  RowCopy copies[kMaxCopies];
  int count = 0;

  // At most kMaxCopies.
  void Add(const RowCopy& copy) { copies[count++] = copy; }
};

// Rows of each `to` up to `rows` become those of `from` as far as there are any (`present`, at most
// `rows`), zeros from there on. On `stream` (a cudaStream_t); throws c10::Error if it is refused.
void LaunchCopyRows(const RowCopies& copies, int64_t present, int64_t rows, void* stream);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_FUSED_KERNELS_H_
