// Launchers of FlashInfer's attention kernels, without its headers. All pointers are GPU memory.
#ifndef TRITONRL_ROLLOUT_CUDA_ATTENTION_FLASHINFER_KERNELS_H_
#define TRITONRL_ROLLOUT_CUDA_ATTENTION_FLASHINFER_KERNELS_H_

#include <cstdint>

#include "rollout/cuda/attention/paged_attention.h"

namespace tritonrl {

enum class Fa2Tile {
  kShort,  // 64 query rows times heads
  kLong,   // 128 query rows times heads
};

// Arguments of a launch for n sequences and N tiles; arrays as in Fa2Chunks (prefill_plan.h).
struct Fa2Call {
  CacheHeads shape;
  PagedKeysValues cache;
  AttentionRows rows;
  int sequences = 0, tiles = 0;
  const int32_t* first_rows = nullptr;   // [n] in the queries
  const int32_t* row_counts = nullptr;   // [n]
  const int32_t* lengths = nullptr;      // [n] keys
  const int32_t* page_begins = nullptr;  // [n + 1]
  const int32_t* requests = nullptr;     // [N]
  const int32_t* query_tiles = nullptr;
  const int32_t* key_tiles = nullptr;
  const int32_t* tile_tokens = nullptr;  // [1]
  void* stream = nullptr;
};

void LaunchFa2Dim64(Fa2Tile tile, const Fa2Call& call);
void LaunchFa2Dim128(Fa2Tile tile, const Fa2Call& call);
// Over a cache of CacheType::kE4M3.
void LaunchFa2Fp8Dim64(Fa2Tile tile, const Fa2Call& call);
void LaunchFa2Fp8Dim128(Fa2Tile tile, const Fa2Call& call);

// Heads of 128 in bf16, compute capability 9.0. words: the words of the plan that `chunks` is from.
void LaunchFa3Dim128(const CacheHeads& shape, const PagedKeysValues& cache, const Fa3Chunks& chunks,
                     const int32_t* words, const AttentionRows& rows, void* stream);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_ATTENTION_FLASHINFER_KERNELS_H_
