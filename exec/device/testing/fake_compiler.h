// Kernels for tests, without Triton IR.
#ifndef TRITONRL_EXEC_DEVICE_TESTING_FAKE_COMPILER_H_
#define TRITONRL_EXEC_DEVICE_TESTING_FAKE_COMPILER_H_

#include <memory>

#include "exec/device/kernel_compiler.h"

namespace tritonrl::device {

// Knows the texts "add" (out = x + y: x, y, out, count of floats), "scale" (x *= factor, in place:
// x, count, factor), "table" (as add, with one pointer to a table of the three addresses, and the
// count), and "wild" (an access out of bounds). It checks bounds as the executor of Triton IR does.
class FakeCompiler : public KernelCompiler {
 public:
  absl::StatusOr<std::shared_ptr<const LaunchableKernel>> CompileTtir(
      absl::string_view text, const KernelOptions& options) override;
  int compiled() const { return compiled_; }

 private:
  int compiled_ = 0;
};

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_TESTING_FAKE_COMPILER_H_
