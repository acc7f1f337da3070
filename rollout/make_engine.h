// An engine for given weights, with the runner that suits where they are.
#ifndef TRITONRL_ROLLOUT_MAKE_ENGINE_H_
#define TRITONRL_ROLLOUT_MAKE_ENGINE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "model/weights.h"
#include "parallel/rank_sum.h"
#include "rollout/batched_engine.h"
#include "rollout/engine.h"
#include "rollout/model_runner.h"

namespace tritonrl {

struct EngineOptions {
  // Most sequences that run side by side. 0: 256 with cuda/cuda_runner.h, else 64.
  int max_running = 0;
  // Memory for keys and values; 0: see the runners' options.
  int64_t cache_bytes = 0;
  // Most tokens of a step, prompts and running sequences together; 0: see there.
  int max_step_tokens = 0;
  // Most tokens of prompt and response together; 0: the model's max_position_embeddings.
  int64_t max_length = 0;
  // Threads on the CPU; 0: all hardware threads. Results do not depend on it.
  int cpu_threads = 0;
  // A sample's tokens and log-probabilities have the same bits whatever else runs, with any of the
  // sizes above, and again in another process (see cuda/cuda_runner.h; on the CPU in fp32 they
  // always have). Samples then run only with memory for their longest form.
  bool batch_invariant = false;
  // 8-bit keys and values, and 8-bit copies of weights: see cuda/cuda_runner.h, for which alone
  // they are.
  bool fp8_cache = false;
  bool fp8_weights = false;
  // For a device that also learns: the engine gives the cache's memory back while the weights are
  // updated, see BatchedEngine::Options::release_memory.
  bool release_memory = false;
  // GPU memory that the learner will take and keep beside the engine (an optimizer's state); a
  // cache_bytes of 0 leaves it to cuda/cuda_runner.h to choose a cache that spares it.
  int64_t spare_bytes = 0;
  // Tensor parallelism: see the runners' options; tensor_parallel.h sets it.
  RankSum* ranks = nullptr;
};

// What runs an engine's steps. Shares `weights` and copies nothing. bf16 weights on a GPU run
// through cuda/cuda_runner.h where it takes them, all others through transformer_runner.h. Errors:
// those of the runner; InvalidArgument: batch_invariant, fp8_cache or fp8_weights where no runner
// has it.
absl::StatusOr<std::unique_ptr<ModelRunner>> MakeModelRunner(std::shared_ptr<Weights> weights,
                                                             const EngineOptions& options);

// `options` with what `engine_options` say of the engine itself; for engines on such a runner that
// are not made below.
BatchedEngine::Options WithOptionsOf(const EngineOptions& engine_options,
                                     BatchedEngine::Options options);

// An engine on it.
absl::StatusOr<std::unique_ptr<Engine>> MakeBatchedEngine(
    std::shared_ptr<Weights> weights, const EngineOptions& engine_options,
    const BatchedEngine::Options& options = {});

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_MAKE_ENGINE_H_
