// Attention of one token a row over a paged cache, in parts (decode_kernel.cuh).
#ifndef TRITONRL_ROLLOUT_CUDA_ATTENTION_DECODE_ATTENTION_H_
#define TRITONRL_ROLLOUT_CUDA_ATTENTION_DECODE_ATTENTION_H_

#include <cstdint>

#include "rollout/cuda/attention/decode_plan.h"
#include "rollout/cuda/attention/paged_kv_layout.h"

namespace tritonrl {

// All pointers are GPU memory. R rows, N parts of rows of a plan at most.
struct DecodeAttention {
  CacheHeads shape;
  const void* queries = nullptr;  // [R, H, D] bf16
  const void* keys = nullptr;     // pools of a layer
  const void* values = nullptr;
  const int32_t* page_table = nullptr;
  const DecodeTile* tiles = nullptr;
  const DecodeRow* rows = nullptr;
  const int32_t* used_tiles = nullptr;
  int max_tiles = 0;    // N
  void* out = nullptr;  // [R, H, D] bf16
  // Temporary: what the parts of divided rows give, [N, H, D] bf16, the base-2 logarithms of their
  // sums of weights [N, H], and how many have come, [R, H], which are zeros before and after.
  void* parts = nullptr;
  float* lses = nullptr;
  int32_t* arrived = nullptr;
  float scale = 0;            // of the scores, above 0
  bool overlap = false;       // may begin while the kernel before it ends (Hopper)
  bool threads_copy = false;  // pages come as on GPUs before Hopper
  void* stream = nullptr;     // a cudaStream_t
};

// Can be captured. A row's results have the same bits whatever else is computed and wherever, if
// the plan divides it alike.
// Throws c10::Error if the launch is refused.
void LaunchDecodeTiles(const DecodeAttention& at);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_ATTENTION_DECODE_ATTENTION_H_
