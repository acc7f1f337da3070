// The device backend of this machine: worker pools for references and for candidates' processes,
// executors that hold all data, and a cache of the references' results.
#ifndef TRITONRL_EXEC_BACKEND_LOCAL_BACKEND_H_
#define TRITONRL_EXEC_BACKEND_LOCAL_BACKEND_H_

#include <atomic>
#include <limits>
#include <memory>
#include <string>

#include "base/secret_key.h"
#include "exec/backend/device_health.h"
#include "exec/client_run/client_run.h"
#include "exec/device_backend.h"
#include "exec/device_gate.h"
#include "exec/executor/executor.h"
#include "exec/reference/reference_cache.h"
#include "exec/workers/worker_pool.h"

namespace tritonrl {

// Workers of one backend. A candidate never runs in a worker that runs references.
struct BackendPools {
  std::unique_ptr<WorkerPool> runners;            // candidates' processes (exec/client)
  std::unique_ptr<WorkerPool> reference_workers;  // for references
  int64_t cache_bytes = 0;                        // capacity of the cache of references' results
  // References run in long-lived reference processes (reference_process.h), which time them too.
  bool reference_processes = false;
  // JobContext::whole_bytes.
  int64_t whole_bytes = -1;
  // Execute what candidates ask for; must be set.
  std::unique_ptr<Executors> executors;
  SecretKey seed_key;  // of the seeds of all jobs
};

// Starts both pools, with the key of this installation; options.workers is the number of runners.
// With `reference_processes` (for GPUs and tests) there are two more reference workers than
// runners. Without it there is one reference worker for two runners, because the cached result of a
// reference usually serves several candidates. `reference_device` is "cpu" or "cuda". The caller
// sets `executors`.
absl::StatusOr<BackendPools> StartPools(WorkerPoolOptions options, int64_t cache_bytes,
                                        bool reference_processes,
                                        const std::string& reference_device = "cpu");

// Executes on this machine, natively or on its GPU.
class LocalBackend : public DeviceBackend {
 public:
  // `device` is that of references and executors: "cpu" or "cuda". Times are modelled by a roofline
  // on "cpu".
  LocalBackend(std::string device, BackendPools pools);

  // Measured times are taken while no other request uses the GPU.
  // If the worker dies during a job, the job is run once more; if the second worker dies too, the
  // outcome is KILLED_WORKER. After a crash, a hang or an illegal access the GPU is checked before
  // the next candidate; while the check fails the outcome is an infrastructure error.
  // A request waits until its estimated GPU memory is free beside the running requests. If its
  // reference, candidate or task probe runs out of GPU memory nevertheless, it is retried once with
  // the whole GPU memory, and only the retry counts.
  absl::StatusOr<ExecResult> Run(const ExecRequest& request, absl::Time deadline) override;

  DeviceMemory memory() const override;
  int concurrency() const override { return pools_.runners->workers(); }
  std::string name() const override { return modelled() ? "native" : "cuda"; }
  bool modelled() const override { return device_ != "cuda"; }
  std::string sandbox_description() const override { return pools_.runners->sandbox_description(); }
  const WorkerPool& pool() const { return *pools_.runners; }
  const WorkerPool& reference_pool() const { return *pools_.reference_workers; }
  ReferenceCache::Counts reference_counts() const { return cache_.counts(); }

 private:
  // Returns the reference's result from the cache or a new run. Null if `deadline` passed while
  // another request ran the reference.
  std::shared_ptr<const ReferenceResult> GetReference(JobContext context, const std::string& key,
                                                      const ExecLimits& limits, absl::Time deadline,
                                                      bool* cached);
  // Sets the memory that requests may reserve; `device_bytes` is the GPU's memory as a reference
  // process reports it.
  // What one reference process may keep.
  int64_t KeptBytes(int64_t device_bytes) const;
  void NoteMemory(int64_t device_bytes);
  // Waits until the memory that a candidate of this reference is likely to need is reserved. False
  // if the deadline passed.
  bool Admit(const ReferenceResult& reference_result, DeviceGate::Lease* lease,
             absl::Time deadline);
  // Reserves `bytes` for one request; does nothing without a lease. False if the deadline passed.
  bool Reserve(int64_t bytes, DeviceGate::Lease* lease, absl::Time deadline);
  // Reserves all of the GPU's memory for one request and ends idle reference processes. False if
  // the deadline passed or there is no lease.
  bool TakeMemory(DeviceGate::Lease* lease, absl::Time deadline);
  // Ends all unused reference processes. The caller uses the device.
  void EndIdleReferenceProcesses();
  // Gets the reference's result anew after its process ended, and admits the request again. Null on
  // failure.
  std::shared_ptr<const ReferenceResult> Renew(
      const JobContext& context, const std::string& key, const ExecLimits& limits,
      absl::Time deadline, const std::shared_ptr<const ReferenceResult>& reference_result);
  // Runs the candidate. Retries once after a failure that the candidate need not have caused.
  CandidateRun RunOn(const JobContext& context, const std::string& key, const ExecLimits& limits,
                     absl::Time deadline, std::shared_ptr<const ReferenceResult> reference_result);

  const std::string device_;
  const BackendPools pools_;
  DeviceGate gate_;  // used if times are measured or there are reference processes
  const std::shared_ptr<ReferenceProcessPool> reference_processes_;  // null without them
  ReferenceCache cache_;
  DeviceHealth device_health_;
  std::atomic<int64_t> making_bytes_{0};  // reserved while a reference runs for the first time
  // Memory that requests may reserve; the maximum until a reference process reports the GPU's.
  std::atomic<int64_t> memory_bytes_{std::numeric_limits<int64_t>::max()};
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_BACKEND_LOCAL_BACKEND_H_
