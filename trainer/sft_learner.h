// One optimizer step of supervised fine-tuning, and the evaluation loss.
#ifndef TRITONRL_TRAINER_SFT_LEARNER_H_
#define TRITONRL_TRAINER_SFT_LEARNER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "parallel/data_parallel.h"
#include "trainer/adamw.h"
#include "trainer/config.pb.h"
#include "trainer/gradient_passes.h"
#include "trainer/policy.h"
#include "trainer/sft_data.h"

namespace tritonrl {

struct SftStepStats {
  double loss = 0;  // mean over the response tokens of the whole batch, in nats
  double gradient_norm = 0;
  double learning_rate = 0;
  bool skipped = false;  // the gradient was not finite, or the batch was empty
  int64_t tokens = 0;    // over all ranks, as the rest
  int64_t response_tokens = 0;
  int64_t left_out = 0;      // examples that were too long
  std::string bad_gradient;  // where one that was not finite is kept; "": it was finite
};

class SftLearner {
 public:
  // All pointers must outlive the learner. `optimizer` must hold the weights of `policy`.
  // `bad_gradients`: folder for gradients that are not finite (bad_gradient.h); "": none.
  SftLearner(const OptimizerConfig& optimizer_config, int64_t total_steps, const Policy* policy,
             AdamW* optimizer, DataParallel* ranks, std::string bad_gradients = "");

  // loss = -(sum of log pi over response tokens) / (their number, over all ranks); backward;
  // update. `batch` is this rank's share.
  absl::StatusOr<SftStepStats> Step(const SftBatch& batch, int64_t step);

  // The same loss over `batch` (this rank's share), without learning.
  absl::StatusOr<double> EvaluateLoss(const SftBatch& batch);

  int skipped_in_a_row() const { return skipped_in_a_row_; }
  void set_skipped_in_a_row(int n) { skipped_in_a_row_ = n; }

 private:
  // Adds up the loss of all micro-batches. With `scale` != 0 also their gradients, ready for the
  // optimizer's step; `scale` is d loss / d log pi of a response token. One number is read back
  // from the device at the end.
  absl::StatusOr<double> Pass(const SftBatch& batch, double scale);
  absl::Status StepOn(const SftBatch& batch, int64_t step, SftStepStats* stats);

  OptimizerConfig config_;
  int64_t total_steps_;
  const Policy* policy_;
  AdamW* optimizer_;
  DataParallel* ranks_;
  const std::string bad_gradients_;
  GradientPasses passes_;
  int skipped_in_a_row_ = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_SFT_LEARNER_H_
