#include "model/cpu/kernel_table.h"

namespace tritonrl {

const CpuKernels& Sse2Kernels() {
  static constexpr CpuKernels kTable = simd_sse2::MakeTable("sse2");
  return kTable;
}

}  // namespace tritonrl
