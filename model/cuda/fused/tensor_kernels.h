#ifndef TRITONRL_MODEL_CUDA_FUSED_TENSOR_KERNELS_H_
#define TRITONRL_MODEL_CUDA_FUSED_TENSOR_KERNELS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "model/cuda/common/fp8_format.h"

// The fused kernels of kernels.h on tensors: what each layer kind calls on a GPU. Shapes are those
// of the layers' own headers.
//
// bf16 matrices on a GPU to the fp8 operands of CudaGemm::MultiplyFp8.

namespace tritonrl {

// Whether the kernels take this matrix: on a GPU, fp32 or bf16, rows of a multiple of 8 elements
// that begin at multiples of 16 bytes. Everything else goes through ATen.
bool CudaSupports(const at::Tensor& x);

// Whether RMSNorm takes rows [T, C] too: C at most 8,192.
bool CudaSupportsNorm(const at::Tensor& x);

// Where `amax` is not null, it becomes the largest |x| of the result, see NewCudaAmax.

// x: [T, C]. Returns the normed rows; *rstd becomes [T] fp32.
at::Tensor CudaRmsNormForward(const at::Tensor& x, const at::Tensor& weight, double eps,
                              at::Tensor* rstd, at::Tensor* amax);
at::Tensor CudaRecomputeRmsNorm(const at::Tensor& x, const at::Tensor& weight,
                                const at::Tensor& rstd, at::Tensor* amax);
// d_x and d_weight (fp32) are added to; amax: of d_x.
void CudaRmsNormBackward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& rstd,
                         const at::Tensor& d_y, at::Tensor d_x, at::Tensor d_weight,
                         at::Tensor* amax);

// gate_up: [T, 2F]. Returns [T, F].
at::Tensor CudaSwigluForward(const at::Tensor& gate_up, at::Tensor* amax);
// Writes the gradient of gate_up to d_gate_up [T, 2F], which may be gate_up; with `recompute_out`
// d_out [T, F] becomes silu(gate) * up. d_amax, amax: of the two, see SwigluBackward.
void CudaSwigluBackward(const at::Tensor& gate_up, at::Tensor d_out, at::Tensor d_gate_up,
                        bool recompute_out, at::Tensor* d_amax, at::Tensor* amax);

// The heads of a row of qkv, and what turns them.
struct CudaHeadNorm {
  int64_t query_heads, key_heads, dim;
  at::Tensor q_weight, k_weight;  // [D] or undefined
  at::Tensor cos, sin;            // [positions, D / 2] fp32
  at::Tensor positions;           // [T] int64
};
bool CudaSupportsHeads(const at::Tensor& qkv, const CudaHeadNorm& heads);
at::Tensor CudaHeadNormRotaryForward(const at::Tensor& qkv, const CudaHeadNorm& heads, double eps,
                                     at::Tensor* rstd);
void CudaHeadNormRotaryBackward(const at::Tensor& qkv, const at::Tensor& rstd,
                                const CudaHeadNorm& heads, at::Tensor d_qkv, at::Tensor d_q_weight,
                                at::Tensor d_k_weight);

// logits: [R, V] fp32; targets: [R] int64; the others [R] fp32.
void CudaLogSoftmaxForward(const at::Tensor& logits, double temperature, const at::Tensor& targets,
                           at::Tensor log_probs, at::Tensor entropy, at::Tensor lse);
// Writes d_logits [R, V].
void CudaLogSoftmaxBackward(const at::Tensor& logits, double temperature, const at::Tensor& targets,
                            const at::Tensor& lse, const at::Tensor& d_log_probs,
                            at::Tensor d_logits);

// d_table [V, C] fp32 += rows of d_out [T, C] by token.
void CudaEmbeddingBackward(const at::Tensor& tokens, const at::Tensor& d_out, at::Tensor d_table);

// Whether the GPU multiplies FP8 values: compute capability 8.9 or later.
bool CudaHasFp8(at::Device device);

struct CudaFp8Matrix {
  at::Tensor rows;     // [R, C] of the format, or undefined
  at::Tensor columns;  // [C, R rounded up to 16], zeros behind, or undefined
  at::Tensor scale;    // [1] fp32: what the numbers are to be multiplied by, a power of two, or NaN
};

// A zero, for the kernels that raise it to the largest |x| of what they write. [1] int32, the bits
// of an fp32 number.
at::Tensor NewCudaAmax(const at::Tensor& like);

// x: [R, C] bf16 that CudaSupports, C a multiple of 16. amax: from the kernel that made x, or
// undefined: then x is read once more. Nothing waits for the GPU.
CudaFp8Matrix CudaQuantize(const at::Tensor& x, Fp8Format format, bool rows, bool columns,
                           at::Tensor amax);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_FUSED_TENSOR_KERNELS_H_
