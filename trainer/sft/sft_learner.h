// The optimizer step and the evaluation loss of supervised fine-tuning.
#ifndef TRITONRL_TRAINER_SFT_SFT_LEARNER_H_
#define TRITONRL_TRAINER_SFT_SFT_LEARNER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "parallel/process_group.h"
#include "trainer/config/config.pb.h"
#include "trainer/learner/gradient_accumulator.h"
#include "trainer/learner/policy.h"
#include "trainer/optimizer/adamw.h"
#include "trainer/sft/sft_data.h"

namespace tritonrl {

struct SftStepStats {
  double loss = 0;  // mean over the response tokens of the whole batch, in nats
  double gradient_norm = 0;
  double learning_rate = 0;
  bool skipped = false;  // the gradient was not finite, or the batch was empty
  int64_t tokens = 0;    // sums over all ranks, as below
  int64_t response_tokens = 0;
  int64_t dropped = 0;             // examples longer than max_sequence_tokens
  std::string nonfinite_gradient;  // path of the dump of a non-finite gradient; "": none
};

class SftLearner {
 public:
  // All pointers must outlive the learner. `optimizer` must hold the weights of `policy`.
  // `nonfinite_gradients`: folder for dumps of non-finite gradients (nonfinite_gradient.h); "":
  // none.
  SftLearner(const OptimizerConfig& optimizer_config, int64_t total_steps, const Policy* policy,
             AdamW* optimizer, ProcessGroup* ranks, std::string nonfinite_gradients = "");

  // Computes loss = -(sum of log pi over response tokens) / (their number, over all ranks), runs
  // the backward pass and updates the weights. `batch` is this rank's share. Error: out of memory,
  // a lost rank, or optimizer.max_consecutive_skipped non-finite gradients in a row.
  absl::StatusOr<SftStepStats> Step(const SftBatch& batch, int64_t step);

  // The same loss over `batch` (this rank's share), without an update.
  absl::StatusOr<double> EvaluateLoss(const SftBatch& batch);

  int consecutive_skipped() const { return consecutive_skipped_; }
  void set_consecutive_skipped(int n) { consecutive_skipped_ = n; }

 private:
  // Returns the summed loss of all micro-batches. With `scale` != 0 it also accumulates their
  // gradients for the optimizer's step; `scale` is d loss / d log pi of a response token. Reads one
  // number back from the device, at the end.
  absl::StatusOr<double> Pass(const SftBatch& batch, double scale);
  absl::Status StepOn(const SftBatch& batch, int64_t step, SftStepStats* stats);

  OptimizerConfig config_;
  int64_t total_steps_;
  const Policy* policy_;
  AdamW* optimizer_;
  ProcessGroup* ranks_;
  const std::string nonfinite_gradients_;
  GradientAccumulator passes_;
  int consecutive_skipped_ = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_SFT_SFT_LEARNER_H_
