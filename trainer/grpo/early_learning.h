// Learns from a step's groups while its last samples are being generated (learn_early).
#ifndef TRITONRL_TRAINER_GRPO_EARLY_LEARNING_H_
#define TRITONRL_TRAINER_GRPO_EARLY_LEARNING_H_

#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/bounded_queue.h"
#include "trainer/grpo/learner_stream.h"
#include "trainer/grpo/run_parts.h"
#include "trainer/grpo/sample_batch.h"
#include "trainer/grpo/step_metrics.h"
#include "trainer/learner.h"
#include "trainer/rl_batch.h"

namespace tritonrl {

// One step. A thread of its own learns, so that samples go on to the verifier meanwhile; what is
// below is called by the thread that works on the samples.
class EarlyLearning {
 public:
  // `batch`: this rank's samples of the step after `done` others. Both must outlive this object.
  EarlyLearning(int64_t done, const SampleBatch* batch, RunParts* parts);
  // Waits for the micro-batch under way. What was begun without Finish is never learned.
  ~EarlyLearning();

  // Gives the thread all groups whose turn it is (NextInOrder).
  void Advance();
  // What went wrong in the thread.
  absl::Status status() const;

  // Once all samples have been judged, by all ranks together, while the engine leaves the weights
  // alone: learns from the rest and makes the update, see Learner::Learn. The seconds are those of
  // this call.
  absl::StatusOr<LearnStats> Finish();
  // What the thread had done by then.
  const LearnedEarly& early() const { return early_; }

 private:
  void Run();
  // Until `use` is gone the calling thread launches on the learner's stream.
  absl::Status UseStream(std::optional<LearnerStream::Use>* use) const;
  // Takes a group; returns how many samples went through the model.
  absl::StatusOr<int64_t> Take(RlGroup group);
  void Stop(bool abandon);

  const int64_t step_;
  const SampleBatch* const batch_;
  RunParts* const parts_;
  std::vector<bool> handed_over_;  // groups
  LearnedEarly early_;
  BoundedQueue<RlGroup> queue_;
  mutable absl::Mutex mutex_;
  LearnedEarly passed_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  bool abandoned_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_EARLY_LEARNING_H_
