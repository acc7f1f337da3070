// A kernel's machine code in the GPU's context, and its launch through the driver.
#ifndef TRITONRL_EXEC_DEVICE_CUDA_CUDA_KERNEL_H_
#define TRITONRL_EXEC_DEVICE_CUDA_CUDA_KERNEL_H_

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "exec/device/cuda/compile_workers.h"
#include "exec/device/cuda/context.h"
#include "exec/device/kernel_compiler.h"
#include "exec/ttir/operation.h"

namespace tritonrl::device {

// One cubin, loaded. `parameters` are the types of the arguments of the Triton IR's function.
class LoadedKernel {
 public:
  // InvalidArgument "out of resource: shared memory, Required: ..., Hardware limit: ..." and what
  // else the driver refuses.
  static absl::StatusOr<std::unique_ptr<LoadedKernel>> Load(CudaContext* context,
                                                            CompiledKernel compiled,
                                                            std::vector<ttir::Type> parameters);
  ~LoadedKernel();
  LoadedKernel(const LoadedKernel&) = delete;
  LoadedKernel& operator=(const LoadedKernel&) = delete;

  // Puts a launch on the context's stream. InvalidArgument: the arguments do not fit, or the driver
  // refuses the launch.
  absl::Status Queue(const std::array<int32_t, 3>& grid,
                     absl::Span<const LaunchArgument> arguments);

  int registers() const { return registers_; }
  int spilled_bytes() const { return spilled_bytes_; }
  const CompiledKernel& compiled() const { return compiled_; }

 private:
  LoadedKernel(CudaContext* context, CompiledKernel compiled, std::vector<ttir::Type> parameters)
      : context_(context), compiled_(std::move(compiled)), parameters_(std::move(parameters)) {}
  absl::StatusOr<CUdeviceptr> Scratch(const std::array<int32_t, 3>& grid);

  CudaContext* context_;
  CompiledKernel compiled_;
  std::vector<ttir::Type> parameters_;
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
  int registers_ = 0;
  int spilled_bytes_ = 0;
  std::vector<at::Tensor> scratch_;  // the last is in use; graphs may use those before it
};

// A plain kernel, and one that also stores tags.
class CudaKernel : public LaunchableKernel {
 public:
  CudaKernel(CudaContext* context, std::unique_ptr<LoadedKernel> plain,
             std::unique_ptr<LoadedKernel> tagged)
      : context_(context), plain_(std::move(plain)), tagged_(std::move(tagged)) {}

  // As LaunchableKernel::Launch, and Unimplemented if counts or findings are asked for. OutOfRange
  // "out of bounds ...": an access was illegal, and the context is lost.
  absl::Status Launch(const std::array<int32_t, 3>& grid,
                      absl::Span<const LaunchArgument> arguments,
                      const LaunchSettings& settings) const override;
  const LoadedKernel& plain() const { return *plain_; }

 private:
  CudaContext* context_;
  std::unique_ptr<LoadedKernel> plain_;
  std::unique_ptr<LoadedKernel> tagged_;
};

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_CUDA_CUDA_KERNEL_H_
