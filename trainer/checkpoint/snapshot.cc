#include "trainer/checkpoint/snapshot.h"

#include <memory>

#include "base/file.h"
#include "base/status.h"
#include "model/torch_runtime.h"
#include "nlohmann/json.hpp"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/optimizer_state.h"

namespace tritonrl {
namespace {

std::string StateText(const TrainingState& state, const AdamW& optimizer) {
  const ShardPlan& plan = optimizer.plan();
  const nlohmann::json json = {{"program", state.program},
                               {"step", state.step},
                               {"seed", state.seed},
                               {"updates", optimizer.updates()},
                               {"consecutive_skipped", state.consecutive_skipped},
                               {"extra", state.extra},
                               {"optimizer",
                                {{"ranks", plan.ranks()},
                                 {"bucket_elements", plan.bucket_elements()},
                                 {"flat_size", plan.flat_size()}}}};
  return json.dump(1) + "\n";
}

}  // namespace

absl::Status CheckpointSnapshot::Take(const TrainingState& state, const Policy& policy,
                                      const AdamW& optimizer) {
  rank_ = optimizer.rank();
  optimizer_file_ = OptimizerFileName(rank_, optimizer.plan().ranks());
  if (rank_ == 0) {
    state_ = StateText(state, optimizer);
    policy_.config = policy.config;
    policy_.folder = policy.folder;
    dtype_ = policy.weights->dtype();
  }
  return CatchTorch("copying the state into CPU memory", "use a smaller model or more memory", [&] {
    const std::vector<at::Tensor> stored = OptimizerStateTensors(optimizer);
    optimizer_.resize(stored.size());
    for (size_t i = 0; i < stored.size(); ++i) optimizer_[i].Take(stored[i]);
    if (rank_ == 0) weights_.Take(policy.weights->flat());
    return absl::OkStatus();
  });
}

absl::Status CheckpointSnapshot::WriteModel(const std::string& dir) const {
  Policy policy = policy_;
  RETURN_IF_ERROR(CatchTorch("saving the policy", "use a smaller model or more memory", [&] {
    policy.weights = std::make_shared<Weights>(policy.config, at::kCPU, dtype_);
    weights_.CopyTo(policy.weights->flat());
    return absl::OkStatus();
  }));
  return SavePolicy(policy, dir, dtype_ == at::kBFloat16 ? BFLOAT16 : FLOAT32);
}

absl::StatusOr<std::string> CheckpointSnapshot::Write(const std::string& dir) const {
  std::vector<std::string> files = {optimizer_file_};
  if (rank_ == 0) {
    RETURN_IF_ERROR(WriteModel(JoinPath(dir, "model")));
    RETURN_IF_ERROR(WriteFileAtomic(JoinPath(dir, "state.json"), state_));
    files.push_back("model");
    files.push_back("state.json");
  }
  RETURN_IF_ERROR(WriteOptimizerState(JoinPath(dir, optimizer_file_), optimizer_));
  return DescribeFiles(dir, files);
}

}  // namespace tritonrl
