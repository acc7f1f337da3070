#include "exec/host/reference_host.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "base/status.h"

namespace tritonrl {

absl::StatusOr<nlohmann::json> ReferenceHost::Ask(const nlohmann::json& order, const char* answer,
                                                  const AskOptions& options) {
  absl::StatusOr<nlohmann::json> value = process_->Ask(order, answer, options);
  if (!process_->serving() && counted_.exchange(false)) pool_->CountEnded();
  return value;
}

ReferenceHost::~ReferenceHost() {
  if (process_->Drop()) {
    pool_->GiveBack(std::move(process_));
  } else if (counted_) {
    pool_->End(std::move(process_));
  }
}

std::unique_ptr<HostProcess> HostPool::Take(absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  const int most = std::max(1, pool_->workers() - 1);
  const auto ready = [this, most]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return !idle_.empty() || processes_ < most;
  };
  (void)mutex_.AwaitWithDeadline(absl::Condition(&ready),
                                 std::min(deadline, absl::Now() + patience_));
  if (idle_.empty()) return nullptr;
  std::unique_ptr<HostProcess> process = std::move(idle_.back());
  idle_.pop_back();
  return process;
}

void HostPool::GiveBack(std::unique_ptr<HostProcess> process) {
  absl::MutexLock lock(&mutex_);
  idle_.push_back(std::move(process));
}

void HostPool::CountEnded() {
  absl::MutexLock lock(&mutex_);
  --processes_;
}

void HostPool::EndIdle() {
  std::vector<std::unique_ptr<HostProcess>> ending;
  {
    absl::MutexLock lock(&mutex_);
    ending.swap(idle_);
  }
  for (std::unique_ptr<HostProcess>& process : ending) End(std::move(process));
}

void HostPool::End(std::unique_ptr<HostProcess> process) {
  process = nullptr;  // without the lock, as it takes a while
  CountEnded();
}

JobReport HostPool::Make(const std::string& job_json, const ExecLimits& limits, absl::Time deadline,
                         std::shared_ptr<ReferenceHost>* host) {
  JobReport report;
  std::unique_ptr<HostProcess> process = Take(deadline);
  if (process != nullptr) {
    report = process->Make(job_json, limits, deadline);
    if (!process->serving()) End(std::move(process));
  }
  if (process == nullptr && absl::Now() < deadline) {
    absl::StatusOr<std::unique_ptr<HostProcess>> fresh = HostProcess::Create(pool_);
    if (!fresh.ok()) {
      report.detail = Message(fresh.status());
      return report;
    }
    process = *std::move(fresh);
    {
      absl::MutexLock lock(&mutex_);
      ++processes_;
    }
    report = process->Make(job_json, limits, deadline);
    if (!process->serving()) End(std::move(process));
  }
  if (process != nullptr) {
    *host = std::make_shared<ReferenceHost>(shared_from_this(), std::move(process));
  }
  return report;
}

}  // namespace tritonrl
