// Which ranks of a job learn and which generate (GrpoHrdConfig.rollout_ranks), and how samples and
// weights get from one kind to the other.
#ifndef TRITONRL_TRAINER_GRPO_RANK_PLACEMENT_H_
#define TRITONRL_TRAINER_GRPO_RANK_PLACEMENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "model/weights/weights.h"
#include "parallel/process_group.h"
#include "rollout/distributed/weight_broadcast.h"
#include "rollout/engine/engine.h"
#include "trainer/grpo/sample_batch.h"
#include "trainer/objective/advantage.h"

namespace tritonrl {

struct WeightSyncOptions {
  bool changed = true;  // on rank 0; else only the version travels
  // See ReceiveOptions.
  std::optional<Engine::KvPolicy> pause;
};

// All methods but the plain questions are called by all ranks of the job together. Rank 0 learns.
class RankPlacement {
 public:
  // The last `rollout_ranks` of `all` (which must outlive this object) only generate and verify,
  // the others only learn; with 0 all ranks do both. InvalidArgument: no rank would learn.
  static absl::StatusOr<std::unique_ptr<RankPlacement>> Make(int rollout_ranks, ProcessGroup* all);

  bool disaggregated() const { return rollout_ranks_ > 0; }
  bool learns() const { return all_->rank() < learning_ranks(); }
  bool generates() const { return !disaggregated() || !learns(); }
  // The ranks that learn together; null on a rank that only generates.
  ProcessGroup* learners() const { return disaggregated() ? learners_.get() : all_; }
  // Of `count` prompts, numbered from 0, those that this rank generates for: none where it only
  // learns.
  std::vector<int> Share(int count) const;

  // The following do nothing unless the ranks are split.

  // Before the others: this rank's weights, which the engine and the learner use.
  absl::Status InitWeightSync(std::shared_ptr<Weights> weights);
  // Waits, up to the timeout, for what only ranks of the other kind do.
  absl::Status WaitForOtherRanks(absl::Duration timeout);
  // Rewarded groups of `samples` from where they were generated to where they are learned from:
  // each rank that learns gets those that it would have generated without a split.
  absl::StatusOr<RlBatch> SendToLearners(const RlBatch& batch, const SampleBatch& samples);
  // Rank 0's weights to the engines, with their version. `engine`: null on a rank that only learns.
  absl::Status SyncWeightsToRollout(uint64_t version, const WeightSyncOptions& options,
                                    Engine* engine);

 private:
  RankPlacement(int rollout_ranks, ProcessGroup* all) : rollout_ranks_(rollout_ranks), all_(all) {}
  int learning_ranks() const { return all_->size() - rollout_ranks_; }

  const int rollout_ranks_;
  ProcessGroup* const all_;
  std::unique_ptr<ProcessGroup> learners_;      // null on the others
  std::unique_ptr<ProcessGroup> weight_ranks_;  // rank 0 and those that generate
  std::unique_ptr<WeightBroadcast> broadcast_;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_RANK_PLACEMENT_H_
