// What the backends share: a pool of workers for references and one for candidates, what references
// made kept for the next candidate, and the way of a request through them.
#ifndef TRITONRL_EXEC_BACKEND_PYTHON_BACKEND_H_
#define TRITONRL_EXEC_BACKEND_PYTHON_BACKEND_H_

#include <atomic>
#include <limits>
#include <memory>
#include <string>

#include "exec/backend/device_check.h"
#include "exec/candidate/candidate_run.h"
#include "exec/device_backend.h"
#include "exec/host/device_gate.h"
#include "exec/oracle/oracle_cache.h"
#include "exec/workers/worker_pool.h"

namespace tritonrl {

// Workers of one backend. No candidate ever runs in a worker that runs references.
struct BackendPools {
  std::unique_ptr<WorkerPool> runners;
  std::unique_ptr<WorkerPool> oracles;
  int64_t cache_bytes = 0;  // of references' results
  bool windows = false;     // references have hosts, tensors go through windows (reference_host.h)
};

// Starts both; `options` are the runners'. There is one worker for references to two for
// candidates, as most of what references make is asked for more than once; with `windows`, which is
// for GPUs (and tests), as many and two more.
absl::StatusOr<BackendPools> StartPools(WorkerPoolOptions options, int64_t cache_bytes,
                                        bool windows);

class PythonBackend : public DeviceBackend {
 public:
  // `device` is the runner's word for it: "interpreter" or "cuda".
  PythonBackend(std::string device, BackendPools pools);

  // Where times are measured they are taken while no other request uses the GPU.
  // A job under which the worker died is run once more; if the second dies too, the candidate is
  // taken to have killed them. After a crash, a hang or an illegal access the GPU is checked before
  // it takes another candidate; while the check fails the outcome is a fault of ours. Requests wait
  // until the GPU's memory is likely to hold them beside those that run; what runs out of it all
  // the same is tried once more alone before that counts, also by the probes of a task.
  absl::StatusOr<ExecResult> Run(const ExecRequest& request, absl::Time deadline) override;

  DeviceMemory memory() const override;
  int concurrency() const override { return pools_.runners->workers(); }
  std::string name() const override { return device_; }
  std::string sandbox_description() const override { return pools_.runners->sandbox_description(); }
  const WorkerPool& pool() const { return *pools_.runners; }
  const WorkerPool& oracle_pool() const { return *pools_.oracles; }
  OracleCache::Counts oracle_counts() const { return cache_.counts(); }

 private:
  // The oracle of a request, kept or made.
  std::shared_ptr<const OracleResult> GetOracle(JobContext context, const std::string& key,
                                                const ExecLimits& limits, absl::Time deadline,
                                                bool* cached);
  // How much memory there is to be shared out, once a reference has told.
  void NoteMemory(int64_t device_bytes);
  // Waits until a candidate of that reference is likely to find the memory it needs.
  bool Admit(const OracleResult& oracle, DeviceGate::Place* place, absl::Time deadline);
  // So many bytes for one request; nothing to wait for where there is no gate. False when the
  // deadline passed.
  bool Reserve(int64_t bytes, DeviceGate::Place* place, absl::Time deadline);
  // All of the GPU's memory for one request; false when the deadline passed.
  bool TakeMemory(DeviceGate::Place* place, absl::Time deadline);
  // Ends all hosts that nobody uses; by who uses the device himself.
  void EndIdleHosts();
  // An oracle once more, if its host has gone; nothing when that failed.
  std::shared_ptr<const OracleResult> Renew(const JobContext& context, const std::string& key,
                                            const ExecLimits& limits, absl::Time deadline,
                                            const std::shared_ptr<const OracleResult>& oracle);
  // The task's probes into `result`, again if what went wrong need not be the task's doing.
  void Probe(const JobContext& context, const std::string& key, const ExecLimits& limits,
             absl::Time deadline, std::shared_ptr<const OracleResult> oracle, ExecResult* result);
  // Runs the candidate, again if what went wrong need not be its own doing.
  CandidateRun RunOn(const JobContext& context, const std::string& key, const ExecLimits& limits,
                     absl::Time deadline, std::shared_ptr<const OracleResult> oracle);

  const std::string device_;
  const BackendPools pools_;
  DeviceGate gate_;  // passed by requests of a backend that measures; hosts need it to the last
  const std::shared_ptr<HostPool> hosts_;  // null without windows
  OracleCache cache_;
  DeviceDoubt doubt_;
  std::atomic<int64_t> making_bytes_{0};
  // That requests share, once it is known.
  std::atomic<int64_t> memory_bytes_{std::numeric_limits<int64_t>::max()};
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_BACKEND_PYTHON_BACKEND_H_
