#include "rollout/distributed/watchdog.h"

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace tritonrl {

Watchdog::Watchdog(std::string what, absl::Duration limit, Clock* clock)
    : what_(std::move(what)), limit_(limit), clock_(clock), thread_([this] { Run(); }) {}

Watchdog::~Watchdog() {
  {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
  }
  thread_.join();
}

void Watchdog::Run() {
  absl::MutexLock lock(&mutex_);
  while (!ended_) {
    const absl::Time now = clock_->Now();
    if (now - began_ >= limit_) {
      Log(LogLevel::kError,
          absl::StrCat("error: ", what_, " has not ended within ", absl::FormatDuration(limit_),
                       "; another rank is stuck or gone"));
      std::_Exit(1);
    }
    // Polls, so that a call need not wake this thread.
    clock_->AwaitWithDeadline(&mutex_, absl::Condition(&ended_), now + limit_ / 8);
  }
}

Watchdog::Call::Call(Watchdog* watch) : watch_(watch) {
  absl::MutexLock lock(&watch_->mutex_);
  watch_->began_ = watch_->clock_->Now();
}

Watchdog::Call::~Call() {
  absl::MutexLock lock(&watch_->mutex_);
  watch_->began_ = absl::InfiniteFuture();
}

}  // namespace tritonrl
