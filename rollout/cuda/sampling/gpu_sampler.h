// Sampling on the GPU: the draws of rollout/engine/sampler.h from the same uniform numbers, without
// sorting the vocabulary.
//
// Any settings need two launches. These can be captured in a CUDA graph, because they read the
// draws from memory. A draw's bits depend only on its logits, settings and key: the order of sums
// depends only on the vocabulary's size. A draw can differ from the CPU's draw if the uniform
// number is within rounding (at most 1e-6) of the boundary between two tokens.

#ifndef TRITONRL_ROLLOUT_CUDA_SAMPLING_GPU_SAMPLER_H_
#define TRITONRL_ROLLOUT_CUDA_SAMPLING_GPU_SAMPLER_H_

#include <cstdint>

namespace tritonrl {

// One draw, in GPU memory. temperature, top_p and top_k must be valid, as in SamplingSettings
// (engine.h).
struct SamplingRow {
  uint64_t key = 0;  // MixKeys of TokenUniform's four numbers
  double temperature = 1.0;
  double top_p = 1.0;
  int32_t position = 0;     // position of the token in its sample, as in TokenUniform
  int32_t top_k = 0;        // 0: all
  int32_t logits_row = -1;  // may be shared; negative: no draw, nothing is written
  int32_t slot = -1;        // the token's index in last_tokens; negative: none
};

struct DrawnToken {
  // -1: the row's logits are not all finite; last_tokens gets 0 then.
  int32_t token = -1;
  // As in TokenDraw: over the whole vocabulary, before the cuts.
  float log_prob = 0;
};

// The largest vocabulary that the sampler takes. A row of 2^20 equal logits would have a total mass
// of 2^64 (MassOf in radix_select.cuh), which 64 bits cannot hold.
inline constexpr int64_t kMaxVocab = (1 << 20) - 4;

struct SamplingBatch {
  const float* logits = nullptr;       // [rows, vocab], 16-byte aligned
  int64_t vocab = 0;                   // a multiple of 4, at most kMaxVocab
  const SamplingRow* draws = nullptr;  // [count]
  int count = 0;                       // at most 65,535
  void* workspace = nullptr;           // SamplingWorkspaceBytes(count, vocab)
  DrawnToken* drawn = nullptr;         // [count], GPU memory or pinned memory of the host
  int32_t* last_tokens = nullptr;      // by slot; may be null
  void* stream = nullptr;              // cudaStream_t
};

int64_t SamplingWorkspaceBytes(int count, int64_t vocab);

// Throws c10::Error if a launch is refused.
void LaunchSampling(const SamplingBatch& batch);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_SAMPLING_GPU_SAMPLER_H_
