// Learns from one batch of judged responses: forward, HRD loss, backward in micro-batches, then the
// optimizer, on the weights that the generation engine also reads.
#ifndef TRITONRL_TRAINER_LEARNER_H_
#define TRITONRL_TRAINER_LEARNER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/weights.h"
#include "parallel/data_parallel.h"
#include "trainer/adamw.h"
#include "trainer/config.pb.h"
#include "trainer/gradient_passes.h"
#include "trainer/hrd_loss.h"
#include "trainer/hrd_tokens.h"
#include "trainer/policy.h"
#include "trainer/rl_batch.h"
#include "trainer/rl_exchange.h"

namespace tritonrl {

struct LearnerOptions {
  ObjectiveConfig objective;
  OptimizerConfig optimizer;
  int64_t micro_batch_tokens = 4096;  // token budget of one forward and backward pass
  double temperature = 1.0;           // at which the responses were drawn
  uint64_t seed = 0;                  // order of the groups over the optimizer steps of a batch
  int64_t total_steps = 1;            // steps of the run, for the learning rate
  // Groups of a step, over all ranks: groups can be given to LearnEarly then, for which there must
  // be one update a step and ZeRO-1. 0: Learn gets all of them.
  int64_t early_groups = 0;
  std::string bad_gradients;  // folder for gradients that are not finite (bad_gradient.h); "": none
};

// What one call of Learn did, over all ranks. Means are over response tokens that were learned
// from.
struct LearnStats {
  double loss = 0;                // mean over the optimizer steps
  double gradient_norm = 0;       // of the last optimizer step, before clipping
  double learning_rate = 0;       // of the last optimizer step
  double clip_fraction = 0;       // share of tokens whose gradient the clip removed
  double mean_ratio = 1;          // pi / pi_old; with an importance cap pi / pi_prox (hrd_loss.h)
  double entropy = 0;             // nats a token
  double kl = 0;                  // from the starting policy; 0 without KL penalty
  double importance = 1;          // mean of the importance weights; 1 without a cap
  double truncated_fraction = 0;  // share of tokens whose importance weight was cut
  // Largest |log pi - log pi_old| before the first update of the batch, of tokens that were drawn
  // from the same weights: what engine and learner differ by.
  double logprob_max_diff = 0;
  int64_t samples = 0;          // samples passed through the model (per epoch)
  int64_t skipped_samples = 0;  // counted samples without any gradient
  int64_t tokens = 0;           // prompt and response tokens passed through the model, all epochs
  int64_t optimizer_steps = 0;  // updates made
  int64_t skipped_steps = 0;    // updates left out: nothing to learn, or a gradient not finite
  std::string bad_gradient;     // where the last one that was not finite is kept; "": none was
  double seconds = 0;
};

class Learner {
 public:
  // All pointers must outlive the learner. `optimizer` must hold the weights of `policy`, for the
  // same ranks.
  Learner(LearnerOptions options, const Policy* policy, AdamW* optimizer, DataParallel* ranks);

  // Advantages must have been filled in (FillAdvantages). `batch` is this rank's share: group g of
  // the whole batch belongs to rank g % size, in order; who learns from which sample is decided by
  // cost (rl_exchange.h), with options.early_groups by who has it. The normalisation (groups, group
  // size, response length) is that of the whole batch, so the result does not depend on the number
  // of ranks nor on the micro-batches, up to rounding. `step` counts from 0. Error: a batch that
  // does not fit (named), out of memory, a lost rank, or gradients that were not finite
  // optimizer.max_skipped_in_a_row times in a row.
  absl::StatusOr<LearnStats> Learn(const RlBatch& batch, int64_t step);

  // With options.early_groups, ahead of Learn of the same step, which then takes the rest of this
  // rank's share: the next group goes into micro-batches, and those that are full go through the
  // model. Weights do not change, ranks do not wait for each other, and each learns from its own
  // groups. The result is the same to the bit whichever groups come here and which with Learn, as
  // long as their order is the same. What was begun of another step is dropped. Gives the number of
  // samples that went through the model in this call. Error: as Learn, but for lost ranks; nothing
  // can be learned of this step any more.
  absl::StatusOr<int64_t> LearnEarly(const RlGroup& group, int64_t step);

  const LearnerOptions& options() const { return options_; }

  // For checkpoints.
  int skipped_in_a_row() const { return skipped_in_a_row_; }
  void set_skipped_in_a_row(int n) { skipped_in_a_row_ = n; }

 private:
  // Sums of a whole call of Learn. Device tensors are collected and read once at the end.
  struct Totals {
    std::vector<at::Tensor> statistics;  // one [kNumHrdStatistics] for each run of rows
    std::vector<bool> before_update;     // whether it ran before the first update of the batch
    bool updated = false;
    int64_t tokens = 0;  // prompt and response tokens passed through the model

    void Add(const HrdResult& loss) {
      statistics.push_back(loss.statistics);
      before_update.push_back(!updated);
    }
  };
  // This rank's share of an update.
  struct Part {
    std::vector<RlItem> items;     // samples with a gradient
    std::optional<RlSample> idle;  // one of those that count and have none
    double groups = 0;             // that count
    double skipped = 0;            // samples like `idle`
  };
  // What LearnEarly has begun.
  struct Early {
    int64_t step = -1;
    Part part;
    size_t passed = 0;  // so many of the first items have gone through the model
    Totals totals;
  };

  std::vector<std::vector<int>> Partition(int64_t local_groups, int64_t all_groups, int64_t step,
                                          int epoch) const;
  absl::Status LearnAll(const RlBatch& batch, int64_t step, LearnStats* stats);
  absl::Status LearnPart(const RlBatch& batch, const std::vector<int>& groups, int64_t update,
                         bool first_epoch, Totals* totals, LearnStats* stats);
  // With weights 1 / (G * prompts).
  void AddGroup(const RlGroup& group, double prompts, Part* part) const;
  // Sums over all ranks, into `stats` too where they count samples.
  struct PartSizes {
    double groups = 0, samples = 0;
  };
  absl::StatusOr<PartSizes> SumSizes(const Part& part, LearnStats* stats);
  // Nothing to learn anywhere: one forward pass still measures learner against engine.
  absl::Status LeaveOut(const Part& part, Totals* totals, LearnStats* stats);
  // Drops what was begun of another step.
  void BeginEarly(int64_t step);
  // Passes the micro-batches of early_ on; without `all` not the last, into which more may fit.
  void PassEarly(bool all);
  absl::Status LearnRest(const RlBatch& batch, int64_t step, LearnStats* stats);
  HrdMicroBatch MicroBatchOf(std::span<const RlItem> items, const std::vector<int>& pack) const;
  // Passes the items through the model and back, by all ranks together, so that the optimizer's
  // step can follow.
  absl::Status Accumulate(std::span<const RlItem> items, const std::vector<std::vector<int>>& packs,
                          Totals* totals);
  void ForwardBackward(std::span<const RlItem> items, const std::vector<int>& pack, bool early,
                       Totals* totals);
  absl::Status Update(int64_t update, const std::vector<RlItem>& items, LearnStats* stats);
  absl::Status Finish(const Totals& totals, LearnStats* stats);

  LearnerOptions options_;
  SequenceCost cost_;
  const Policy* policy_;
  AdamW* optimizer_;
  DataParallel* ranks_;
  GradientPasses passes_;
  Early early_;
  int skipped_in_a_row_ = 0;
};

// Checks that lengths of tokens, log-probabilities (also those that the objective needs) and
// plan_end fit; the error names the task.
absl::Status ValidateRlBatch(const RlBatch& batch, const ObjectiveConfig& objective);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_LEARNER_H_
