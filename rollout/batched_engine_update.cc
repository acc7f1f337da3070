// Updates of the weights: what the caller's thread and the engine's own do for one.

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "rollout/batched_engine.h"

namespace tritonrl {
namespace {

constexpr absl::Duration kTakeAgain = absl::Milliseconds(100);

}  // namespace

absl::Status BatchedEngine::BeginWeightUpdate() {
  absl::MutexLock lock(&mutex_);
  if (!failure_.ok()) return failure_;
  if (updating_) return absl::FailedPreconditionError("a weight update is under way already");
  // A step hands its samples over after its last use of the weights, so none unfinished means that
  // the weights are not in use.
  if (unfinished_ > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot update the weights: ", unfinished_, " samples are being generated"));
  }
  // The engine's thread gives the memory back, as it alone calls the runner.
  if (options_.release_memory) return AwaitPause(OldCache::kForget);
  updating_ = true;
  return absl::OkStatus();
}

absl::Status BatchedEngine::PauseForWeightUpdate(OldCache old_cache) {
  absl::MutexLock lock(&mutex_);
  if (!failure_.ok()) return failure_;
  if (updating_) return absl::FailedPreconditionError("a weight update is under way already");
  if (runner_->batch_invariant() && unfinished_ > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot update the weights under the ", unfinished_,
                     " samples that are being generated: what they become would depend on the "
                     "moment, and the engine is batch-invariant"));
  }
  return AwaitPause(old_cache);
}

bool BatchedEngine::PauseIsDecided() const { return paused_ || !failure_.ok(); }

absl::Status BatchedEngine::AwaitPause(OldCache old_cache) {
  updating_ = true;
  pause_ = old_cache;
  mutex_.Await(absl::Condition(this, &BatchedEngine::PauseIsDecided));
  return failure_;
}

bool BatchedEngine::MemoryIsDecided() const { return !released_ || !failure_.ok(); }

void BatchedEngine::EndWeightUpdate(uint64_t version) {
  runner_->WeightsChanged();  // nothing runs: Begin or Pause has seen to that
  absl::MutexLock lock(&mutex_);
  paused_ = false;
  pause_.reset();
  weights_version_ = version;
  ++updates_;
  // Whoever had the memory meanwhile must not take it from the engine again.
  mutex_.Await(absl::Condition(this, &BatchedEngine::MemoryIsDecided));
  updating_ = false;
}

bool BatchedEngine::PauseIsOver() const { return stopping_ || !paused_; }

absl::Status BatchedEngine::Pause() {
  const absl::Time start = absl::Now();
  while (!in_flight_.empty()) RETURN_IF_ERROR(CollectOldest());
  Publish(absl::ToDoubleSeconds(absl::Now() - start));
  OldCache old_cache = OldCache::kForget;
  {
    absl::MutexLock lock(&mutex_);
    old_cache = *pause_;
  }
  // Before the pages are lost nobody refers to them any more.
  if (old_cache == OldCache::kForget) scheduler_.Forget();
  const bool release = options_.release_memory && old_cache == OldCache::kForget;
  if (release) RETURN_IF_ERROR(ReleaseMemory());
  {
    absl::MutexLock lock(&mutex_);
    paused_ = true;
    mutex_.Await(absl::Condition(this, &BatchedEngine::PauseIsOver));
    if (stopping_) return absl::OkStatus();
  }
  return release ? TakeMemory() : absl::OkStatus();
}

absl::Status BatchedEngine::ReleaseMemory() {
  const absl::Time start = absl::Now();
  RETURN_IF_ERROR(runner_->ReleaseMemory());
  absl::MutexLock lock(&mutex_);
  released_ = true;
  stats_.release_seconds += absl::ToDoubleSeconds(absl::Now() - start);
  return absl::OkStatus();
}

absl::Status BatchedEngine::TakeMemory() {
  const absl::Time start = absl::Now();
  absl::Status taken = runner_->TakeMemory();
  while (absl::IsResourceExhausted(taken) && absl::Now() - start < options_.memory_timeout) {
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), kTakeAgain)) break;
    }
    taken = runner_->TakeMemory();
  }
  const absl::Duration passed = absl::Now() - start;
  if (absl::IsResourceExhausted(taken)) {
    return AddContext(taken, absl::StrCat("an update of the weights is over, and in ",
                                          absl::FormatDuration(absl::Trunc(passed, kTakeAgain)),
                                          " the memory that the engine gave back for it has not "
                                          "become free"));
  }
  RETURN_IF_ERROR(taken);
  absl::MutexLock lock(&mutex_);
  released_ = false;
  stats_.take_seconds += absl::ToDoubleSeconds(passed);
  return absl::OkStatus();
}

}  // namespace tritonrl
