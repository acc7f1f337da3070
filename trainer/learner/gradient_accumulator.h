// The gradient of one update, from the micro-batches of all ranks: ranks may have different numbers
// of them, or none.
#ifndef TRITONRL_TRAINER_LEARNER_GRADIENT_ACCUMULATOR_H_
#define TRITONRL_TRAINER_LEARNER_GRADIENT_ACCUMULATOR_H_

#include <cstdint>

#include "absl/status/status.h"
#include "model/transformer.h"
#include "model/weights/weights.h"
#include "parallel/process_group.h"
#include "trainer/optimizer/adamw.h"

namespace tritonrl {

// For each update: Begin, Pass for each micro-batch, End, then the optimizer's Step on gradients().
// Sums over ranks begin while a backward goes on: if optimizer.sharded() in each, else in the last.
class GradientAccumulator {
 public:
  // All pointers must outlive this object. Throws c10::Error if the gradients' memory is not there.
  GradientAccumulator(const Transformer* model, AdamW* optimizer, ProcessGroup* ranks)
      : model_(model),
        optimizer_(optimizer),
        ranks_(ranks),
        gradients_(optimizer->MakeGradients()) {}

  // Called by all ranks together; this one has so many micro-batches. What was there of a gradient
  // is gone. Error: a lost rank.
  absl::Status Begin(int64_t micro_batches);
  // Forward and backward of the next one, see Transformer::ForwardBackward.
  ForwardResult Pass(const PackedBatch& batch, const at::Tensor& targets, double temperature,
                     Transformer::TokenLoss loss);
  // After the last one: the other ranks count on this one's share of the sums, zeros where it has
  // none.
  void End();

  // What Step takes. Only if the optimizer is not sharded(): after End the sum of this rank.
  Gradients* gradients() { return &gradients_; }

 private:
  const Transformer* const model_;
  AdamW* const optimizer_;
  ProcessGroup* const ranks_;
  Gradients gradients_;
  int64_t mine_ = 0;  // micro-batches of this rank
  int64_t all_ = 0;   // passes of every rank
  int64_t done_ = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_LEARNER_GRADIENT_ACCUMULATOR_H_
