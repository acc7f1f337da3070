// The model that is trained, with all that belongs to it, from a folder and back into one.
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
  std::string folder;  // where it came from; Save copies the tokenizer's files from there

  at::Device device() const { return weights->device(); }
  // Ends a response: the first eos_token_id of config.json.
  int32_t end_token() const { return static_cast<int32_t>(config.eos_token_ids.front()); }
};

// How a policy is loaded.
struct LoadPolicyOptions {
  int threads = 0;  // CPU threads of the transformer, 0 for all cores
  // All ranks pass theirs. Each reads a share of the files only and gets the rest from the others,
  // from GPU to GPU where they have some: they have joined them afterwards.
  ProcessGroup* ranks = nullptr;
  // Each rank has its part of the model alone (model/weights/weights.h), for generation on all of
  // them together.
  bool tensor_parallel = false;
  bool trains = true;                     // see InitializeGpu
  StartupTimer* startup_timer = nullptr;  // told of the parts that this took
};

// Loads config.json, tokenizer.json and the weights (or draws random ones) onto the device that
// `policy_config` asks for. Errors name the file, tensor or field.
absl::StatusOr<Policy> LoadPolicy(const PolicyConfig& policy_config,
                                  const LoadPolicyOptions& loading);

// Writes config.json, model.safetensors and the tokenizer's files, so that LoadPolicy and
// `transformers` load the folder.
absl::Status SavePolicy(const Policy& policy, const std::string& dir, FloatType dtype);

// How a GPU computes in training: both as in PolicyConfig.
GpuOptions TrainingGpuOptions(bool deterministic, bool fp8);

// The cost of a sequence in forward and backward of this model. An embedding that is not also the
// head takes part in no GEMM.
SequenceCost SequenceCostFor(const ModelConfig& model);

// The device named by "auto", "cpu", "cuda" or "cuda:N". InvalidArgument for a GPU that is not
// there.
absl::StatusOr<at::Device> ResolveDevice(const std::string& name, int local_rank);

// "cpu" or "cuda:0": for versions.json and the first lines a person sees.
std::string DescribeDevice(at::Device device);

// An existing path as the person gave it (relative to where he stands), else the same path among
// the program's own files. NotFound names both places.
absl::StatusOr<std::string> FindInputPath(const std::string& path);

at::ScalarType ToScalarType(FloatType type);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_LEARNER_POLICY_H_
