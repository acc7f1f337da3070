#include "trainer/grpo/early_learning.h"

#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "model/torch_status.h"
#include "trainer/grpo/group_order.h"
#include "trainer/grpo/rl_batch_builder.h"

namespace tritonrl {

EarlyLearning::EarlyLearning(int64_t done, const SampleBatch* batch, RunParts* parts)
    : step_(done),
      batch_(batch),
      parts_(parts),
      handed_over_(batch->groups.size()),
      queue_(batch->groups.size()),
      thread_([this] { Run(); }) {}

EarlyLearning::~EarlyLearning() { Stop(/*abandon=*/true); }

void EarlyLearning::Stop(bool abandon) {
  if (!thread_.joinable()) return;
  {
    absl::MutexLock lock(&mutex_);
    abandoned_ = abandon;
  }
  queue_.Close();
  thread_.join();
}

absl::Status EarlyLearning::status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

void EarlyLearning::Advance() {
  while (const std::optional<int> next = NextInOrder(*batch_, handed_over_)) {
    handed_over_[*next] = true;
    queue_.Push(BuildRlGroup(*batch_, batch_->groups[*next], parts_->config.objective()));
  }
}

void EarlyLearning::Run() {
  while (std::optional<RlGroup> group = queue_.Pop()) {
    {
      absl::MutexLock lock(&mutex_);
      if (abandoned_) return;
    }
    const absl::Time start = absl::Now();
    const absl::StatusOr<int64_t> samples = Take(*std::move(group));
    absl::MutexLock lock(&mutex_);
    passed_.seconds += absl::ToDoubleSeconds(absl::Now() - start);
    if (samples.ok()) {
      passed_.samples += *samples;
    } else {
      status_ = samples.status();
      return;
    }
  }
}

// A GPU on which anything has failed fails here too.
absl::Status EarlyLearning::UseStream(std::optional<LearnerStream::Use>* use) const {
  return CatchTorch("the learner's stream", "", [&] { use->emplace(*parts_->learner_stream); });
}

absl::StatusOr<int64_t> EarlyLearning::Take(RlGroup group) {
  std::optional<LearnerStream::Use> use;
  RETURN_IF_ERROR(UseStream(&use));
  // A group by itself, so that no bit depends on which ones are there.
  RlBatch batch;
  batch.push_back(std::move(group));
  if (parts_->reference != nullptr) RETURN_IF_ERROR(parts_->reference->Fill(&batch));
  ASSIGN_OR_RETURN(const int64_t samples, parts_->learner->LearnEarly(batch.front(), step_));
  RETURN_IF_ERROR(parts_->learner_stream->Await());
  return samples;
}

absl::StatusOr<LearnStats> EarlyLearning::Finish() {
  const absl::Time start = absl::Now();
  {
    absl::MutexLock lock(&mutex_);
    early_ = passed_;
  }
  Advance();  // all that is left
  Stop(/*abandon=*/false);
  RETURN_IF_ERROR(status());
  std::optional<LearnerStream::Use> use;
  RETURN_IF_ERROR(UseStream(&use));
  ASSIGN_OR_RETURN(LearnStats stats, parts_->learner->Learn({}, step_));
  RETURN_IF_ERROR(parts_->learner_stream->Await());
  stats.seconds = absl::ToDoubleSeconds(absl::Now() - start);
  return stats;
}

}  // namespace tritonrl
