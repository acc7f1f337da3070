#include "rollout/factory/make_engine.h"

#include <ATen/Context.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/status.h"
#include "model/weights/stop_tokens.h"
#include "model/weights/weights_load.h"
#include "rollout/cuda/cuda_runner.h"
#include "rollout/engine/transformer_runner.h"

namespace tritonrl {

absl::StatusOr<std::unique_ptr<ModelRunner>> MakeModelRunner(std::shared_ptr<Weights> weights,
                                                             const EngineConfig& config,
                                                             const EngineContext& context) {
  if (CudaRunner::Supports(*weights)) {
    return CudaRunner::Create(std::move(weights), config, context);
  }
  return TransformerRunner::Create(std::move(weights), config, context);
}

absl::StatusOr<std::unique_ptr<Engine>> MakeBatchedEngine(std::shared_ptr<Weights> weights,
                                                          const EngineConfig& config,
                                                          const EngineContext& context) {
  ASSIGN_OR_RETURN(std::unique_ptr<ModelRunner> runner,
                   MakeModelRunner(std::move(weights), config, context));
  return std::make_unique<BatchedEngine>(std::move(runner), config);
}

absl::StatusOr<at::Device> ParseDevice(const std::string& name, int local_rank) {
  if (name == "cpu" || (name == "auto" && !at::hasCUDA())) return at::Device(at::kCPU);
  absl::string_view rest = name;
  int index = local_rank;
  if (name != "auto" && name != "cuda" &&
      (!absl::ConsumePrefix(&rest, "cuda:") || !absl::SimpleAtoi(rest, &index) || index < 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("device \"", name, "\" is none of cpu, cuda, cuda:N, auto"));
  }
  const int count = static_cast<int>(at::globalContext().hasCUDA() ? at::getNumGPUs() : 0);
  if (index >= count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "device \"", name, "\" is not there: ", count, " GPUs found",
        local_rank > 0 ? absl::StrCat(" for rank ", local_rank, " of this machine") : ""));
  }
  return at::Device(at::kCUDA, static_cast<at::DeviceIndex>(index));
}

absl::StatusOr<LoadedModel> LoadModel(const std::string& dir, at::Device device,
                                      const WeightShard& shard) {
  ASSIGN_OR_RETURN(Tokenizer tokenizer, Tokenizer::Load(JoinPath(dir, "tokenizer.json")));
  ASSIGN_OR_RETURN(
      std::shared_ptr<Weights> weights,
      LoadWeightShard(dir, device, device.is_cuda() ? at::kBFloat16 : at::kFloat, shard));
  RETURN_IF_ERROR(tokenizer.CheckFits(weights->config().vocab_size, dir));
  ASSIGN_OR_RETURN(std::vector<int32_t> stop_ids, StopTokens(dir));
  return LoadedModel{std::move(weights), std::move(tokenizer), std::move(stop_ids)};
}

}  // namespace tritonrl
