#ifndef TRITONRL_ROLLOUT_CUDA_STEP_KERNELS_H_
#define TRITONRL_ROLLOUT_CUDA_STEP_KERNELS_H_

#include <cstdint>

#include "rollout/cuda/attention/paged_kv_layout.h"

// Kernels of a generation step besides GEMM and attention.
//
// What a generation step does between products and attention and a training step does not: keys
// and values into the paged cache, rows by ids that lie on the GPU, copies of pages. (Norms and
// SwiGLU are those of model/cuda/fused/kernels.h; what a layer adds to the residual stream is added
// by its last product, as the learner does it.)
//
// All pointers are GPU memory, 16-byte aligned. Launches go to `stream` (a cudaStream_t), may be
// captured in a CUDA graph, and throw c10::Error if they are refused.

namespace tritonrl {

// words[pairs[2 i]] = pairs[2 i + 1], i below `count`; all in GPU memory, places distinct. On
// `stream` (a cudaStream_t); throws c10::Error if the launch is refused.
void LaunchScatterWords(const int32_t* pairs, int count, int32_t* words, void* stream);

// T rows of queries, keys and values as a product gives them, bf16 [T, (H + 2K) D], and the norm
// and rotation of model/layers/rotary.h, with the same roundings as the learner's kernel: the same
// bits.
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
  // [T] page slots, each at most once; kNoPageSlot: the row's key and value are not kept.
  const int32_t* page_slots = nullptr;
  void* queries = nullptr;  // [T, H, D] bf16
  void* keys = nullptr;     // the layer's pools, of shape.type
  void* values = nullptr;
  bool overlap = false;  // may begin while the kernel before it ends (Hopper)
  void* stream = nullptr;
};
void LaunchQkvToCache(const QkvToCache& at);

// out[r] = from[ids[r]]; or, with `through`, from[ids[through[r]]]: embeddings of the tokens that
// were drawn last for slots through[r]. A negative id or slot gives zeros.
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

// In each of `pools` pools (their addresses are an array in GPU memory) page pairs[2 i + 1] becomes
// a copy of page pairs[2 i], i below `pairs_count`; a pair with a negative page does nothing. No
// page that is written may be in another pair.
struct CopyPages {
  int pools_count = 0;
  void* const* pools = nullptr;
  int64_t page_bytes = 0;  // CacheHeads::PageBytes
  int pairs_count = 0;
  const int32_t* pairs = nullptr;
  void* stream = nullptr;
};
void LaunchCopyPages(const CopyPages& at);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_STEP_KERNELS_H_
