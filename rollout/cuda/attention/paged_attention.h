// Attention over a paged cache (paged_kv_layout.h) in bf16: causal, grouped queries, softmax in
// fp32. Results are written to rows [T, H, D] bf16. One launch a layer for the sequences that
// decode one token, by a kernel of our own (8-bit keys and values become fp16 on their way), at
// most two for chunks of prompts, by FlashInfer's (bf16).
//
// A row's result has the same bits whatever else is computed with it, and in whatever place, if it
// is divided alike: it depends on the plan's split (decode_plan.h) or the chunk's own sizes
// (prefill_plan.h), and on the GPU. All launches go to `stream` (a cudaStream_t) of the current
// device, may be captured in a CUDA graph, and throw c10::Error if they are refused.
#ifndef TRITONRL_ROLLOUT_CUDA_ATTENTION_PAGED_ATTENTION_H_
#define TRITONRL_ROLLOUT_CUDA_ATTENTION_PAGED_ATTENTION_H_

#include <cstdint>

#include "rollout/cuda/attention/decode_plan.h"
#include "rollout/cuda/attention/paged_kv_layout.h"
#include "rollout/cuda/attention/prefill_plan.h"

namespace tritonrl {

// One layer's cache, in GPU memory.
struct PagedKeysValues {
  const void* keys = nullptr;  // pools [pages, kPageTokens, K, D] of the shape's type
  const void* values = nullptr;
  // Pages of all sequences, in the order of their positions. A row of a plan takes those from its
  // page_begin on; entries that no position needs may hold anything.
  const int32_t* page_table = nullptr;
};

// Queries [rows, H, D] bf16 after norm and rotation, and where the result goes.
struct AttentionRows {
  const void* queries = nullptr;
  void* out = nullptr;
  int64_t rows = 0;
  float scale = 0;  // of the scores, 1 / sqrt(D); above 0
  // Decoding may begin while the kernel before it ends (model/cuda/common/ptx.cuh; Hopper).
  bool overlap = false;
  // Of decoding, for tests: pages come to multiprocessors as on GPUs before Hopper.
  bool threads_copy = false;
};

// Temporary memory that launches one after another on a stream may share.
struct DecodeScratch {
  void* partial = nullptr;     // plan.PartialBytes bytes
  int32_t* arrived = nullptr;  // [rows, H] zeros, as launches leave them
};

// Row r of the plan is row r of `rows`; the result of a row of length 0 is 0. arrays: plan.At(...)
// of a filled copy in GPU memory, read by the GPU when the launch runs.
void LaunchDecodeAttention(const CacheHeads& shape, const PagedKeysValues& cache,
                           const DecodePlan& plan, const DecodeArrays& arrays,
                           const AttentionRows& rows, const DecodeScratch& scratch, void* stream);

// words: a copy of plan.words in GPU memory. Rows that are in no chunk are not written.
void LaunchPrefillAttention(const CacheHeads& shape, const PagedKeysValues& cache,
                            const PrefillPlan& plan, const int32_t* words,
                            const AttentionRows& rows, void* stream);

// Of the current GPU.
PrefillDevice CurrentPrefillDevice();

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_ATTENTION_PAGED_ATTENTION_H_
