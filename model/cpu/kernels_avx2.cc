#include "model/cpu/kernel_table.h"

namespace tritonrl {

const CpuKernels& Avx2Kernels() {
  static constexpr CpuKernels kTable = TRITONRL_SIMD_NAMESPACE::MakeTable("avx2");
  return kTable;
}

}  // namespace tritonrl
