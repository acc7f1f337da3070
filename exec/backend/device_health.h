// Whether a device still computes: asked after a candidate did what can leave a GPU in a bad state.
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

// A process with a context of its own on `device` ("interpreter" or "cuda") that computes whole
// numbers there whenever it is asked and compares them with the CPU's. A GPU that fell off the bus
// fails in contexts that are there as in new ones; making one costs 0.2 s and more, a check in one
// that is there milliseconds.
class DeviceHealthChecker {
 public:
  // Takes one worker of `reference_workers` from the first check on.
  DeviceHealthChecker(std::string device, WorkerPool* reference_workers)
      : device_(std::move(device)),
        reference_workers_(reference_workers),
        reference_processes_(std::make_shared<ReferenceProcessPool>(reference_workers)) {}

  // Unavailable says what was wrong, in a process that was made for this check: one from before is
  // given up when it fails. DeadlineExceeded: there was no time to ask. Not to be called by two at
  // the same time.
  absl::Status Check(const ExecLimits& limits, absl::Time deadline);

 private:
  absl::Status Start(const ExecLimits& limits, absl::Time deadline);
  absl::Status Ask(absl::Time deadline);

  const std::string device_;
  WorkerPool* const reference_workers_;
  const std::shared_ptr<ReferenceProcessPool> reference_processes_;
  std::shared_ptr<ReferenceSession> session_;
};

// Remembers that a device is in doubt. A candidate has a process and a CUDA context of its own, so
// an error that sticks goes with it; what could stay is a GPU that fell off the bus or computes
// wrongly.
class DeviceHealth {
 public:
  DeviceHealth(const std::string& device, WorkerPool* reference_workers)
      : device_(device), checker_(device, reference_workers) {}

  // After each candidate: a crash, a hang or an illegal access on a GPU is a reason for doubt, also
  // (`doubtful`) in calls after those that the outcome is about.
  void Note(Outcome::Reason reason, bool doubtful = false);

  // Before each candidate: at once when there is no doubt, else by one check that all callers wait
  // for. A check that fails leaves the doubt, so that the next caller checks again.
  absl::Status EnsureHealthy(const ExecLimits& limits, absl::Time deadline);

  // Checks made so far.
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
