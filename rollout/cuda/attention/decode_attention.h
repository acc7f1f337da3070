// Launch of split-KV decode attention over a paged cache (decode_kernel.cuh).

#ifndef TRITONRL_ROLLOUT_CUDA_ATTENTION_DECODE_ATTENTION_H_
#define TRITONRL_ROLLOUT_CUDA_ATTENTION_DECODE_ATTENTION_H_

#include <cstdint>

#include "rollout/cuda/attention/decode_plan.h"
#include "rollout/cuda/attention/paged_kv_layout.h"

namespace tritonrl {

// Arguments of a launch of R rows with at most N parts in total. All pointers are GPU memory.
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
  // Scratch for rows with several parts: results of parts [N, H, D] bf16, base-2 logarithms of
  // their sums of weights [N, H], and the number of finished parts [R, H], zero before and after a
  // launch.
  void* parts = nullptr;
  float* lses = nullptr;
  int32_t* arrived = nullptr;
  float scale = 0;            // of the scores, above 0
  bool overlap = false;       // programmatic dependent launch (Hopper)
  bool threads_copy = false;  // threads copy pages, as on GPUs before Hopper
  void* stream = nullptr;     // a cudaStream_t
};

// The launch can be captured in a CUDA graph. A row's bits depend only on its own inputs and its
// split into parts. Throws c10::Error if the launch is refused.
void LaunchDecodeTiles(const DecodeAttention& at);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_ATTENTION_DECODE_ATTENTION_H_
