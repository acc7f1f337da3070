#include "exec/ttir/run/kernels/kernels.h"

#include "exec/ttir/run/kernels/sets.h"

namespace tritonrl::ttir {

Lane LaneOf(const Type& type) {
  if (type.pointer_levels() > 0) return Lane::kI64;
  switch (type.element()) {
    case ScalarKind::kI1:
      return Lane::kBool;
    case ScalarKind::kI8:
      return Lane::kI8;
    case ScalarKind::kI16:
      return Lane::kI16;
    case ScalarKind::kI32:
      return Lane::kI32;
    case ScalarKind::kI64:
    case ScalarKind::kIndex:
      return Lane::kI64;
    case ScalarKind::kF64:
      return Lane::kF64;
    default:
      return Lane::kF32;
  }
}

int LaneBytes(Lane lane) {
  switch (lane) {
    case Lane::kBool:
    case Lane::kI8:
      return 1;
    case Lane::kI16:
      return 2;
    case Lane::kI32:
    case Lane::kF32:
      return 4;
    default:
      return 8;
  }
}

const KernelSet& BestKernels() {
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  // Every processor with AVX2 has F16C.
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  if (avx512 && avx2) return avx512_set::Kernels();
  if (avx2) return avx2_set::Kernels();
  return sse2_set::Kernels();
}

}  // namespace tritonrl::ttir
