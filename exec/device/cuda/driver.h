// The functions of NVIDIA's driver that are called here, found when the program runs: it starts on
// machines without a GPU too.
#ifndef TRITONRL_EXEC_DEVICE_CUDA_DRIVER_H_
#define TRITONRL_EXEC_DEVICE_CUDA_DRIVER_H_

#include <cuda.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// Names as cuda.h maps them to versions.
#define TRITONRL_DRIVER_FUNCTIONS(F) \
  F(cuInit)                          \
  F(cuDeviceGet)                     \
  F(cuDeviceGetAttribute)            \
  F(cuDevicePrimaryCtxRetain)        \
  F(cuCtxSetCurrent)                 \
  F(cuGetErrorString)                \
  F(cuMemAddressReserve)             \
  F(cuMemAddressFree)                \
  F(cuMemCreate)                     \
  F(cuMemRelease)                    \
  F(cuMemMap)                        \
  F(cuMemUnmap)                      \
  F(cuMemSetAccess)                  \
  F(cuMemGetAllocationGranularity)   \
  F(cuModuleLoadData)                \
  F(cuModuleUnload)                  \
  F(cuModuleGetFunction)             \
  F(cuFuncGetAttribute)              \
  F(cuFuncSetAttribute)              \
  F(cuFuncSetCacheConfig)            \
  F(cuLaunchKernelEx)                \
  F(cuTensorMapEncodeTiled)          \
  F(cuStreamQuery)                   \
  F(cuEventCreate)                   \
  F(cuEventDestroy)                  \
  F(cuEventRecordWithFlags)          \
  F(cuEventElapsedTime)              \
  F(cuMemImportFromShareableHandle)

namespace tritonrl::device {

struct Driver {
#define TRITONRL_DRIVER_MEMBER(name) decltype(&::name) name = nullptr;
  TRITONRL_DRIVER_FUNCTIONS(TRITONRL_DRIVER_MEMBER)
#undef TRITONRL_DRIVER_MEMBER

  // The driver of this machine, initialised. Unavailable: there is none, or it lacks a function.
  static absl::StatusOr<const Driver*> Get();

  // What the driver says of an error, as "an illegal memory access was encountered".
  std::string ErrorText(CUresult error) const;
  // Internal "cannot <action>: <error>"; ResourceExhausted if memory is missing.
  absl::Status ToStatus(CUresult result, absl::string_view action) const;
};

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_CUDA_DRIVER_H_
