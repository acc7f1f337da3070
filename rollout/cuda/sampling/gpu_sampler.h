// Drawing tokens on the GPU: what rollout/sampler.h draws, from the same uniform numbers, without
// sorting the vocabulary. Two launches whatever the settings, which may be captured in a CUDA
// graph: everything that changes from step to step is read from memory when they run.
//
// A draw depends on its row of logits, its settings and its key alone, to the bit: sums run in an
// order that only the vocabulary's size gives. It can differ from the CPU's where the uniform
// number lies within a rounding (1e-6 or less) of the boundary between two tokens.
#ifndef TRITONRL_ROLLOUT_CUDA_SAMPLING_GPU_SAMPLER_H_
#define TRITONRL_ROLLOUT_CUDA_SAMPLING_GPU_SAMPLER_H_

#include <cstdint>

namespace tritonrl {

// One draw, in GPU memory. temperature, top_p and top_k as in SamplingSettings (engine.h), valid.
struct SamplingRow {
  uint64_t key = 0;  // MixKeys of TokenUniform's four numbers
  double temperature = 1.0;
  double top_p = 1.0;
  int32_t position = 0;     // of the token in its sample, TokenUniform's
  int32_t top_k = 0;        // 0: all
  int32_t logits_row = -1;  // several draws may take one row; negative: no draw, nothing is written
  int32_t slot = -1;        // where the token goes in last_tokens; negative: nowhere
};

struct DrawnToken {
  // -1: the row's logits are not all finite; last_tokens gets 0 then.
  int32_t token = -1;
  // As in TokenDraw: over the whole vocabulary, before the cuts.
  float log_prob = 0;
};

struct SamplingBatch {
  const float* logits = nullptr;       // [rows, vocab], 16-byte aligned
  int64_t vocab = 0;                   // a multiple of 4, at most 2^20
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
