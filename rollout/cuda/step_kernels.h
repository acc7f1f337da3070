// Kernels of a generation step besides GEMMs, attention, norms and SwiGLU (model/cuda/fused).
//
// All pointers are GPU memory, 16-byte aligned. Launches go to `stream` (a cudaStream_t), may be
// captured in a CUDA graph, and throw c10::Error if they are refused.

#ifndef TRITONRL_ROLLOUT_CUDA_STEP_KERNELS_H_
#define TRITONRL_ROLLOUT_CUDA_STEP_KERNELS_H_

#include <cstdint>

#include "rollout/cuda/attention/paged_kv_layout.h"

namespace tritonrl {

// words[pairs[2 i]] = pairs[2 i + 1] for i < `count`; the indices pairs[2 i] must be distinct.
void LaunchScatterWords(const int32_t* pairs, int count, int32_t* words, void* stream);

// QK-norm, RoPE and cache write of T rows [T, (H + 2K) D] bf16, the output of the QKV projection.
// Rounds like the learner's kernel (model/layers/rotary.h), so both give the same bits.
struct QkvToCache {
  CacheHeads shape;
  int64_t rows = 0;
  const void* qkv = nullptr;
  const void* q_weight = nullptr;  // [D] bf16; null: no norm
  const void* k_weight = nullptr;
  float eps = 0;
  const float* cos = nullptr;  // [positions, D / 2]
  const float* sin = nullptr;
  const int32_t* positions = nullptr;  // [T]
  // [T] distinct page slots; kNoPageSlot: the row's key and value are dropped.
  const int32_t* page_slots = nullptr;
  void* queries = nullptr;  // [T, H, D] bf16
  void* keys = nullptr;     // the layer's pools, of shape.type
  void* values = nullptr;
  bool overlap = false;  // programmatic dependent launch (Hopper)
  void* stream = nullptr;
};
void LaunchQkvToCache(const QkvToCache& at);

// out[r] = from[ids[r]]; with `through` from[ids[through[r]]], for example embeddings of the tokens
// drawn last for slots through[r]. A negative id or slot gives zeros.
struct RowGather {
  int64_t rows = 0;
  int64_t row_bytes = 0;  // a multiple of 16
  const void* from = nullptr;
  const int32_t* ids = nullptr;
  const int32_t* through = nullptr;  // [rows]; may be null
  void* out = nullptr;
  void* stream = nullptr;
};
void LaunchGatherRows(const RowGather& at);

// Copies page pairs[2 i] to page pairs[2 i + 1] in each of `pools_count` pools for i <
// `pairs_count`. A pair with a negative page is skipped. No other pair may contain a page that is
// written.
struct CopyPages {
  int pools_count = 0;
  void* const* pools = nullptr;  // [pools_count] addresses
  int64_t page_bytes = 0;        // CacheHeads::PageBytes
  int pairs_count = 0;
  const int32_t* pairs = nullptr;
  void* stream = nullptr;
};
void LaunchCopyPages(const CopyPages& at);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_STEP_KERNELS_H_
