// The fused kernels of kernels.h on tensors: what each layer kind calls on a GPU. Shapes are those
// of the layers' own headers.
#ifndef TRITONRL_MODEL_CUDA_LAYERS_H_
#define TRITONRL_MODEL_CUDA_LAYERS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace tritonrl {

// Whether the kernels take this matrix: on a GPU, fp32 or bf16, rows of a multiple of 8 elements
// that begin at multiples of 16 bytes. Everything else goes through ATen.
bool CudaTakes(const at::Tensor& x);

// Whether RMSNorm takes rows [T, C] too: C at most 8,192.
bool CudaTakesNorm(const at::Tensor& x);

// Where `amax` is not null, it becomes the largest |x| of the result, see CudaNewAmax.

// x: [T, C]. Returns the normed rows; *rstd becomes [T] fp32.
at::Tensor CudaRmsNormForward(const at::Tensor& x, const at::Tensor& weight, double eps,
                              at::Tensor* rstd, at::Tensor* amax);
at::Tensor CudaRmsNormAgain(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& rstd,
                            at::Tensor* amax);
// d_x and d_weight (fp32) are added to; amax: of d_x.
void CudaRmsNormBackward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& rstd,
                         const at::Tensor& d_y, at::Tensor d_x, at::Tensor d_weight,
                         at::Tensor* amax);

// gate_up: [T, 2F]. Returns [T, F].
at::Tensor CudaSwigluForward(const at::Tensor& gate_up, at::Tensor* amax);
// Writes the gradient of gate_up to d_gate_up [T, 2F], which may be gate_up; with `again` d_out
// [T, F] becomes silu(gate) * up. d_amax, amax: of the two, see SwigluBackward.
void CudaSwigluBackward(const at::Tensor& gate_up, at::Tensor d_out, at::Tensor d_gate_up,
                        bool again, at::Tensor* d_amax, at::Tensor* amax);

// The heads of a row of qkv, and what turns them.
struct CudaHeadNorm {
  int64_t query_heads, key_heads, dim;
  at::Tensor q_weight, k_weight;  // [D] or undefined
  at::Tensor cos, sin;            // [positions, D / 2] fp32
  at::Tensor positions;           // [T] int64
};
bool CudaTakesHeads(const at::Tensor& qkv, const CudaHeadNorm& heads);
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

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_LAYERS_H_
