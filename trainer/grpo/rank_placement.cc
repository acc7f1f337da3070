#include "trainer/grpo/rank_placement.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "trainer/learner/sample_exchange.h"

namespace tritonrl {

absl::StatusOr<std::unique_ptr<RankPlacement>> RankPlacement::Make(int rollout_ranks,
                                                                   ProcessGroup* all) {
  if (rollout_ranks > 0 && rollout_ranks >= all->size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("rollout_ranks is ", rollout_ranks, ", but the job has ", all->size(),
                     all->size() == 1 ? " rank" : " ranks",
                     " and one at least must learn; start more, or lower it"));
  }
  std::unique_ptr<RankPlacement> placement(new RankPlacement(rollout_ranks, all));
  if (!placement->disaggregated()) return placement;
  std::vector<int> learners, weight_ranks = {0};
  for (int rank = 0; rank < all->size(); ++rank) {
    (rank < placement->learning_ranks() ? learners : weight_ranks).push_back(rank);
  }
  ASSIGN_OR_RETURN(placement->learners_, all->NewGroup(learners));
  ASSIGN_OR_RETURN(placement->weight_ranks_, all->NewGroup(weight_ranks));
  return placement;
}

std::vector<int> RankPlacement::Share(int count) const {
  std::vector<int> share;
  if (!generates()) return share;
  const int first = disaggregated() ? all_->rank() - learning_ranks() : all_->rank();
  const int step = disaggregated() ? rollout_ranks_ : all_->size();
  for (int i = first; i < count; i += step) share.push_back(i);
  return share;
}

absl::Status RankPlacement::InitWeightSync(std::shared_ptr<Weights> weights) {
  if (!disaggregated()) return absl::OkStatus();
  if (learners_ != nullptr) RETURN_IF_ERROR(learners_->InitNcclCollectives(weights->device()));
  if (weight_ranks_ == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(weight_ranks_->InitNcclCollectives(weights->device()));
  ASSIGN_OR_RETURN(broadcast_, WeightBroadcast::Join(std::move(weights), weight_ranks_.get()));
  return absl::OkStatus();
}

absl::Status RankPlacement::WaitForOtherRanks(absl::Duration timeout) {
  return disaggregated() ? all_->Barrier(timeout) : absl::OkStatus();
}

absl::StatusOr<RlBatch> RankPlacement::SendToLearners(const RlBatch& batch,
                                                      const SampleBatch& samples) {
  if (!disaggregated()) return batch;
  std::vector<PlacedGroup> groups;
  for (size_t g = 0; g < batch.size(); ++g) groups.push_back({samples.groups[g].slot, batch[g]});
  return RedistributeGroups(groups, learns() ? all_->rank() : -1, learning_ranks(), all_);
}

absl::Status RankPlacement::SyncWeightsToRollout(uint64_t version, const WeightSyncOptions& options,
                                                 Engine* engine) {
  if (broadcast_ == nullptr) return absl::OkStatus();
  if (engine != nullptr) {
    return broadcast_->Receive(engine, {.expected = version, .pause = options.pause}).status();
  }
  if (options.changed) return broadcast_->Send(version);
  return broadcast_->Send(version, std::vector<std::string>());
}

}  // namespace tritonrl
