// Tensor-parallel driver and workers: rank 0 runs the engine's steps and sends each one to the
// workers, which run the same steps.
#ifndef TRITONRL_ROLLOUT_DISTRIBUTED_TENSOR_PARALLEL_DRIVER_H_
#define TRITONRL_ROLLOUT_DISTRIBUTED_TENSOR_PARALLEL_DRIVER_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "parallel/collectives.h"
#include "rollout/distributed/step_message.h"
#include "rollout/distributed/watchdog.h"
#include "rollout/engine/model_runner.h"

namespace tritonrl {

// Communication between the ranks of a tensor-parallel model.
struct RankChannels {
  std::unique_ptr<Collectives> collectives;  // the rank's runner uses them too
  // Time limit for each answer of another rank. An engine may be idle longer, because it sends
  // heartbeats.
  absl::Duration timeout;
  Clock* clock = Clock::Real();
};

// The model runner of rank 0's engine. Each call is sent to the workers before rank 0's own runner
// executes it. The first error of a step, of Sleep or of a message, on any rank, is sticky: ranks
// in different states cannot continue.
class TensorParallelDriver : public ForwardingRunner {
 public:
  // `own`: rank 0's runner. The runners of all ranks have the same sizes, except that each has its
  // own number of pages, at least `pages`.
  TensorParallelDriver(std::unique_ptr<ModelRunner> own, RankChannels links, int pages);
  // Stops the workers.
  ~TensorParallelDriver() override;

  int num_pages() const override { return pages_; }
  void WeightsChanged() override;  // the next step returns its error
  // Both run on all ranks. If Wake fails on any rank, all ranks sleep again.
  absl::Status Sleep() override;
  absl::Status Wake() override;
  absl::Status Launch(const ModelStep& step) override;
  absl::StatusOr<std::vector<TokenDraw>> Collect() override;

 private:
  absl::Status SendCommand(const std::string& text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the error that a worker has reported, if any.
  absl::Status PollErrors();
  // Sends a command to all workers, executes it on rank 0 with `here`, and waits for the workers'
  // answers.
  absl::Status RunOnAllRanks(StepCommand command, const std::function<absl::Status()>& here)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sleep on all ranks; its error is sticky.
  absl::Status SleepAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status RecordError(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sends heartbeats while there are no steps.
  void SendHeartbeats();

  RankChannels links_;
  const int pages_;
  Watchdog watchdog_;
  absl::Mutex mutex_;  // for links_: one thread at a time may use them
  absl::Time last_sent_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread heartbeat_thread_;
};

// Main loop of every rank except rank 0: executes rank 0's commands with `runner` until rank 0 ends
// it. Sends an error of the runner to rank 0. Returns OK if rank 0 has ended the loop and knows of
// any error; an error if rank 0 does not answer.
absl::Status RunWorkerLoop(std::unique_ptr<ModelRunner> runner, const RankChannels& links);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_DISTRIBUTED_TENSOR_PARALLEL_DRIVER_H_
