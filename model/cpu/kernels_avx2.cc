#include "model/cpu/kernel_table.h"

namespace tritonrl {

const CpuKernels& Avx2Kernels() {
  static constexpr CpuKernels kTable = simd_avx2::MakeTable("avx2");
  return kTable;
}

}  // namespace tritonrl
