// The two sides of a model that is spread over the ranks of a job: rank 0 runs the engine's steps
// and tells the others, which run the same ones.
#ifndef TRITONRL_ROLLOUT_LEADING_RUNNER_H_
#define TRITONRL_ROLLOUT_LEADING_RUNNER_H_

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
#include "parallel/rank_mail.h"
#include "parallel/rank_sum.h"
#include "rollout/call_watch.h"
#include "rollout/forwarding_runner.h"
#include "rollout/model_runner.h"
#include "rollout/step_message.h"

namespace tritonrl {

// What connects a rank with the others.
struct RankLinks {
  std::unique_ptr<RankSum> sum;  // which the rank's runner uses
  std::unique_ptr<RankMail> mail;
  // Of whatever another rank must answer. An engine with nothing to do is no lost rank, however
  // long that lasts.
  absl::Duration timeout;
};

// The runner that rank 0's engine has. Each call goes to the other ranks as one text before rank
// 0's own runner gets it. The first error, of rank 0 or of another, is that of every later call:
// ranks that have not run the same steps can run no more.
class LeadingRunner : public ForwardingRunner {
 public:
  // `own`: rank 0's, of the same sizes as the others' but for its pages, of which all ranks have at
  // least `pages`.
  LeadingRunner(std::unique_ptr<ModelRunner> own, RankLinks links, int pages);
  // Tells the others that no more will come.
  ~LeadingRunner() override;

  int num_pages() const override { return pages_; }
  void WeightsChanged() override;  // an error comes out of the next step
  // Both on all ranks or, after an error, on none.
  absl::Status ReleaseMemory() override;
  absl::Status TakeMemory() override;
  absl::Status Launch(const ModelStep& step) override;
  absl::StatusOr<std::vector<TokenDraw>> Collect() override;

 private:
  absl::Status Tell(const std::string& text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The error of a rank that has sent one.
  absl::Status News();
  // Tells the others a command, does it here, and waits for what they say.
  absl::Status Together(StepCommand command, const std::function<absl::Status()>& here)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Noted(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Lets the others know that this rank is there while it has nothing to tell.
  void Beat();

  RankLinks links_;
  const int pages_;
  CallWatch watch_;
  absl::Mutex mutex_;  // of the links: one thread at a time may use them
  absl::Time told_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread beat_;
};

// The loop of each other rank: does with `runner` what rank 0 says until that ends. An error of the
// runner goes to rank 0. OK: rank 0 has ended, and knows of an error if there was one. Else it does
// not answer, or not any more.
absl::Status ServeSteps(std::unique_ptr<ModelRunner> runner, const RankLinks& links);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_LEADING_RUNNER_H_
