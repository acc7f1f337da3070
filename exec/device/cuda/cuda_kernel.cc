#include "exec/device/cuda/cuda_kernel.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/device/cuda/launch_parameters.h"
#include "exec/device/kernel_table.h"
#include "exec/device/torch_errors.h"

namespace tritonrl::device {
namespace {

// Shared memory that every kernel may have without asking.
constexpr int64_t kPlainSharedBytes = 49'152;
constexpr int64_t kMaxScratchBytes = int64_t{4} << 30;
constexpr int64_t kPortableCluster = 8;

}  // namespace

absl::StatusOr<std::unique_ptr<LoadedKernel>> LoadedKernel::Load(
    CudaContext* context, CompiledKernel compiled, std::vector<ttir::Type> parameters) {
  const Driver& driver = context->driver();
  const int64_t limit = context->description().shared_bytes;
  if (compiled.shared_bytes > limit) {
    return OutOfResource("shared memory", compiled.shared_bytes, limit);
  }
  std::unique_ptr<LoadedKernel> kernel(
      new LoadedKernel(context, std::move(compiled), std::move(parameters)));
  CUresult result = driver.cuModuleLoadData(&kernel->module_, kernel->compiled_.cubin.data());
  if (result == CUDA_SUCCESS) {
    result = driver.cuModuleGetFunction(&kernel->function_, kernel->module_,
                                        kernel->compiled_.name.c_str());
  }
  if (result != CUDA_SUCCESS) {
    return absl::InvalidArgumentError(
        absl::StrCat("the kernel cannot be loaded: ", driver.ErrorText(result)));
  }
  kernel->compiled_.cubin.clear();
  CUfunction function = kernel->function_;
  driver.cuFuncGetAttribute(&kernel->registers_, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
  driver.cuFuncGetAttribute(&kernel->spilled_bytes_, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function);
  if (kernel->compiled_.shared_bytes > kPlainSharedBytes) {
    int fixed = 0;
    driver.cuFuncSetCacheConfig(function, CU_FUNC_CACHE_PREFER_SHARED);
    driver.cuFuncGetAttribute(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function);
    RETURN_IF_ERROR(driver.ToStatus(
        driver.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                  static_cast<int>(limit) - fixed),
        "give the kernel its shared memory"));
  }
  if (kernel->compiled_.num_ctas > kPortableCluster) {
    RETURN_IF_ERROR(driver.ToStatus(
        driver.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
        "give the kernel its cluster"));
  }
  return kernel;
}

LoadedKernel::~LoadedKernel() {
  // The driver would wait for what still runs.
  if (module_ == nullptr || context_->poisoned()) return;
  context_->driver().cuModuleUnload(module_);
}

absl::StatusOr<CUdeviceptr> LoadedKernel::Scratch(const std::array<int32_t, 3>& grid) {
  if (compiled_.global_scratch_bytes == 0) return 0;
  const double blocks =
      static_cast<double>(grid[0]) * grid[1] * grid[2] * static_cast<double>(compiled_.num_ctas);
  const double wanted = blocks * static_cast<double>(compiled_.global_scratch_bytes);
  if (wanted > static_cast<double>(kMaxScratchBytes)) {
    return absl::ResourceExhaustedError("the kernel needs too much scratch memory");
  }
  const auto bytes = static_cast<int64_t>(wanted) + compiled_.global_scratch_align;
  if (scratch_.empty() || scratch_.back().numel() < bytes) {
    RETURN_IF_ERROR(CatchTorch([&] {
      scratch_.push_back(
          at::empty({bytes}, at::TensorOptions().dtype(at::kByte).device(
                                 at::kCUDA, static_cast<c10::DeviceIndex>(context_->index()))));
    }));
  }
  const auto begin = reinterpret_cast<CUdeviceptr>(scratch_.back().data_ptr());
  const auto align = static_cast<CUdeviceptr>(compiled_.global_scratch_align);
  return (begin + align - 1) / align * align;
}

absl::Status LoadedKernel::Queue(const std::array<int32_t, 3>& grid,
                                 absl::Span<const LaunchArgument> arguments) {
  const Driver& driver = context_->driver();
  LaunchParameters parameters(driver);
  RETURN_IF_ERROR(parameters.Add(parameters_, arguments, compiled_.descriptors));
  ASSIGN_OR_RETURN(const CUdeviceptr scratch, Scratch(grid));
  parameters.AddPointer(scratch);
  parameters.AddPointer(0);  // of Triton's profiler
  const int64_t width = grid[0] * compiled_.num_ctas;
  if (width > INT32_MAX) return absl::InvalidArgumentError("the grid is too large");
  CUlaunchAttribute attributes[4] = {};
  unsigned int count = 0;
  if (compiled_.pdl) {
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attributes[count++].value.programmaticStreamSerializationAllowed = 1;
  }
  if (compiled_.cooperative) {
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attributes[count++].value.cooperative = 1;
  }
  if (compiled_.num_ctas > 1) {
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attributes[count].value.clusterDim = {static_cast<unsigned int>(compiled_.num_ctas), 1, 1};
    attributes[++count].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
    attributes[count++].value.clusterSchedulingPolicyPreference =
        CU_CLUSTER_SCHEDULING_POLICY_SPREAD;
  }
  CUlaunchConfig config = {};
  config.gridDimX = static_cast<unsigned int>(width);
  config.gridDimY = static_cast<unsigned int>(grid[1]);
  config.gridDimZ = static_cast<unsigned int>(grid[2]);
  config.blockDimX = static_cast<unsigned int>(32 * compiled_.num_warps);
  config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = static_cast<unsigned int>(compiled_.shared_bytes);
  config.hStream = context_->stream();
  config.attrs = attributes;
  config.numAttrs = count;
  const CUresult result =
      driver.cuLaunchKernelEx(&config, function_, parameters.pointers(), nullptr);
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  // The message of Triton's own launcher.
  return absl::InvalidArgumentError(
      absl::StrCat("Triton Error [CUDA]: ", driver.ErrorText(result)));
}

absl::Status CudaKernel::Launch(const std::array<int32_t, 3>& grid,
                                absl::Span<const LaunchArgument> arguments,
                                const LaunchSettings& settings) const {
  if (settings.counts != nullptr || settings.findings != nullptr) {
    return absl::UnimplementedError("a GPU neither counts nor checks what a kernel does");
  }
  if (context_->poisoned()) return absl::AbortedError("the GPU was lost before");
  if (settings.bare) return plain_->Queue(grid, arguments);
  const bool tags = settings.shadow_tag != 0 && tagged_ != nullptr;
  RETURN_IF_ERROR((tags ? *tagged_ : *plain_).Queue(grid, arguments));
  return context_->Wait(settings.expired);
}

}  // namespace tritonrl::device
