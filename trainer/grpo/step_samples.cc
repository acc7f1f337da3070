#include "trainer/grpo/step_samples.h"

#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tritonrl {

absl::StatusOr<std::shared_ptr<SampleBatch>> StepSamples::Begin(int64_t step) {
  const GrpoHrdConfig& config = parts_->config;
  auto batch = std::make_shared<SampleBatch>();
  batch->name = absl::StrCat("step ", step + 1);
  batch->seed = config.seed();
  batch->step = static_cast<uint64_t>(step);
  batch->repeatable = !config.sampling().ahead();
  const auto tasks = parts_->prompts->Draw(step, config.prompts_per_step());
  for (const int i : parts_->roles->Share(static_cast<int>(tasks.size()))) {
    SampleGroup group;
    group.task = tasks[i];
    group.slot = i;
    group.sampling = parts_->TrainingSampling();
    if (config.learn_early()) group.longest = std::make_shared<std::atomic<int>>(0);
    batch->groups.push_back(std::move(group));
  }
  RETURN_IF_ERROR(parts_->runner->Start(batch, config.group_size()));
  return batch;
}

absl::StatusOr<std::shared_ptr<SampleBatch>> StepSamples::Start(int64_t done, bool go_ahead) {
  std::shared_ptr<SampleBatch> batch = std::exchange(ahead_, nullptr);
  if (batch == nullptr) {
    ASSIGN_OR_RETURN(batch, Begin(done));
  }
  // The engine serves samples in the order in which they came.
  if (go_ahead) {
    ASSIGN_OR_RETURN(ahead_, Begin(done + 1));
  }
  return batch;
}

}  // namespace tritonrl
