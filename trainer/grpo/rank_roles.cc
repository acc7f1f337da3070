#include "trainer/grpo/rank_roles.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "trainer/rl_exchange.h"

namespace tritonrl {

absl::StatusOr<std::unique_ptr<RankRoles>> RankRoles::Make(int rollout_ranks, DataParallel* all) {
  if (rollout_ranks > 0 && rollout_ranks >= all->size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("rollout_ranks is ", rollout_ranks, ", but the job has ", all->size(),
                     all->size() == 1 ? " rank" : " ranks",
                     " and one at least must learn; start more, or lower it"));
  }
  std::unique_ptr<RankRoles> roles(new RankRoles(rollout_ranks, all));
  if (!roles->split()) return roles;
  std::vector<int> learners, weight_ranks = {0};
  for (int rank = 0; rank < all->size(); ++rank) {
    (rank < roles->learning_ranks() ? learners : weight_ranks).push_back(rank);
  }
  ASSIGN_OR_RETURN(roles->learners_, all->Group(learners));
  ASSIGN_OR_RETURN(roles->weight_ranks_, all->Group(weight_ranks));
  return roles;
}

std::vector<int> RankRoles::Share(int count) const {
  std::vector<int> share;
  if (!generates()) return share;
  const int first = split() ? all_->rank() - learning_ranks() : all_->rank();
  const int step = split() ? rollout_ranks_ : all_->size();
  for (int i = first; i < count; i += step) share.push_back(i);
  return share;
}

absl::Status RankRoles::JoinWeights(std::shared_ptr<Weights> weights) {
  if (!split()) return absl::OkStatus();
  if (learners_ != nullptr) RETURN_IF_ERROR(learners_->JoinGpus(weights->device()));
  if (weight_ranks_ == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(weight_ranks_->JoinGpus(weights->device()));
  ASSIGN_OR_RETURN(broadcast_, WeightBroadcast::Join(std::move(weights), weight_ranks_.get()));
  return absl::OkStatus();
}

absl::Status RankRoles::AwaitOthers(absl::Duration timeout) {
  return split() ? all_->Barrier(timeout) : absl::OkStatus();
}

absl::StatusOr<RlBatch> RankRoles::ToLearners(const RlBatch& batch, const SampleBatch& samples) {
  if (!split()) return batch;
  std::vector<PlacedGroup> groups;
  for (size_t g = 0; g < batch.size(); ++g) groups.push_back({samples.groups[g].slot, batch[g]});
  return ExchangeGroups(groups, learns() ? all_->rank() : -1, learning_ranks(), all_);
}

absl::Status RankRoles::ToGenerators(uint64_t version, const WeightsToGenerators& options,
                                     Engine* engine) {
  if (broadcast_ == nullptr) return absl::OkStatus();
  if (engine != nullptr) {
    return broadcast_->Receive(engine, {.expected = version, .pause = options.pause}).status();
  }
  if (options.changed) return broadcast_->Send(version);
  return broadcast_->Send(version, std::vector<std::string>());
}

}  // namespace tritonrl
