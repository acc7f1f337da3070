// The table of kernels of the instruction set this file is compiled for.

#ifndef TRITONRL_MODEL_CPU_KERNEL_TABLE_H_
#define TRITONRL_MODEL_CPU_KERNEL_TABLE_H_

#include "model/cpu/attention_kernels.h"
#include "model/cpu/gemm_kernel.h"
#include "model/cpu/kernels.h"
#include "model/cpu/row_kernels.h"

namespace tritonrl {
namespace TRITONRL_SIMD_NAMESPACE {

inline constexpr CpuKernels MakeTable(const char* name) {
  return {
      .name = name,
      .gemm = Gemm,
      .transpose = Transpose,
      .rms_norm = RmsNorm,
      .rms_norm_apply = RmsNormApply,
      .rms_norm_backward = RmsNormBackward,
      .head_norm_rotary = HeadNormRotary,
      .head_norm_rotary_backward = HeadNormRotaryBackward,
      .swiglu = Swiglu,
      .swiglu_flat = SwigluFlat,
      .swiglu_backward = SwigluBackward,
      .attention_scratch = AttentionScratch,
      .attention = Attention,
      .attention_backward = AttentionBackward,
      .attention_paged = AttentionPaged,
      .log_softmax = LogSoftmax,
      .log_softmax_backward = LogSoftmaxBackward,
      .add = AddTo,
  };
}

}  // namespace TRITONRL_SIMD_NAMESPACE
}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CPU_KERNEL_TABLE_H_
