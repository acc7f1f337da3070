// Loads a model folder, and makes an engine with the runner for its device and type.

#ifndef TRITONRL_ROLLOUT_FACTORY_MAKE_ENGINE_H_
#define TRITONRL_ROLLOUT_FACTORY_MAKE_ENGINE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/tokenizer/tokenizer.h"
#include "model/weights/model_config.h"
#include "model/weights/weights.h"
#include "rollout/engine/batched_engine.h"
#include "rollout/engine/engine.h"
#include "rollout/engine/engine_config.h"
#include "rollout/engine/model_runner.h"

namespace tritonrl {

// Makes the model runner of an engine, which shares `weights`: CudaRunner for bf16 weights on a GPU
// in the sizes that it supports, else TransformerRunner. Errors: those of the runner;
// InvalidArgument: batch_invariant, fp8_kv_cache or fp8_weights where no runner supports it.
absl::StatusOr<std::unique_ptr<ModelRunner>> MakeModelRunner(std::shared_ptr<Weights> weights,
                                                             const EngineConfig& config,
                                                             const EngineContext& context = {});

// Makes an engine on such a runner.
absl::StatusOr<std::unique_ptr<Engine>> MakeBatchedEngine(std::shared_ptr<Weights> weights,
                                                          const EngineConfig& config,
                                                          const EngineContext& context = {});

// "cpu", "cuda", "cuda:1", or "auto": CUDA if there is a GPU. Without a number in the name, a rank
// gets the GPU with the number of its local rank. InvalidArgument: any other word, or a GPU that
// does not exist.
absl::StatusOr<at::Device> ParseDevice(const std::string& name, int local_rank = 0);

// A Hugging Face folder ready for generation.
struct LoadedModel {
  std::shared_ptr<Weights> weights;
  Tokenizer tokenizer;
  // Tokens after which a response ends: eos_token_id of generation_config.json and of config.json
  // (model/weights/stop_tokens.h). A chat template may add one (ChatTemplate::WithEndOfTurn).
  std::vector<int32_t> stop_ids;
};

// Reads config.json, the weights (as fp32 on the CPU, bf16 on CUDA) and tokenizer.json of `dir`.
// Errors name the file; FailedPrecondition if the tokenizer has more ids than the model. `shard`:
// the rank's part of the weights that is read.
absl::StatusOr<LoadedModel> LoadModel(const std::string& dir, at::Device device,
                                      const WeightShard& shard = {});

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_FACTORY_MAKE_ENGINE_H_
