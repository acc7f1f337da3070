// Whether a device still computes: asked after a candidate did what can leave a GPU in a bad state.
#ifndef TRITONRL_EXEC_BACKEND_DEVICE_CHECK_H_
#define TRITONRL_EXEC_BACKEND_DEVICE_CHECK_H_

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "exec/messages.pb.h"
#include "exec/workers/worker_pool.h"

namespace tritonrl {

// Runs a small program of ours as a reference on `device` ("interpreter" or "cuda") and compares
// what comes out number by number. Unavailable says what was wrong.
absl::Status CheckDevice(const std::string& device, WorkerPool* oracles, const ExecLimits& limits,
                         absl::Time deadline);

// Remembers that a device is in doubt. A candidate has a process and a CUDA context of its own, so
// an error that sticks goes with it; what could stay is a GPU that fell off the bus or computes
// wrongly.
class DeviceDoubt {
 public:
  DeviceDoubt(std::string device, WorkerPool* oracles) : device_(device), oracles_(oracles) {}

  // After each candidate: a crash, a hang or an illegal access on a GPU is a reason for doubt, also
  // (`doubtful`) in calls after those that the outcome is about.
  void Note(ExecOutcome outcome, bool doubtful = false);

  // Before each candidate: at once when there is no doubt, else by one check that all callers wait
  // for. A check that fails leaves the doubt, so that the next caller checks again.
  absl::Status Settle(const ExecLimits& limits, absl::Time deadline);

  // Checks made so far.
  int64_t checks() const;

 private:
  const std::string device_;
  WorkerPool* const oracles_;
  mutable absl::Mutex mutex_;  // held during a check
  bool doubtful_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t checks_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_BACKEND_DEVICE_CHECK_H_
