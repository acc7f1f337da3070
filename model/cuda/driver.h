// Functions of the CUDA driver, found when they are first needed: programs start on machines that
// have none.
#ifndef TRITONRL_MODEL_CUDA_DRIVER_H_
#define TRITONRL_MODEL_CUDA_DRIVER_H_

#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>

namespace tritonrl {

// The function `name` as it is since CUDA 12.0; Function: the type of its declaration in cuda.h.
// Throws c10::Error if this machine's driver has none.
template <typename Function>
Function* FindDriverFunction(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result);
  TORCH_CHECK(error == cudaSuccess && result == cudaDriverEntryPointSuccess && found != nullptr,
              "this machine's CUDA driver has no ", name);
  return reinterpret_cast<Function*>(found);
}

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_DRIVER_H_
