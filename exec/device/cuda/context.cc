#include "exec/device/cuda/context.h"

#include <ATen/Context.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "exec/device/torch_errors.h"

namespace tritonrl::device {
namespace {

// A kernel that takes less is waited for without sleeping.
constexpr absl::Duration kSpin = absl::Microseconds(300);
constexpr absl::Duration kSleep = absl::Microseconds(50);

}  // namespace

absl::StatusOr<std::unique_ptr<CudaContext>> CudaContext::Create(int index) {
  ASSIGN_OR_RETURN(const Driver* driver, Driver::Get());
  std::optional<c10::Stream> stream;
  const absl::Status started = CatchTorch([&] {
    TORCH_CHECK(c10::cuda::device_count() > index, "there is no GPU ", index);
    at::globalContext().lazyInitDevice(at::kCUDA);
    c10::cuda::set_device(static_cast<c10::DeviceIndex>(index));
    stream = c10::cuda::getStreamFromPool(false, static_cast<c10::DeviceIndex>(index)).unwrap();
  });
  if (!started.ok()) return absl::UnavailableError(started.message());
  std::unique_ptr<CudaContext> context(new CudaContext(*driver, index, *stream));
  RETURN_IF_ERROR(context->Describe());
  RETURN_IF_ERROR(context->MakeCurrent());
  return context;
}

absl::Status CudaContext::Describe() {
  RETURN_IF_ERROR(driver_.ToStatus(driver_.cuDeviceGet(&device_, index_), "find the GPU"));
  const auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    driver_.cuDeviceGetAttribute(&value, which, device_);
    return value;
  };
  description_.capability_major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  description_.capability_minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  description_.multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  description_.shared_bytes = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  return CatchTorch([&] {
    const cudaDeviceProp* const properties = at::cuda::getDeviceProperties(index_);
    description_.name = properties->name;
    description_.total_bytes = static_cast<int64_t>(properties->totalGlobalMem);
  });
}

absl::Status CudaContext::MakeCurrent() {
  CUcontext primary = nullptr;
  RETURN_IF_ERROR(
      driver_.ToStatus(driver_.cuDevicePrimaryCtxRetain(&primary, device_), "use the GPU"));
  RETURN_IF_ERROR(driver_.ToStatus(driver_.cuCtxSetCurrent(primary), "use the GPU"));
  return CatchTorch([&] {
    c10::cuda::set_device(static_cast<c10::DeviceIndex>(index_));
    c10::cuda::setCurrentCUDAStream(c10::cuda::CUDAStream(stream_));
  });
}

CUstream CudaContext::stream() const { return c10::cuda::CUDAStream(stream_).stream(); }

absl::Status CudaContext::Wait(const std::function<bool()>& expired) {
  const absl::Time began = absl::Now();
  while (true) {
    const CUresult result = driver_.cuStreamQuery(stream());
    if (result == CUDA_SUCCESS) return absl::OkStatus();
    if (result != CUDA_ERROR_NOT_READY) {
      set_poisoned();
      const std::string text = driver_.ErrorText(result);
      const bool address =
          result == CUDA_ERROR_ILLEGAL_ADDRESS || result == CUDA_ERROR_MISALIGNED_ADDRESS ||
          result == CUDA_ERROR_INVALID_ADDRESS_SPACE || result == CUDA_ERROR_INVALID_PC;
      return address ? absl::OutOfRangeError(absl::StrCat("out of bounds: ", text))
                     : absl::AbortedError(absl::StrCat("CUDA error: ", text));
    }
    if (absl::Now() - began < kSpin) continue;
    if (expired != nullptr && expired()) {
      set_poisoned();
      return absl::DeadlineExceededError("the GPU still works at the deadline");
    }
    absl::SleepFor(kSleep);
  }
}

}  // namespace tritonrl::device
