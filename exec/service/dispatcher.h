// Dispatches a server's jobs to its devices: bounded queue, admission by memory, exclusive devices
// for timing, and an exclusive retry of jobs that ran out of device memory.
#ifndef TRITONRL_EXEC_SERVICE_DISPATCHER_H_
#define TRITONRL_EXEC_SERVICE_DISPATCHER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "exec/device_backend.h"
#include "exec/device_gate.h"
#include "exec/service/service.pb.h"

namespace tritonrl {

// Parses "both", "check" or "time". InvalidArgument lists the valid names.
absl::StatusOr<ServerRole> ParseServerRole(const std::string& name);

struct DispatcherOptions {
  ServerRole role = SERVER_ROLE_BOTH;
  int queue = 256;                  // jobs that may wait, over all devices
  int64_t memory_budget_bytes = 0;  // of each device; 0: no admission by memory
  int64_t job_bytes = 0;  // estimate for a job that names none; 0: an equal share of the budget
  // Name of each backend's GPU, in the order of the backends, for results and the description. A
  // backend without an entry has an empty name.
  std::vector<std::string> gpus = {};
};

// Thread-safe.
class Dispatcher {
 public:
  // One backend per device, all of the same kind.
  Dispatcher(const DispatcherOptions& options, std::vector<std::unique_ptr<DeviceBackend>> backends,
             Clock* clock = Clock::Real());

  // Runs the job on the device with the fewest jobs and blocks until there is an outcome.
  // Before the job starts, `cancelled` tells whether the caller has gone; the error is Cancelled
  // then. ResourceExhausted: the queue is full. Unavailable: the dispatcher is draining.
  // FailedPrecondition: the role excludes the job. Further errors are those of DeviceBackend::Run.
  // A deadline that passes while the job waits gives the outcome DEADLINE.
  //
  // With the role TIME a job has exclusive use of its device from start to end; with other roles
  // the backend takes exclusive use while it measures. A job that ran out of device memory beside
  // other jobs runs again with exclusive use.
  absl::StatusOr<ExecResult> Run(const ExecRequest& request, int64_t memory_bytes,
                                 absl::Time deadline, const std::function<bool()>& cancelled);

  // Makes later calls of Run fail with Unavailable; waiting and running jobs continue.
  void Drain();
  // Waits until no job waits or runs. False if `deadline` passes first.
  bool WaitIdle(absl::Time deadline);

  // Milliseconds after which a refused caller should retry: the mean time of a job, 50 to 5000.
  int64_t RetryHint() const;
  // Returns role, devices, load, and the outcomes of finished jobs.
  ServerDescription Describe() const;

 private:
  struct Device {
    std::unique_ptr<DeviceBackend> backend;
    std::string gpu;
    std::unique_ptr<DeviceGate> gate;
    int jobs = 0;  // waiting and running jobs; guarded by mutex_
  };

  absl::Status CheckRole(const ExecRequest& request) const;
  // Takes a place in the queue of the device with the fewest jobs.
  absl::StatusOr<Device*> Enter();
  void Leave(Device* device, absl::Duration time, const absl::StatusOr<ExecResult>& result);
  void NoteBusy(absl::Duration time);
  absl::StatusOr<ExecResult> RunOn(Device* device, const ExecRequest& request, int64_t memory_bytes,
                                   absl::Time deadline, const std::function<bool()>& cancelled);

  const DispatcherOptions options_;
  Clock* const clock_;
  const absl::Time started_;
  std::vector<std::unique_ptr<Device>> devices_;
  int concurrency_ = 0;
  mutable absl::Mutex mutex_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  int jobs_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t finished_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration time_ ABSL_GUARDED_BY(mutex_) = absl::ZeroDuration();
  absl::Duration busy_ ABSL_GUARDED_BY(mutex_) = absl::ZeroDuration();
  std::map<std::string, int64_t> outcomes_ ABSL_GUARDED_BY(mutex_);
  int64_t infra_errors_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t refused_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_SERVICE_DISPATCHER_H_
