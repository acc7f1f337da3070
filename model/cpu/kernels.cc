#include "model/cpu/kernels.h"

namespace tritonrl {

const CpuKernels& BestCpuKernels() {
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  if (avx512 && avx2) return Avx512Kernels();
  if (avx2) return Avx2Kernels();
  return Sse2Kernels();
}

}  // namespace tritonrl
