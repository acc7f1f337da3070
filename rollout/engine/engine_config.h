// Validation and derived values of EngineConfig, and what else a program gives an engine.
#ifndef TRITONRL_ROLLOUT_ENGINE_ENGINE_CONFIG_H_
#define TRITONRL_ROLLOUT_ENGINE_ENGINE_CONFIG_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "parallel/collectives.h"
#include "rollout/engine/engine_config.pb.h"

namespace tritonrl {

// What a program knows of an engine beside its configuration.
struct EngineContext {
  // Most tokens of prompt and response together; 0: the model's max_position_embeddings.
  int64_t max_length = 0;
  // Threads on the CPU; 0: all hardware threads. Results do not depend on it.
  int cpu_threads = 0;
  // GPU memory that others will take and keep beside the engine (an optimizer's state); used only
  // if cache_bytes is 0.
  int64_t spare_bytes = 0;
  // Tensor parallelism (tensor_parallel.h sets it): the weights are one rank's shard, and all ranks
  // run the same steps. The tokens that slots remember are rank 0's.
  Collectives* ranks = nullptr;
};

// InvalidArgument with one sentence on the first mistake, in which `prefix` ("--",
// "sampling.engine.") precedes a field's name.
absl::Status ValidateEngineConfig(const EngineConfig& config, absl::string_view prefix = "");

// Validates both for a model of `max_positions` positions, and replaces each 0 that stands for a
// default except cache_bytes. `cuda`: the engine runs on CudaRunner. `chunk`: positions to which
// chunks of prompts are aligned; max_num_batched_tokens is raised so that a chunk fits beside
// max_num_seqs decodes.
absl::Status ResolveEngineConfig(bool cuda, int chunk, int64_t max_positions, EngineConfig* config,
                                 EngineContext* context);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_ENGINE_ENGINE_CONFIG_H_
