// The table of kernels of one instruction set. The BUILD file compiles this file once per set.

#include "model/cpu/attention_kernels.h"
#include "model/cpu/gemm_kernel.h"
#include "model/cpu/kernels.h"
#include "model/cpu/row_kernels.h"

namespace tritonrl {
namespace TRITONRL_SIMD_NAMESPACE {
namespace {

constexpr CpuKernels MakeTable(const char* name) {
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

}  // namespace
}  // namespace TRITONRL_SIMD_NAMESPACE

#if defined(__AVX512F__)
const CpuKernels& Avx512Kernels() {
  static constexpr CpuKernels kTable = TRITONRL_SIMD_NAMESPACE::MakeTable("avx512");
  return kTable;
}
#elif defined(__AVX2__) && defined(__FMA__)
const CpuKernels& Avx2Kernels() {
  static constexpr CpuKernels kTable = TRITONRL_SIMD_NAMESPACE::MakeTable("avx2");
  return kTable;
}
#else
const CpuKernels& Sse2Kernels() {
  static constexpr CpuKernels kTable = TRITONRL_SIMD_NAMESPACE::MakeTable("sse2");
  return kTable;
}
#endif

}  // namespace tritonrl
