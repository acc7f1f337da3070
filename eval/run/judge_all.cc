#include "eval/run/judge_all.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/progress.h"
#include "base/status.h"

namespace tritonrl {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(100);

// The verdicts as they come.
class Verdicts {
 public:
  explicit Verdicts(size_t count) : verdicts_(count) {}

  void Set(size_t index, Verdict verdict) {
    const absl::MutexLock lock(&mutex_);
    verdicts_[index] = std::move(verdict);
    ++done_;
  }
  // Waits for a moment until more than `seen` are there; returns how many are.
  size_t WaitForMore(size_t seen) {
    const absl::MutexLock lock(&mutex_);
    const auto more = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return done_ > seen; };
    mutex_.AwaitWithTimeout(absl::Condition(&more), kTick);
    return done_;
  }
  std::vector<Verdict> Take() {
    const absl::MutexLock lock(&mutex_);
    return std::move(verdicts_);
  }

 private:
  absl::Mutex mutex_;
  std::vector<Verdict> verdicts_ ABSL_GUARDED_BY(mutex_);
  size_t done_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

absl::StatusOr<std::optional<std::vector<Verdict>>> JudgeAll(std::vector<VerifyRequest> requests,
                                                             const JudgeAllOptions& options,
                                                             const SignalHandler& stop,
                                                             Verifier* verifier) {
  const size_t total = requests.size();
  Verdicts verdicts(total);
  ProgressOptions bar_options;
  bar_options.label = options.label;
  bar_options.total = static_cast<int64_t>(total);
  Progress bar(bar_options);
  for (size_t i = 0; i < total; ++i) {
    verifier->Submit(std::move(requests[i]),
                     [&verdicts, i](Verdict verdict) { verdicts.Set(i, std::move(verdict)); });
  }
  absl::Status health;
  size_t done = 0;
  bool closed = false;
  // All callbacks must have been called before `verdicts` goes.
  while (done < total) {
    done = verdicts.WaitForMore(done);
    bar.Tick(static_cast<int64_t>(done), "judged");
    if (options.health != nullptr) health.Update(options.health());
    if (closed || (health.ok() && !stop.requested() && absl::Now() < options.deadline)) continue;
    verifier->Close();  // the rest ends as cancelled, at once
    closed = true;
  }
  RETURN_IF_ERROR(health);
  if (stop.requested()) return std::nullopt;
  if (closed) return absl::DeadlineExceededError("the time limit of the evaluation passed");
  return verdicts.Take();
}

}  // namespace tritonrl
