// Updates the policy with one batch of verified responses: forward pass, HRD loss and backward pass
// in micro-batches, then the optimizer, in the weights that the generation engine also reads.
#ifndef TRITONRL_TRAINER_LEARNER_LEARNER_H_
#define TRITONRL_TRAINER_LEARNER_LEARNER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/weights/weights.h"
#include "parallel/process_group.h"
#include "trainer/config/config.pb.h"
#include "trainer/learner/gradient_accumulator.h"
#include "trainer/learner/policy.h"
#include "trainer/learner/sample_exchange.h"
#include "trainer/objective/advantage.h"
#include "trainer/objective/hrd_loss.h"
#include "trainer/optimizer/adamw.h"

namespace tritonrl {

struct LearnerOptions {
  ObjectiveConfig objective;
  OptimizerConfig optimizer;
  int64_t micro_batch_tokens = 4096;  // token budget of one forward and backward pass
  double temperature = 1.0;           // sampling temperature of the responses
  uint64_t seed = 0;                  // shuffles the groups over the optimizer steps of a batch
  int64_t total_steps = 1;            // steps of the run, for the learning rate
  std::string nonfinite_gradients;    // folder for dumps of non-finite gradients
                                      // (nonfinite_gradient.h); "": none
};

// Statistics of one call of Learn over all ranks. Means are over the response tokens of the samples
// that were used.
struct LearnStats {
  double loss = 0;                // mean over the optimizer steps
  double gradient_norm = 0;       // of the last optimizer step, before clipping
  double learning_rate = 0;       // of the last optimizer step
  double clip_fraction = 0;       // share of tokens whose gradient the clip removed
  double mean_ratio = 1;          // pi / pi_old; with an importance cap pi / pi_prox (hrd_loss.h)
  double entropy = 0;             // nats per token
  double kl = 0;                  // from the reference policy; 0 without KL penalty
  double importance = 1;          // mean of the importance weights; 1 without a cap
  double truncated_fraction = 0;  // share of tokens whose importance weight was truncated
  // Largest |log pi - log pi_old| before the first update of the batch, over tokens drawn from the
  // same weights: the numerical difference between engine and learner.
  double logprob_max_diff = 0;
  int64_t samples = 0;          // samples passed through the model, per epoch
  int64_t skipped_samples = 0;  // counted samples without gradient
  int64_t tokens = 0;           // prompt and response tokens passed through the model, all epochs
  int64_t optimizer_steps = 0;  // updates made
  int64_t skipped_steps = 0;    // updates skipped: no gradient, or a non-finite one
  std::string nonfinite_gradient;  // path of the last dump; "": none
  double seconds = 0;
};

class Learner {
 public:
  // All pointers must outlive the learner. `optimizer` must hold the weights of `policy` and use
  // the same ranks.
  Learner(LearnerOptions options, const Policy* policy, AdamW* optimizer, ProcessGroup* ranks);

  // Makes the updates of step `step` (counted from 0) with this rank's groups: group g of the whole
  // batch belongs to rank g % size, in order. Advantages must be set (FillAdvantages). The samples
  // are then distributed over the ranks by cost (sample_exchange.h). The loss is normalized
  // (groups, group size, response length) over the whole batch, so the result does not depend on
  // the number of ranks and micro-batches, up to rounding. Error: an invalid sample (named), out of
  // memory, a lost rank, or optimizer.max_consecutive_skipped non-finite gradients in a row.
  absl::StatusOr<LearnStats> Learn(const RlBatch& batch, int64_t step);

  const LearnerOptions& options() const { return options_; }
  // Called before the first step if the number of steps was not known at construction.
  void set_total_steps(int64_t steps) { options_.total_steps = steps; }

  // For checkpoints.
  int consecutive_skipped() const { return consecutive_skipped_; }
  void set_consecutive_skipped(int n) { consecutive_skipped_ = n; }

 private:
  struct Totals;
  struct Part;

  std::vector<std::vector<int>> Partition(int64_t local_groups, int64_t all_groups, int64_t step,
                                          int epoch) const;
  absl::Status LearnAll(const RlBatch& batch, int64_t step, LearnStats* stats);
  absl::Status LearnPart(const RlBatch& batch, const std::vector<int>& groups, int64_t update,
                         bool first_epoch, Totals* totals, LearnStats* stats);
  // Adds the samples of a group, with weights 1 / G.
  void AddGroup(const RlGroup& group, Part* part) const;
  // Sums the sizes of all ranks' parts and adds the sample counts to `stats`.
  struct PartSizes {
    double groups = 0, samples = 0;
  };
  absl::StatusOr<PartSizes> SumSizes(const Part& part, LearnStats* stats);
  // Skips an update without gradient on any rank; one forward pass still measures the difference
  // between learner and engine.
  absl::Status LeaveOut(const Part& part, Totals* totals, LearnStats* stats);
  HrdMicroBatch MakeMicroBatch(const std::vector<WeightedSample>& items,
                               const std::vector<int>& pack) const;
  // Runs forward and backward passes of the items, on all ranks together, before the optimizer's
  // step.
  absl::Status Accumulate(const std::vector<WeightedSample>& items, Totals* totals);
  void ForwardBackward(const std::vector<WeightedSample>& items, const std::vector<int>& pack,
                       Totals* totals);
  absl::Status Update(int64_t update, const std::vector<WeightedSample>& items, LearnStats* stats);
  absl::Status Finish(const Totals& totals, LearnStats* stats);

  LearnerOptions options_;
  SequenceCost cost_;
  const Policy* policy_;
  AdamW* optimizer_;
  ProcessGroup* ranks_;
  GradientAccumulator passes_;
  int consecutive_skipped_ = 0;
};

// InvalidArgument names the task and the sample if the lengths of tokens, log-probabilities (also
// those that the objective needs) and plan_end are inconsistent.
absl::Status ValidateRlBatch(const RlBatch& batch, const ObjectiveConfig& objective);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_LEARNER_LEARNER_H_
