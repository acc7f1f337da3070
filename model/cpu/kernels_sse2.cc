#include "model/cpu/kernel_table.h"

namespace tritonrl {

const CpuKernels& Sse2Kernels() {
  static constexpr CpuKernels kTable = TRITONRL_SIMD_NAMESPACE::MakeTable("sse2");
  return kTable;
}

}  // namespace tritonrl
