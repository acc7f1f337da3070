// Boxes as the tensor memory accelerator is told them.
#ifndef TRITONRL_MODEL_CUDA_TENSOR_MAP_H_
#define TRITONRL_MODEL_CUDA_TENSOR_MAP_H_

#include <cuda.h>

#include "model/cuda/driver.h"
#include "model/cuda/tensor_boxes.h"

namespace tritonrl {

// Writes `map`. An error if the driver does not take such boxes; throws c10::Error if it knows
// none.
inline CUresult EncodeBoxes(const TensorBoxes& boxes, CUtensorMap* map) {
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

#endif  // TRITONRL_MODEL_CUDA_TENSOR_MAP_H_
