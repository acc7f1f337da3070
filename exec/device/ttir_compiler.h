// Kernels of Triton IR on the CPU.
#ifndef TRITONRL_EXEC_DEVICE_TTIR_COMPILER_H_
#define TRITONRL_EXEC_DEVICE_TTIR_COMPILER_H_

#include <memory>

#include "exec/device/kernel_compiler.h"

namespace tritonrl::device {

class TtirCompiler : public KernelCompiler {
 public:
  absl::StatusOr<std::shared_ptr<const LaunchableKernel>> CompileTtir(
      absl::string_view text, const KernelOptions& options) override;
};

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_TTIR_COMPILER_H_
