// Causal grouped-query attention over a paged cache (paged_kv_layout.h), bf16 with softmax in fp32.
//
// Each layer has one launch for decode rows (decode_kernel.cuh; FP8 keys and values become fp16 in
// registers) and at most two for chunks of prompts (FlashInfer). A row's bits depend on its own
// inputs, on its split (decode_plan.h) or its chunk's sizes (prefill_plan.h), and on the GPU.
// Launches go to `stream` (a cudaStream_t) of the current device, may be captured in a CUDA graph,
// and throw c10::Error if they are refused.

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
  // Pages of all sequences, each in the order of positions. A row's pages begin at its page_begin.
  // Unused entries may have any value.
  const int32_t* page_table = nullptr;
};

// Queries [rows, H, D] bf16 after norm and RoPE, and the output of the same shape.
struct AttentionRows {
  const void* queries = nullptr;
  void* out = nullptr;
  int64_t rows = 0;
  float scale = 0;  // of the scores, 1 / sqrt(D); above 0
  // Programmatic dependent launch of decode attention (model/cuda/common/ptx.cuh; Hopper).
  bool overlap = false;
  // For tests: threads copy pages for decode attention, as on GPUs before Hopper.
  bool threads_copy = false;
};

// Scratch memory; consecutive launches on a stream may share it.
struct DecodeScratch {
  void* partial = nullptr;     // plan.PartialBytes bytes
  int32_t* arrived = nullptr;  // [rows, H], zero before and after a launch
};

// Row r of the plan is row r of `rows`; a row of length 0 gives 0. arrays: plan.At(...) of a filled
// copy in GPU memory.
void LaunchDecodeAttention(const CacheHeads& shape, const PagedKeysValues& cache,
                           const DecodePlan& plan, const DecodeArrays& arrays,
                           const AttentionRows& rows, const DecodeScratch& scratch, void* stream);

// words: a copy of plan.words in GPU memory. Rows outside all chunks are not written.
void LaunchPrefillAttention(const CacheHeads& shape, const PagedKeysValues& cache,
                            const PrefillPlan& plan, const int32_t* words,
                            const AttentionRows& rows, void* stream);

// Properties of the current GPU.
PrefillDevice CurrentPrefillDevice();

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_ATTENTION_PAGED_ATTENTION_H_
