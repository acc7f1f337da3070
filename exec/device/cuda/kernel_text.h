// Triton IR as text: what a GPU's kernel does not need is left out, so that kernels that differ in
// nothing else are compiled once.
#ifndef TRITONRL_EXEC_DEVICE_CUDA_KERNEL_TEXT_H_
#define TRITONRL_EXEC_DEVICE_CUDA_KERNEL_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "exec/ttir/operation.h"

namespace tritonrl::device {

// Without source locations. Lines stay where they are.
std::string WithoutLocations(absl::string_view text);

// Without tt.print: a kernel must not write to our output. `module` is what `text` was parsed to.
// Unimplemented: a line with a print has other operations too.
absl::StatusOr<std::string> WithoutPrints(absl::string_view text, const ttir::Module& module);

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_CUDA_KERNEL_TEXT_H_
