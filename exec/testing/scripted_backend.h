// A device backend for tests of its callers: a function computes the answer to each request.
#ifndef TRITONRL_EXEC_TESTING_SCRIPTED_BACKEND_H_
#define TRITONRL_EXEC_TESTING_SCRIPTED_BACKEND_H_

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "exec/device_backend.h"

namespace tritonrl {

class ScriptedBackend : public DeviceBackend {
 public:
  using Answer = std::function<absl::StatusOr<ExecResult>(const ExecRequest&, absl::Time deadline)>;
  explicit ScriptedBackend(Answer answer, int concurrency = 2, bool modelled = true)
      : answer_(std::move(answer)), concurrency_(concurrency), modelled_(modelled) {}

  absl::StatusOr<ExecResult> Run(const ExecRequest& request, absl::Time deadline) override {
    {
      absl::MutexLock lock(&mutex_);
      requests_.push_back(request);
      max_running_ = std::max(max_running_, ++running_);
    }
    absl::StatusOr<ExecResult> result = answer_(request, deadline);
    absl::MutexLock lock(&mutex_);
    --running_;
    return result;
  }
  int concurrency() const override { return concurrency_; }
  std::string name() const override { return modelled_ ? "native" : "cuda"; }
  bool modelled() const override { return modelled_; }
  std::string sandbox_description() const override { return "none"; }

  int calls() const { return static_cast<int>(requests().size()); }
  std::vector<ExecRequest> requests() const {
    absl::MutexLock lock(&mutex_);
    return requests_;
  }
  int running() const {
    absl::MutexLock lock(&mutex_);
    return running_;
  }
  int max_running() const {
    absl::MutexLock lock(&mutex_);
    return max_running_;
  }
  // Waits until exactly `count` requests run; false after 20 seconds.
  bool WaitRunning(int count) const {
    absl::MutexLock lock(&mutex_);
    auto there = [this, count] { return running_ == count; };
    return mutex_.AwaitWithTimeout(absl::Condition(&there), absl::Seconds(20));
  }

  static ExecResult Result(Outcome::Reason reason) {
    ExecResult result;
    SetOutcome(reason, "", result.mutable_outcome());
    return result;
  }

 private:
  const Answer answer_;
  const int concurrency_;
  const bool modelled_;
  mutable absl::Mutex mutex_;
  std::vector<ExecRequest> requests_;
  int running_ = 0;
  int max_running_ = 0;
};

// A well-formed request with the candidate `code`.
inline ExecRequest SomeRequest(const std::string& code = "candidate", bool timing = false) {
  ExecRequest request;
  request.set_task_id("task");
  request.set_reference_source("reference");
  request.set_candidate_source(code);
  request.set_skip_timing(!timing);
  return request;
}

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_TESTING_SCRIPTED_BACKEND_H_
