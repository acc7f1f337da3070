// Describes the boxes of a tensor that TMA copies to shared memory (TmaCopy in ptx.cuh). The header
// is plain C++ without CUDA types.

#ifndef TRITONRL_MODEL_CUDA_COMMON_TENSOR_MAP_DESC_H_
#define TRITONRL_MODEL_CUDA_COMMON_TENSOR_MAP_DESC_H_

#include <array>
#include <cstdint>

namespace tritonrl {

// Boxes [box[2], box[1], box[0]] of a tensor [sizes[2], sizes[1], sizes[0]] whose last dimension is
// contiguous. Lines of box[0] elements are 64 or 128 bytes; the hardware swizzles their 16-byte
// packs in shared memory (CU_TENSOR_MAP_SWIZZLE_64B or _128B).
struct TensorMapDesc {
  const void* base = nullptr;
  int64_t element_bytes = 2;       // 2: bf16, 1: FP8
  std::array<int64_t, 3> sizes;    // elements
  std::array<int64_t, 2> strides;  // bytes from one index to the next in dimensions 1 and 2
  std::array<int64_t, 3> box;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_COMMON_TENSOR_MAP_DESC_H_
