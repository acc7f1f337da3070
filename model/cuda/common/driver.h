// Looks up functions of the CUDA driver at their first use, so that programs also start on machines
// without a driver.

#ifndef TRITONRL_MODEL_CUDA_COMMON_DRIVER_H_
#define TRITONRL_MODEL_CUDA_COMMON_DRIVER_H_

#include <c10/util/Exception.h>
#include <cuda.h>
#include <cuda_runtime_api.h>

#include "model/cuda/common/tensor_map_desc.h"

namespace tritonrl {

// Returns the driver function `name` in its CUDA 12.0 version. `Function` is its type in cuda.h.
// Throws c10::Error if this machine's driver lacks the function.
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

// Writes the TMA descriptor of `boxes` to *map. Returns an error if the driver does not support
// such boxes; throws c10::Error if the driver has no tensor maps.
inline CUresult EncodeTensorMap(const TensorMapDesc& boxes, CUtensorMap* map) {
  static const auto encode =
      FindDriverFunction<decltype(cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
  cuuint64_t sizes[3], strides[2];
  cuuint32_t box[3];
  const cuuint32_t steps[3] = {1, 1, 1};
  for (int i = 0; i < 3; ++i) {
    sizes[i] = static_cast<cuuint64_t>(boxes.sizes[i]);
    box[i] = static_cast<cuuint32_t>(boxes.box[i]);
    if (i < 2) strides[i] = static_cast<cuuint64_t>(boxes.strides[i]);
  }
  return encode(
      map,
      boxes.element_bytes == 1 ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
      3, const_cast<void*>(boxes.base), sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      boxes.box[0] * boxes.element_bytes == 128 ? CU_TENSOR_MAP_SWIZZLE_128B
                                                : CU_TENSOR_MAP_SWIZZLE_64B,
      CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_COMMON_DRIVER_H_
