// Kernels of Triton IR on a GPU.
#ifndef TRITONRL_EXEC_DEVICE_CUDA_CUDA_COMPILER_H_
#define TRITONRL_EXEC_DEVICE_CUDA_CUDA_COMPILER_H_

#include <cstdint>
#include <memory>

#include "exec/device/cuda/compile_workers.h"
#include "exec/device/cuda/context.h"
#include "exec/device/kernel_compiler.h"
#include "exec/device/kernel_table.h"

namespace tritonrl::device {

class CudaCompiler : public KernelCompiler {
 public:
  // `tag_distance`: from a byte to its tag (CudaArena::tag_distance).
  CudaCompiler(CudaContext* context, CompileWorkers* workers, int64_t tag_distance)
      : variants_(context, workers, tag_distance) {}

  // Two variants are compiled at once: the plain one, and one whose stores are tagged. Kernels that
  // differ in source locations alone are compiled once, while they are among the last. Inline
  // assembly and functions of other libraries than libdevice are Unimplemented.
  absl::StatusOr<std::shared_ptr<const LaunchableKernel>> CompileTtir(
      absl::string_view text, const KernelOptions& options) override;
  bool uses_options() const override { return true; }

 private:
  // What is behind the cache.
  class Variants : public KernelCompiler {
   public:
    Variants(CudaContext* context, CompileWorkers* workers, int64_t tag_distance)
        : context_(context), workers_(workers), tag_distance_(tag_distance) {}
    absl::StatusOr<std::shared_ptr<const LaunchableKernel>> CompileTtir(
        absl::string_view text, const KernelOptions& options) override;
    bool uses_options() const override { return true; }

   private:
    CudaContext* context_;
    CompileWorkers* workers_;
    int64_t tag_distance_;
  };

  static constexpr size_t kMaxKernels = 512;

  Variants variants_;
  KernelCache cache_{&variants_, kMaxKernels};
};

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_CUDA_CUDA_COMPILER_H_
