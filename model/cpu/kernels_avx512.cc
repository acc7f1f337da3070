#include "model/cpu/kernel_table.h"

namespace tritonrl {

const CpuKernels& Avx512Kernels() {
  static constexpr CpuKernels kTable = TRITONRL_SIMD_NAMESPACE::MakeTable("avx512");
  return kTable;
}

}  // namespace tritonrl
