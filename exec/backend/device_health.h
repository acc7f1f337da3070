// Check that a device still computes correctly, made after an error of a candidate that can leave a
// GPU in a bad state.
#ifndef TRITONRL_EXEC_BACKEND_DEVICE_HEALTH_H_
#define TRITONRL_EXEC_BACKEND_DEVICE_HEALTH_H_

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "exec/messages.pb.h"
#include "exec/reference/reference_process.h"
#include "exec/workers/worker_pool.h"

namespace tritonrl {

// Owns a process with its own context on `device` ("cpu" or "cuda"). Each check computes
// integers in it and compares them with the CPU's. The process is kept between checks: a GPU that
// fell off the bus fails in existing contexts too, and a check in an existing context takes
// milliseconds, while a new context takes 0.2 s or more.
class DeviceHealthChecker {
 public:
  // Occupies one worker of `reference_workers` from the first check on.
  DeviceHealthChecker(std::string device, WorkerPool* reference_workers)
      : device_(std::move(device)),
        reference_workers_(reference_workers),
        reference_processes_(std::make_shared<ReferenceProcessPool>(reference_workers)) {}

  // Checks the device. A failure in the process of an earlier check is not trusted: the check is
  // repeated in a new process. Unavailable: the check failed in the new process; the message says
  // how. DeadlineExceeded: `deadline` had already passed. Not thread-safe.
  absl::Status Check(const ExecLimits& limits, absl::Time deadline);

 private:
  absl::Status Start(const ExecLimits& limits, absl::Time deadline);
  absl::Status Ask(absl::Time deadline);

  const std::string device_;
  WorkerPool* const reference_workers_;
  const std::shared_ptr<ReferenceProcessPool> reference_processes_;
  std::shared_ptr<ReferenceSession> session_;
};

// Decides when a device must be checked, and checks it. Thread-safe. Every candidate has its own
// process and CUDA context, so sticky CUDA errors end with it; only a GPU that fell off the bus or
// computes wrong results affects later candidates.
class DeviceHealth {
 public:
  DeviceHealth(const std::string& device, WorkerPool* reference_workers)
      : device_(device), checker_(device, reference_workers) {}

  // Call after each candidate. A crash, a hang or an illegal access on a GPU requires a check
  // before the next candidate.
  void Note(Outcome::Reason reason);

  // Call before each candidate. Returns at once if no check is required, else makes one check for
  // which all callers wait. After a failed check the next caller checks again. Errors as of
  // DeviceHealthChecker::Check.
  absl::Status EnsureHealthy(const ExecLimits& limits, absl::Time deadline);

  // Number of checks made so far.
  int64_t checks() const;

 private:
  const std::string device_;
  mutable absl::Mutex mutex_;  // held during a check
  DeviceHealthChecker checker_ ABSL_GUARDED_BY(mutex_);
  bool doubtful_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t checks_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_BACKEND_DEVICE_HEALTH_H_
