// Assigns learning and generation to the ranks of a job (GrpoHrdConfig.rollout_ranks), and
// transfers samples and weights between them.
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
  bool changed = true;  // on rank 0: whether the weights changed; false: only the version is sent
  // See ReceiveOptions.
  std::optional<Engine::KvPolicy> pause;
};

// All ranks of the job call each non-const method together. Rank 0 always learns.
class RankPlacement {
 public:
  // The last `rollout_ranks` ranks of `all` (which must outlive this object) only generate and
  // verify; the ranks before them only learn. With 0 all ranks do both. InvalidArgument: no rank
  // would learn.
  static absl::StatusOr<std::unique_ptr<RankPlacement>> Make(int rollout_ranks, ProcessGroup* all);

  bool disaggregated() const { return rollout_ranks_ > 0; }
  bool learns() const { return all_->rank() < learning_ranks(); }
  bool generates() const { return !disaggregated() || !learns(); }
  // The group of learning ranks; null on a rank that only generates.
  ProcessGroup* learners() const { return disaggregated() ? learners_.get() : all_; }
  // Indices, below `count`, of the prompts for which this rank generates; empty if it only learns.
  std::vector<int> Share(int count) const;

  // The following functions do nothing unless the placement is disaggregated.

  // Called first. `weights`: the weights of this rank's engine or learner.
  absl::Status InitWeightSync(std::shared_ptr<Weights> weights);
  // A barrier of learning and generating ranks, with deadline `timeout`.
  absl::Status WaitForOtherRanks(absl::Duration timeout);
  // Sends the rewarded groups of `samples` to the learning ranks. Each receives the groups that it
  // would have generated itself if all ranks did both.
  absl::StatusOr<RlBatch> SendToLearners(const RlBatch& batch, const SampleBatch& samples);
  // Sends rank 0's weights and their version to the engines. `engine`: null on a rank that only
  // learns.
  absl::Status SyncWeightsToRollout(uint64_t version, const WeightSyncOptions& options,
                                    Engine* engine);

 private:
  RankPlacement(int rollout_ranks, ProcessGroup* all) : rollout_ranks_(rollout_ranks), all_(all) {}
  int learning_ranks() const { return all_->size() - rollout_ranks_; }

  const int rollout_ranks_;
  ProcessGroup* const all_;
  std::unique_ptr<ProcessGroup> learners_;      // null on a rank that only generates
  std::unique_ptr<ProcessGroup> weight_ranks_;  // rank 0 and the generating ranks
  std::unique_ptr<WeightBroadcast> broadcast_;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_RANK_PLACEMENT_H_
