// Accumulates the gradient of one update over the micro-batches of all ranks; ranks may have
// different numbers of micro-batches.
#ifndef TRITONRL_TRAINER_LEARNER_GRADIENT_ACCUMULATOR_H_
#define TRITONRL_TRAINER_LEARNER_GRADIENT_ACCUMULATOR_H_

#include <cstdint>

#include "absl/status/status.h"
#include "model/transformer.h"
#include "model/weights/weights.h"
#include "parallel/process_group.h"
#include "trainer/optimizer/adamw.h"

namespace tritonrl {

// Usage for each update: Begin, Pass for each micro-batch, End, then the optimizer's Step on
// gradients(). The reduction over ranks overlaps the backward pass of every micro-batch if
// optimizer.sharded(), else of the last one.
class GradientAccumulator {
 public:
  // All pointers must outlive this object. Throws c10::Error if out of memory.
  GradientAccumulator(const Transformer* model, AdamW* optimizer, ProcessGroup* ranks)
      : model_(model),
        optimizer_(optimizer),
        ranks_(ranks),
        gradients_(optimizer->MakeGradients()) {}

  // Clears the gradient for an update with `micro_batches` micro-batches on this rank. Called by
  // all ranks together. Error: a lost rank.
  absl::Status Begin(int64_t micro_batches);
  // Runs forward and backward pass of the next micro-batch, see Transformer::ForwardBackward.
  ForwardResult Pass(const PackedBatch& batch, const at::Tensor& targets, double temperature,
                     Transformer::TokenLoss loss);
  // Called after the last micro-batch. Contributes zeros to the reductions of ranks that have more
  // micro-batches.
  void End();

  // The argument of Step. Unless optimizer.sharded(), it holds the sum over this rank's
  // micro-batches after End.
  Gradients* gradients() { return &gradients_; }

 private:
  const Transformer* const model_;
  AdamW* const optimizer_;
  ProcessGroup* const ranks_;
  Gradients gradients_;
  int64_t mine_ = 0;  // micro-batches of this rank
  int64_t all_ = 0;   // passes of each rank, those with zero gradients included
  int64_t done_ = 0;  // passes of this update so far
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_LEARNER_GRADIENT_ACCUMULATOR_H_
