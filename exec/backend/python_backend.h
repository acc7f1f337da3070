// The device backend: a worker pool for references and one for candidates, a cache of the
// references' results, and the path of a request through them.
#ifndef TRITONRL_EXEC_BACKEND_PYTHON_BACKEND_H_
#define TRITONRL_EXEC_BACKEND_PYTHON_BACKEND_H_

#include <atomic>
#include <limits>
#include <memory>
#include <string>

#include "exec/backend/device_health.h"
#include "exec/candidate/candidate_run.h"
#include "exec/device_backend.h"
#include "exec/device_gate.h"
#include "exec/reference/reference_cache.h"
#include "exec/workers/worker_pool.h"

namespace tritonrl {

// Workers of one backend. No candidate ever runs in a worker that runs references.
struct BackendPools {
  std::unique_ptr<WorkerPool> runners;
  std::unique_ptr<WorkerPool> reference_workers;
  int64_t cache_bytes = 0;      // of references' results
  bool shared_buffers = false;  // references keep processes, tensors go through shared GPU buffers
                                // (reference_process.h)
};

// Starts both; `options` are the runners'. There is one worker for references to two for
// candidates, as most of what references make is asked for more than once; with `shared_buffers`,
// which is for GPUs (and tests), as many and two more.
absl::StatusOr<BackendPools> StartPools(WorkerPoolOptions options, int64_t cache_bytes,
                                        bool shared_buffers);

class PythonBackend : public DeviceBackend {
 public:
  // `device` is the runner's word for it: "interpreter" or "cuda". `modelled` says whether a
  // roofline model computes the times.
  PythonBackend(std::string device, bool modelled, BackendPools pools);

  // Where times are measured they are taken while no other request uses the GPU.
  // A job under which the worker died is run once more; if the second dies too, the candidate is
  // taken to have killed them. After a crash, a hang or an illegal access the GPU is checked before
  // it takes another candidate; while the check fails the outcome is an infrastructure error.
  // Requests wait until the GPU's memory is likely to hold them beside those that run; what runs
  // out of it all the same is tried once more alone before that counts, also by the probes of a
  // task.
  absl::StatusOr<ExecResult> Run(const ExecRequest& request, absl::Time deadline) override;

  DeviceMemory memory() const override;
  int concurrency() const override { return pools_.runners->workers(); }
  std::string name() const override { return device_; }
  bool modelled() const override { return modelled_; }
  std::string sandbox_description() const override { return pools_.runners->sandbox_description(); }
  const WorkerPool& pool() const { return *pools_.runners; }
  const WorkerPool& reference_pool() const { return *pools_.reference_workers; }
  ReferenceCache::Counts reference_counts() const { return cache_.counts(); }

 private:
  // The reference's result for a request, from the cache or a new run.
  std::shared_ptr<const ReferenceResult> GetReference(JobContext context, const std::string& key,
                                                      const ExecLimits& limits, absl::Time deadline,
                                                      bool* cached);
  // Sets the memory that requests share, from what a reference reported.
  void NoteMemory(int64_t device_bytes);
  // Waits until a candidate of that reference is likely to find the memory it needs.
  bool Admit(const ReferenceResult& reference_result, DeviceGate::Lease* lease,
             absl::Time deadline);
  // Reserves `bytes` for one request; without a lease there is nothing to reserve. False when the
  // deadline passed.
  bool Reserve(int64_t bytes, DeviceGate::Lease* lease, absl::Time deadline);
  // All of the GPU's memory for one request; false when the deadline passed.
  bool TakeMemory(DeviceGate::Lease* lease, absl::Time deadline);
  // Ends all unused reference processes. The caller uses the device.
  void EndIdleReferenceProcesses();
  // The reference's result again after its process ended; null when that failed.
  std::shared_ptr<const ReferenceResult> Renew(
      const JobContext& context, const std::string& key, const ExecLimits& limits,
      absl::Time deadline, const std::shared_ptr<const ReferenceResult>& reference_result);
  // The task's probes into `result`, again if what went wrong need not be the task's doing.
  void Probe(const JobContext& context, const std::string& key, const ExecLimits& limits,
             absl::Time deadline, std::shared_ptr<const ReferenceResult> reference_result,
             ExecResult* result);
  // Runs the candidate, again if what went wrong need not be its own doing.
  CandidateRun RunOn(const JobContext& context, const std::string& key, const ExecLimits& limits,
                     absl::Time deadline, std::shared_ptr<const ReferenceResult> reference_result);

  const std::string device_;
  const bool modelled_;
  const BackendPools pools_;
  DeviceGate gate_;  // passed by requests of a backend that measures; reference processes need it
                     // to the last
  const std::shared_ptr<ReferenceProcessPool>
      reference_processes_;  // null without shared GPU buffers
  ReferenceCache cache_;
  DeviceHealth device_health_;
  std::atomic<int64_t> making_bytes_{0};
  // That requests share, once it is known.
  std::atomic<int64_t> memory_bytes_{std::numeric_limits<int64_t>::max()};
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_BACKEND_PYTHON_BACKEND_H_
