// The trained model with its configuration and tokenizer: loading from and saving to a folder.
#ifndef TRITONRL_TRAINER_LEARNER_POLICY_H_
#define TRITONRL_TRAINER_LEARNER_POLICY_H_

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/chat/chat_template.h"
#include "model/tokenizer/tokenizer.h"
#include "model/transformer.h"
#include "model/weights/model_config.h"
#include "model/weights/weights.h"
#include "parallel/process_group.h"
#include "trainer/config/config.pb.h"
#include "trainer/objective/packing.h"
#include "trainer/program/training_program.h"

namespace tritonrl {

struct Policy {
  ModelConfig config;
  std::shared_ptr<Weights> weights;  // shared with the optimizer and the generation engine
  std::shared_ptr<Transformer> transformer;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const ChatTemplate> chat;  // PolicyConfig.chat
  // All tokens that end a response: the end of the template's turns, eos_token_id of
  // generation_config.json and of config.json.
  std::vector<int32_t> stop_tokens;
  std::string folder;  // source folder; SavePolicy copies the tokenizer's files from it

  at::Device device() const { return weights->device(); }
  // The token that ends a taught response: the end of the chat template's turns, else the first
  // eos_token_id of config.json, else that of generation_config.json.
  int32_t end_token() const;
};

struct LoadPolicyOptions {
  int threads = 0;  // CPU threads of the transformer, 0 for all cores
  // Passed by all ranks together. Each rank then reads only its share of the files and receives the
  // rest from the other ranks. On GPUs LoadPolicy initializes the NCCL collectives of `ranks` for
  // this.
  ProcessGroup* ranks = nullptr;
  // Each rank holds its shard of the model only (model/weights/weights.h), for tensor-parallel
  // generation.
  bool tensor_parallel = false;
  bool trains = true;                     // see InitializeGpu
  StartupTimer* startup_timer = nullptr;  // receives the phases of loading
};

// Loads config.json, tokenizer.json, the chat template and the weights (or draws random ones) onto
// the device named in `policy_config`. Errors name the file, tensor or field.
absl::StatusOr<Policy> LoadPolicy(const PolicyConfig& policy_config,
                                  const LoadPolicyOptions& loading);

// Writes config.json, model.safetensors and the files of the tokenizer and the chat template in a
// form that LoadPolicy, `transformers` and vLLM load. generation_config.json names the policy's end
// token, so that these stop there.
absl::Status SavePolicy(const Policy& policy, const std::string& dir, FloatType dtype);

// GPU options for training; the arguments are the fields of PolicyConfig.
GpuOptions TrainingGpuOptions(bool deterministic, bool fp8);

// The cost of a sequence's forward and backward pass in this model. An embedding that is not tied
// to the head is not counted, as it is used in no GEMM.
SequenceCost SequenceCostFor(const ModelConfig& model);

// The device named by "auto", "cpu", "cuda" or "cuda:N". InvalidArgument for a GPU that does not
// exist.
absl::StatusOr<at::Device> ResolveDevice(const std::string& name, int local_rank);

// "cpu" or "cuda:0", for versions.json and for the first lines of output.
std::string DescribeDevice(at::Device device);

// Returns `path` (relative to the user's working directory) if it exists, else the same path among
// the program's own files. NotFound names both places.
absl::StatusOr<std::string> FindInputPath(const std::string& path);

at::ScalarType ToScalarType(FloatType type);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_LEARNER_POLICY_H_
