// Helpers of the kernel launchers: conversion of a run-time type to a template argument, and the
// check for launch errors.

#ifndef TRITONRL_MODEL_CUDA_FUSED_DISPATCH_CUH_
#define TRITONRL_MODEL_CUDA_FUSED_DISPATCH_CUH_

#include <c10/util/Exception.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "model/cuda/fused/kernels.h"

namespace tritonrl {

inline cudaStream_t StreamOf(void* stream) { return static_cast<cudaStream_t>(stream); }

// Calls function.operator()<T>() with the C++ type T of `type`.
template <typename Function>
void ForType(CudaType type, Function function) {
  if (type == CudaType::kFloat) {
    function.template operator()<float>();
  } else {
    function.template operator()<__nv_bfloat16>();
  }
}

// Throws c10::Error with `what` in its message if the last launch failed.
inline void CheckLaunch(const char* what) {
  const cudaError_t error = cudaGetLastError();
  TORCH_CHECK(error == cudaSuccess, what, ": ", cudaGetErrorString(error));
}

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_FUSED_DISPATCH_CUH_
