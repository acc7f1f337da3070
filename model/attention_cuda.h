// Attention of packed sequences on a GPU through ATen's memory-efficient kernel, which takes the
// sequences' offsets: a few launches for any number of sequences, no padding.

#ifndef TRITONRL_MODEL_ATTENTION_CUDA_H_
#define TRITONRL_MODEL_ATTENTION_CUDA_H_

#include <ATen/core/Tensor.h>

#include "model/attention.h"

namespace tritonrl {

// As AttentionForward; *lse: [n, H, longest sequence rounded up by the kernel].
at::Tensor AttentionForwardCuda(const ModelConfig& config, const SequenceLayout& layout,
                                const at::Tensor& qk, const at::Tensor& qkv, at::Tensor* lse);

// As AttentionBackward.
void AttentionBackwardCuda(const ModelConfig& config, const SequenceLayout& layout,
                           const at::Tensor& qk, const at::Tensor& qkv, const at::Tensor& out,
                           const at::Tensor& lse, const at::Tensor& d_out, at::Tensor d_qkv);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_ATTENTION_CUDA_H_
