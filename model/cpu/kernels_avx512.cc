#include "model/cpu/kernel_table.h"

namespace tritonrl {

const CpuKernels& Avx512Kernels() {
  static constexpr CpuKernels kTable = simd_avx512::MakeTable("avx512");
  return kTable;
}

}  // namespace tritonrl
