// The samples of a training step, perhaps begun in the step before.
#ifndef TRITONRL_TRAINER_GRPO_STEP_SAMPLES_H_
#define TRITONRL_TRAINER_GRPO_STEP_SAMPLES_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "trainer/grpo/run_parts.h"
#include "trainer/grpo/sample_batch.h"

namespace tritonrl {

class StepSamples {
 public:
  // `parts` must outlive this object.
  explicit StepSamples(RunParts* parts) : parts_(parts) {}

  // After `done` steps: begins this rank's share of the next one's samples, if they have not been.
  // With `go_ahead` also those of the step after, which get the places that the former leave.
  absl::StatusOr<std::shared_ptr<SampleBatch>> Start(int64_t done, bool go_ahead);

  // Samples of a later step than the one started last are under way.
  bool ahead() const { return ahead_ != nullptr; }

 private:
  absl::StatusOr<std::shared_ptr<SampleBatch>> Begin(int64_t step);

  RunParts* const parts_;
  std::shared_ptr<SampleBatch> ahead_;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_STEP_SAMPLES_H_
