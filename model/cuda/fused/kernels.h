// Launchers of the fused CUDA kernels between the GEMMs of a decoder layer. These kernels are
// bound by memory traffic: each reads and writes every byte once.
//
// All pointers are device memory, 16-byte aligned; rows hold a multiple of 8 elements
// (LayerContext::UseCuda). Launches go to `stream` (a cudaStream_t) and throw c10::Error if CUDA
// refuses them. Results have the same bits in every call: the order of sums depends on the shape
// alone. Intermediate roundings are those of Hugging Face's modules.

#ifndef TRITONRL_MODEL_CUDA_FUSED_KERNELS_H_
#define TRITONRL_MODEL_CUDA_FUSED_KERNELS_H_

#include <cstdint>

#include "model/cuda/common/fp8_format.h"

namespace tritonrl {

enum class CudaType { kFloat, kBFloat16 };

// T rows, C columns, `type` the type of every matrix; `stream` a cudaStream_t.
struct CudaRows {
  int64_t rows = 0;
  int64_t cols = 0;
  CudaType type = CudaType::kBFloat16;
  void* stream = nullptr;
};

// `amax`, unless null, is 0 before the launch and becomes the bits of the largest |x| (in fp32) of
// the result, see fp8.cuh.

// y = x * rstd * weight [T, C] with rstd = 1 / sqrt(mean(x^2) + eps) [T] fp32, which is read
// instead of computed if `rstd_known`.
void LaunchRmsNorm(const CudaRows& at, const void* x, const void* weight, float eps, void* y,
                   float* rstd, uint32_t* amax, bool rstd_known = false);

// Rows of `partials` that LaunchRmsNormBackward writes.
int64_t RmsNormPartials(const CudaRows& at);
// d_x += (g - xhat mean(g xhat)) rstd with g = d_y weight, xhat = x rstd; d_weight [C] fp32 +=
// sum over rows of d_y xhat. partials: [RmsNormPartials, C] fp32. C at most 8,192. amax: of d_x.
void LaunchRmsNormBackward(const CudaRows& at, const void* x, const void* weight, const float* rstd,
                           const void* d_y, void* d_x, float* partials, float* d_weight,
                           uint32_t* amax);

// gate_up [T, 2C], out [T, C] = silu(gate) * up.
void LaunchSwiglu(const CudaRows& at, const void* gate_up, void* out, uint32_t* amax);
// From d_out [T, C]: writes d_gate_up [T, 2C] (may be gate_up itself) and, unless null, `out` as
// above (may be d_out). d_amax, amax: of d_gate_up and out; amax only with `out` and d_amax.
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
// Rows [2 D] fp32 of `partials` that the backward writes.
int64_t HeadPartials(const CudaHeads& at);
// Changes d_qkv in place and, with norm, adds to d_q_weight, d_k_weight [D] fp32.
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

// *amax (0 before) becomes the bits of the largest |x| of x [T, C] bf16.
void LaunchAmax(const CudaRows& at, const void* x, uint32_t* amax);

// The outputs of LaunchQuantize; one of rows and columns may be null. C is a multiple of 16.
struct CudaFp8Outputs {
  void* rows = nullptr;     // [T, C]
  void* columns = nullptr;  // [C, padded_rows], zeros from the T-th of a row on
  int64_t padded_rows = 0;  // T rounded up to a multiple of 16
  float* scale = nullptr;   // [1], the factor from FP8 values to x
};
// x [T, C] (bf16) divided by a power of two and rounded, see fp8_format.h; all NaN if amax is not
// finite.
void LaunchQuantize(const CudaRows& at, Fp8Format format, const void* x, const uint32_t* amax,
                    const CudaFp8Outputs& to);
// Quantizes to E4M3 with a scale for each row: numbers[t] [C] = x[t] / scales[t], a power of two. A
// row with an element that is not finite becomes NaN; other rows do not.
void LaunchQuantizeRows(const CudaRows& at, const void* x, void* numbers, float* scales);
// The same for the output of LaunchRmsNorm on x [T, C] and of LaunchSwiglu on gate_up [T, 2 C].
void LaunchNormQuantizeRows(const CudaRows& at, const void* x, const void* weight, float eps,
                            void* numbers, float* scales);
void LaunchSwigluQuantizeRows(const CudaRows& at, const void* gate_up, void* numbers,
                              float* scales);

// to[c] += sum over rows of from[row * stride + c], fp32.
void LaunchColumnSums(int64_t rows, int64_t cols, int64_t stride, const float* from, float* to,
                      void* stream);

// Copies rows of one matrix. Addresses and the three sizes are multiples of 16 bytes.
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

// Copies the first `present` rows of each `from` in one launch and fills the rows of `to` from
// `present` up to `rows` with zeros.
void LaunchCopyRows(const RowCopies& copies, int64_t present, int64_t rows, void* stream);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_FUSED_KERNELS_H_
