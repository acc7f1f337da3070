#include "trainer/learner/policy.h"

#include <ATen/Context.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "model/layers/fp8.h"
#include "model/torch_runtime.h"
#include "model/weights/weights.h"
#include "model/weights/weights_load.h"
#include "trainer/learner/tokenizer_files.h"

namespace tritonrl {
at::ScalarType ToScalarType(FloatType type) {
  return type == BFLOAT16 ? at::kBFloat16 : at::kFloat;
}

SequenceCost SequenceCostFor(const ModelConfig& model) {
  const int64_t embedding = model.tie_word_embeddings ? 0 : model.vocab_size * model.hidden_size;
  return {.quadratic = 7.0 * static_cast<double>(model.num_layers * model.query_size()) /
                       (6.0 * static_cast<double>(model.NumParameters() - embedding))};
}

absl::StatusOr<at::Device> ResolveDevice(const std::string& name, int local_rank) {
  const int gpus = static_cast<int>(at::getNumGPUs());
  if (name == "cpu" || (name == "auto" && gpus == 0)) return at::Device(at::kCPU);
  int index = 0;
  if (name == "auto" || name == "cuda") {
    if (gpus > 0) index = local_rank % gpus;
  } else if (!absl::StartsWith(name, "cuda:") || !absl::SimpleAtoi(name.substr(5), &index) ||
             index < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("policy.device is '", name, "'; it must be auto, cpu, cuda or cuda:N"));
  }
  if (index >= gpus) {
    return absl::InvalidArgumentError(absl::StrCat("policy.device is '", name,
                                                   "' but this machine has ", gpus,
                                                   " usable GPUs; use auto or cpu"));
  }
  return at::Device(at::kCUDA, static_cast<at::DeviceIndex>(index));
}

std::string DescribeDevice(at::Device device) { return device.str(); }

absl::StatusOr<std::string> FindInputPath(const std::string& path) {
  const std::string user = UserPath(path);
  if (FileExists(user)) return user;
  if (!path.empty() && path[0] != '/') {
    const absl::StatusOr<std::string> own = Runfile(path);
    if (own.ok() && FileExists(*own)) return own;
  }
  return absl::NotFoundError(
      absl::StrCat("'", path, "' was found neither at ", user, " nor among the program's files"));
}

GpuOptions TrainingGpuOptions(bool deterministic, bool fp8) {
  GpuOptions options;
  options.autotune_gemm = !deterministic;
  options.fp8_projections = fp8;
  options.attention.deterministic = deterministic;
  return options;
}

namespace {

void EndPhase(const LoadPolicyOptions& loading, const char* what) {
  if (loading.startup_timer != nullptr) loading.startup_timer->EndPhase(what);
}

// Loads the weights on every rank; each rank reads or draws its share and gathers the rest.
absl::StatusOr<std::shared_ptr<Weights>> LoadTogether(const PolicyConfig& config,
                                                      const Policy& policy, at::Device device,
                                                      at::ScalarType dtype,
                                                      const LoadPolicyOptions& loading) {
  ProcessGroup* ranks = loading.ranks;
  const auto load =
      [&](absl::Span<const FlatRange> parts) -> absl::StatusOr<std::shared_ptr<Weights>> {
    if (!config.random_init()) return LoadWeights(policy.folder, device, dtype, parts);
    return Weights::RandomInit(policy.config, config.init_seed(), device, dtype, parts);
  };
  if (ranks == nullptr || ranks->size() == 1) return load({});
  const ZeroShardPlan plan(ParameterLayout(policy.config).flat_size, ranks->size());
  std::vector<FlatRange> parts;
  for (int64_t bucket = 0; bucket < plan.buckets(); ++bucket) {
    parts.push_back(plan.Shard(bucket, ranks->rank()));
  }
  auto weights = load(parts);
  EndPhase(loading, "weights");
  RETURN_IF_ERROR(ranks->AllReduceStatus(weights.status()));
  for (int64_t bucket = 0; bucket < plan.buckets(); ++bucket) {
    RETURN_IF_ERROR(ranks->collectives()->AllGather(plan, bucket, (*weights)->flat()));
  }
  RETURN_IF_ERROR(ranks->collectives()->Wait("the all-gather of loaded weights"));
  EndPhase(loading, "exchange of weights");
  return weights;
}

// Loads this rank's tensor-parallel shard from the files or draws it.
absl::Status TakePart(const PolicyConfig& config, at::Device device, at::ScalarType dtype,
                      const ProcessGroup& ranks, Policy* policy) {
  const WeightShard part = {ranks.rank(), ranks.size()};
  if (config.random_init()) {
    ASSIGN_OR_RETURN(policy->weights,
                     Weights::RandomShard(policy->config, config.init_seed(), device, dtype, part));
  } else {
    ASSIGN_OR_RETURN(policy->weights, LoadWeightShard(policy->folder, device, dtype, part));
  }
  policy->config = policy->weights->config();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Policy> LoadPolicy(const PolicyConfig& policy_config,
                                  const LoadPolicyOptions& loading) {
  ProcessGroup* ranks = loading.ranks;
  Policy policy;
  absl::StatusOr<std::string> folder = FindInputPath(policy_config.dir());
  if (!folder.ok()) return AddContext(folder.status(), "policy.dir");
  policy.folder = *folder;
  ASSIGN_OR_RETURN(
      const at::Device device,
      ResolveDevice(policy_config.device(), ranks == nullptr ? 0 : ranks->local_rank()));
  RETURN_IF_ERROR(InitializeGpu(device, loading.trains));
  EndPhase(loading, "GPU");
  ASSIGN_OR_RETURN(policy.config, ReadModelConfig(policy.folder));
  RETURN_IF_ERROR(LoadTokenizerFiles(policy_config.chat(), &policy));
  EndPhase(loading, "tokenizer");
  if (ranks != nullptr && !loading.tensor_parallel)
    RETURN_IF_ERROR(ranks->InitNcclCollectives(device));
  EndPhase(loading, "weight sync setup");
  const at::ScalarType dtype = ToScalarType(policy_config.train_dtype());
  if (policy_config.fp8()) {
    const absl::Status status = CheckFp8(device, dtype);
    if (!status.ok()) return AddContext(status, "policy.fp8");
  }
  RETURN_IF_ERROR(CatchTorch(
      "loading the policy", "use a larger device or a smaller model", [&]() -> absl::Status {
        if (device.is_cuda() && policy_config.allow_tf32()) {
          at::globalContext().setAllowTF32CuBLAS(true);
        }
        if (loading.tensor_parallel) {
          RETURN_IF_ERROR(TakePart(policy_config, device, dtype, *ranks, &policy));
        } else {
          ASSIGN_OR_RETURN(policy.weights,
                           LoadTogether(policy_config, policy, device, dtype, loading));
        }
        Transformer::Options options;
        options.cpu_threads = loading.threads;
        options.gpu = TrainingGpuOptions(policy_config.deterministic(), policy_config.fp8());
        policy.transformer = std::make_shared<Transformer>(policy.config, policy.weights, options);
        return absl::OkStatus();
      }));
  EndPhase(loading, "weights");
  return policy;
}

absl::Status SavePolicy(const Policy& policy, const std::string& dir, FloatType dtype) {
  RETURN_IF_ERROR(CreateDirectories(dir));
  RETURN_IF_ERROR(CatchTorch("saving the policy", "use a smaller model", [&]() -> absl::Status {
    return policy.weights->Save(dir, ToScalarType(dtype));
  }));
  return SaveTokenizerFiles(policy, dir);
}

}  // namespace tritonrl
