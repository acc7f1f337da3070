// Results of attention over the parts of split sequences, put together.
#ifndef TRITONRL_ROLLOUT_CUDA_MERGE_PARTS_H_
#define TRITONRL_ROLLOUT_CUDA_MERGE_PARTS_H_

#include <cstdint>

namespace tritonrl {

// R rows of H heads of D elements (64 or 128). Row r's parts are [begins[r], begins[r + 1]), summed
// in this order; a row without parts gets zeros. All pointers are GPU memory.
struct PartsMerge {
  int rows = 0, heads = 0, dim = 0;
  const void* parts = nullptr;      // [parts, H, D] bf16, each normalised by itself
  const float* lses = nullptr;      // [parts, H] base-2 logarithms of their sums
  const int32_t* begins = nullptr;  // [R + 1]
  void* out = nullptr;              // [R, H, D] bf16
  bool overlap = false;             // may begin while the kernel before it ends (Hopper)
  void* stream = nullptr;           // a cudaStream_t
};

// Can be captured. Throws c10::Error for other sizes, or if the launch is refused.
void LaunchMergeParts(const PartsMerge& at);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_MERGE_PARTS_H_
