#include "rollout/distributed/watchdog.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/time/clock.h"

namespace tritonrl {

Watchdog::Watchdog(std::string what, absl::Duration limit)
    : what_(std::move(what)), limit_(limit), thread_([this] { Run(); }) {}

Watchdog::~Watchdog() {
  {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
  }
  thread_.join();
}

void Watchdog::Run() {
  absl::MutexLock lock(&mutex_);
  while (!mutex_.AwaitWithTimeout(absl::Condition(&ended_), limit_ / 8)) {
    if (absl::Now() - began_ < limit_) continue;
    std::fprintf(stderr, "error: %s has not ended within %s; another rank is stuck or gone\n",
                 what_.c_str(), absl::FormatDuration(limit_).c_str());
    std::fflush(stderr);
    std::_Exit(1);
  }
}

Watchdog::Call::Call(Watchdog* watch) : watch_(watch) {
  absl::MutexLock lock(&watch_->mutex_);
  watch_->began_ = absl::Now();
}

Watchdog::Call::~Call() {
  absl::MutexLock lock(&watch_->mutex_);
  watch_->began_ = absl::InfiniteFuture();
}

}  // namespace tritonrl
