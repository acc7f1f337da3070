// Launchers of the fused CUDA kernels between the GEMMs of a decoder layer. These kernels are
// bound by memory traffic: each reads and writes every byte once.

#ifndef TRITONRL_MODEL_CUDA_FUSED_KERNELS_H_
#define TRITONRL_MODEL_CUDA_FUSED_KERNELS_H_

#include <cstdint>

#include "model/cuda/common/fp8_format.h"

namespace tritonrl {

// All launchers: pointers are 16-byte aligned device memory, and rows hold a multiple of 8 elements
// (LayerContext::UseCuda). A launch goes to `stream` (a cudaStream_t) and throws c10::Error if it
// fails. Results have the same bits in every call, because the order of sums depends on the shape
// alone. Intermediate roundings are those of Hugging Face's modules.
//
// `amax`, unless null, is 0 before the launch and becomes the fp32 bits of the largest |x| of the
// result (see fp8.cuh).

enum class CudaType { kFloat, kBFloat16 };

// Shape and type of every matrix of a launch: `rows` is T, `cols` is C in the comments below.
struct CudaRows {
  int64_t rows = 0;
  int64_t cols = 0;
  CudaType type = CudaType::kBFloat16;
  void* stream = nullptr;
};

// y [T, C] = x * rstd * weight with rstd [T] fp32 = 1 / sqrt(mean(x^2) + eps). With `rstd_known`
// the kernel reads rstd instead of computing it.
void LaunchRmsNorm(const CudaRows& at, const void* x, const void* weight, float eps, void* y,
                   float* rstd, uint32_t* amax, bool rstd_known = false);

// Number of rows of `partials` that LaunchRmsNormBackward writes.
int64_t RmsNormPartials(const CudaRows& at);
// With g = d_y * weight and xhat = x * rstd: d_x += (g - xhat * mean(g * xhat)) * rstd, and
// d_weight [C] fp32 += sum over rows of d_y * xhat. partials: temporary memory of
// [RmsNormPartials, C] fp32. amax is that of d_x. Throws c10::Error if C exceeds 8,192.
void LaunchRmsNormBackward(const CudaRows& at, const void* x, const void* weight, const float* rstd,
                           const void* d_y, void* d_x, float* partials, float* d_weight,
                           uint32_t* amax);

// out [T, C] = silu(gate) * up; the halves of each row of gate_up [T, 2C] are gate and up.
void LaunchSwiglu(const CudaRows& at, const void* gate_up, void* out, uint32_t* amax);
// Computes d_gate_up [T, 2C] from d_out [T, C] and, unless `out` is null, out as in LaunchSwiglu.
// d_gate_up may be the same memory as gate_up, and out the same as d_out. d_amax is the amax of
// d_gate_up, amax that of out; amax must be null unless both `out` and d_amax are given.
void LaunchSwigluBackward(const CudaRows& at, const void* gate_up, const void* d_out,
                          void* d_gate_up, void* out, uint32_t* d_amax, uint32_t* amax);

// Arguments of RMSNorm and rotary embedding of H query heads and K key heads of D elements; shapes
// as in model/layers/rotary.h.
struct CudaHeads {
  int64_t rows = 0;
  int query_heads = 0, key_heads = 0;
  int dim = 0;         // 64, 128 or 256
  int64_t stride = 0;  // of qkv and d_qkv: elements from one row to the next
  CudaType type = CudaType::kBFloat16;
  const void* q_weight = nullptr;  // [D]; null, as k_weight: no norm
  const void* k_weight = nullptr;
  const float* cos = nullptr;  // [positions, D / 2]
  const float* sin = nullptr;
  const int64_t* positions = nullptr;  // [T]
  void* stream = nullptr;
};

// Writes qk [T, (H + K) D], the normalized and rotated heads, and, with norm, rstd [T, H + K] fp32.
void LaunchHeadNormRotary(const CudaHeads& at, const void* qkv, float eps, void* qk, float* rstd);
// Number of rows [2 D] fp32 of `partials` that LaunchHeadNormRotaryBackward writes.
int64_t HeadPartials(const CudaHeads& at);
// Replaces the gradients of the rotated heads in d_qkv by those of the inputs, in place. With norm
// it also adds to d_q_weight and d_k_weight [D] fp32.
void LaunchHeadNormRotaryBackward(const CudaHeads& at, const void* qkv, const float* rstd,
                                  void* d_qkv, float* partials, float* d_q_weight,
                                  float* d_k_weight);

// For logits [T, C] fp32 with z = logits / temperature: lse = log sum exp z, log_prob = z[target] -
// lse, entropy = lse - sum softmax(z) z, each [T] fp32. targets: [T], columns.
void LaunchLogSoftmax(const CudaRows& at, const float* logits, float temperature,
                      const int64_t* targets, float* log_prob, float* entropy, float* lse);
// d_logits [T, C] of type at.type = d_log_prob / temperature (onehot(target) - softmax(z)).
void LaunchLogSoftmaxBackward(const CudaRows& at, const float* logits, float temperature,
                              const int64_t* targets, const float* lse, const float* d_log_prob,
                              void* d_logits);

// Adds each row of d_out [T, C] to its token's row of d_table [vocabulary, C] fp32. order: [T] row
// numbers of d_out, sorted by token (stable); sorted: [T] the tokens in that order.
void LaunchEmbeddingBackward(const CudaRows& at, const int64_t* sorted, const int64_t* order,
                             const void* d_out, float* d_table);

// Computes amax of x [T, C] bf16.
void LaunchAmax(const CudaRows& at, const void* x, uint32_t* amax);

// Outputs of LaunchQuantize; either `rows` or `columns` may be null. C is a multiple of 16.
struct CudaFp8Outputs {
  void* rows = nullptr;     // [T, C]
  void* columns = nullptr;  // [C, padded_rows], the transpose; elements from T on are zeros
  int64_t padded_rows = 0;  // T rounded up to a multiple of 16
  float* scale = nullptr;   // [1], x = FP8 value * scale
};
// Divides x [T, C] bf16 by a power of two and rounds it to FP8, see fp8_format.h. All outputs are
// NaN if *amax, the bits of the largest |x|, is not finite.
void LaunchQuantize(const CudaRows& at, Fp8Format format, const void* x, const uint32_t* amax,
                    const CudaFp8Outputs& to);
// Quantizes x [T, C] bf16 to E4M3 with one scale per row, a power of two: numbers[t] = x[t] /
// scales[t]. Only a row with an element that is not finite becomes NaN.
void LaunchQuantizeRows(const CudaRows& at, const void* x, void* numbers, float* scales);
// Quantize the output of LaunchRmsNorm on x [T, C], and of LaunchSwiglu on gate_up [T, 2C], as
// LaunchQuantizeRows does.
void LaunchNormQuantizeRows(const CudaRows& at, const void* x, const void* weight, float eps,
                            void* numbers, float* scales);
void LaunchSwigluQuantizeRows(const CudaRows& at, const void* gate_up, void* numbers,
                              float* scales);

// to[c] += sum over rows of from[row * stride + c], fp32.
void LaunchColumnSums(int64_t rows, int64_t cols, int64_t stride, const float* from, float* to,
                      void* stream);

// A copy of the rows of one matrix. Addresses and the three sizes are multiples of 16 bytes.
struct RowCopy {
  const void* from = nullptr;
  void* to = nullptr;
  int64_t from_stride = 0, to_stride = 0;  // bytes from one row to the next
  int64_t row = 0;                         // bytes per row
};

struct RowCopies {
  static constexpr int kMaxCopies = 8;
  RowCopy copies[kMaxCopies];
  int count = 0;

  // Call at most kMaxCopies times.
  void Add(const RowCopy& copy) { copies[count++] = copy; }
};

// Copies the first `present` rows of each matrix in one launch, and fills rows `present` to `rows`
// - 1 of each `to` with zeros.
void LaunchCopyRows(const RowCopies& copies, int64_t present, int64_t rows, void* stream);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_FUSED_KERNELS_H_
