// What an engine's model runs with, whatever it runs on.
#ifndef TRITONRL_ROLLOUT_ENGINE_OPTIONS_H_
#define TRITONRL_ROLLOUT_ENGINE_OPTIONS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "parallel/rank_sum.h"

namespace tritonrl {

// "On GPUs" is short for cuda/cuda_runner.h, all else for transformer_runner.h.
struct EngineOptions {
  // Most sequences that run side by side. 0: 256 on GPUs, else 64.
  int max_running = 0;
  // Memory for keys and values. 0: enough for max_running sequences of max_length, but on GPUs at
  // most nine tenths of what is free there beside everything else and spare_bytes, on the CPU a
  // quarter of the machine's memory (which is taken only as it is used).
  int64_t cache_bytes = 0;
  // GPU memory that others will take and keep beside the engine (an optimizer's state); only for
  // cache_bytes of 0 on GPUs.
  int64_t spare_bytes = 0;
  // Most tokens of a step, prompts and running sequences together; 0: 8192 on GPUs, else 1024. At
  // least max_running are taken.
  int max_step_tokens = 0;
  // While samples wait, chunks of prompts fill steps on GPUs up to so many tokens; 0: up to
  // max_step_tokens. At the size of Qwen3-8B on an H200 products of 256 rows take as long for
  // arithmetic as for reading the weights.
  int weights_bound_tokens = 256;
  // Most tokens of prompt and response together; 0: the model's max_position_embeddings.
  int64_t max_length = 0;
  // Threads on the CPU; 0: all hardware threads. Results do not depend on it.
  int cpu_threads = 0;
  // Whether steps of at most 32 rows make a layer's products in one launch
  // (model/cuda/product_chain.h): for Hopper, bf16 weights in multiples of 512 that are not spread,
  // and not where steps are batch-invariant.
  bool chains = true;
  // A sample's tokens and log-probabilities have the same bits whatever else is in the batch, with
  // any sizes above and again in another process: on GPUs on the same kind with the same libraries,
  // on the CPU in fp32, where they always have. On GPUs there is one way for each product, one
  // kernel and split for attention, prompts are cut at multiples of kInvariantChunk, and
  // max_step_tokens is raised to at least max_running and so many. Samples then run only with
  // memory for their longest form.
  bool batch_invariant = false;
  // Keys and values as 8-bit numbers, on GPUs alone: half the memory of a token. Log-probabilities
  // are others than the learner's by more than rounding in bf16.
  bool fp8_cache = false;
  // Products of the layers' matrices on 8-bit numbers (cuda/fp8_weights.h), of copies that take
  // half the weights' memory beside them. As above.
  bool fp8_weights = false;
  // For a device that also learns: the engine gives the memory of keys and values back while the
  // weights are updated (BatchedEngine::Options::release_memory). On GPUs it is then not torch's,
  // but TakeMemory makes torch's allocator give back what that keeps for later, if need be.
  bool release_memory = false;
  // Tensor parallelism (tensor_parallel.h sets it): the weights are one rank's part, and all ranks
  // run the same steps. The tokens that slots remember are rank 0's.
  RankSum* ranks = nullptr;
};

// InvalidArgument naming the option that is out of range, and the range: at least 1 and at most
// `most_running` sequences side by side, of at most `max_positions` tokens each.
absl::Status CheckSizes(const EngineOptions& options, int most_running, int64_t max_positions);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_ENGINE_OPTIONS_H_
