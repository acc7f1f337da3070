// Validation and derived values of EngineConfig, and the other inputs of an engine (EngineContext).
#ifndef TRITONRL_ROLLOUT_ENGINE_ENGINE_CONFIG_H_
#define TRITONRL_ROLLOUT_ENGINE_ENGINE_CONFIG_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "parallel/collectives.h"
#include "rollout/engine/engine_config.pb.h"

namespace tritonrl {

// Inputs of an engine that the program sets, not the user.
struct EngineContext {
  // Maximum number of tokens of prompt and response together; 0: the model's
  // max_position_embeddings.
  int64_t max_length = 0;
  // Threads on the CPU; 0: all hardware threads. Results do not depend on it.
  int cpu_threads = 0;
  // GPU memory that other parts of the program will allocate and keep (an optimizer's state); used
  // only if cache_bytes is 0.
  int64_t spare_bytes = 0;
  // Tensor parallelism (tensor_parallel.h sets it): the weights are one rank's shard, and all ranks
  // run the same steps. All ranks feed back the tokens that rank 0 draws.
  Collectives* ranks = nullptr;
};

// InvalidArgument that names the first invalid field and its range, with `prefix` ("--",
// "sampling.engine.") before the field's name.
absl::Status ValidateEngineConfig(const EngineConfig& config, absl::string_view prefix = "");

// Validates `config` and `context` for a model of `max_positions` positions, and replaces each 0
// that stands for a default, except cache_bytes. `cuda`: the engine runs on CudaRunner. `chunk`:
// alignment of prompt chunks in positions; max_num_batched_tokens is raised so that a chunk fits
// beside max_num_seqs decodes.
absl::Status ResolveEngineConfig(bool cuda, int chunk, int64_t max_positions, EngineConfig* config,
                                 EngineContext* context);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_ENGINE_ENGINE_CONFIG_H_
