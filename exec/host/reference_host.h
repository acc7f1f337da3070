// The reference host of a task: inputs and expected outputs stay in the memory of its process on
// the GPU; candidates get inputs and hand over outputs through windows of GPU memory, and the host
// compares and times the reference. A process outlives its task: making a GPU context takes a
// quarter of a second, and a GPU makes some five of them a second, whoever asks.
#ifndef TRITONRL_EXEC_HOST_REFERENCE_HOST_H_
#define TRITONRL_EXEC_HOST_REFERENCE_HOST_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "exec/host/host_process.h"

namespace tritonrl {

class HostPool;

class ReferenceHost {
 public:
  ReferenceHost(std::shared_ptr<HostPool> pool, std::unique_ptr<HostProcess> process)
      : pool_(std::move(pool)), process_(std::move(process)) {}
  // Gives the task's memory and the process back.
  ~ReferenceHost();
  ReferenceHost(const ReferenceHost&) = delete;
  ReferenceHost& operator=(const ReferenceHost&) = delete;

  // See HostProcess.
  absl::StatusOr<nlohmann::json> Ask(const nlohmann::json& order, const char* answer,
                                     const AskOptions& options);
  // False after the process has ended.
  bool alive() const { return process_->serving(); }

 private:
  const std::shared_ptr<HostPool> pool_;
  std::unique_ptr<HostProcess> process_;
  std::atomic<bool> counted_{true};  // among the pool's processes; not once it has ended
};

// Processes for hosts; idle ones wait for the next task. Held by a shared pointer.
class HostPool : public std::enable_shared_from_this<HostPool> {
 public:
  // Each process takes a worker of `pool`, idle ones too. `patience`: see Make.
  explicit HostPool(WorkerPool* pool, absl::Duration patience = absl::Seconds(30))
      : pool_(pool), patience_(patience) {}

  // Has the job made by an idle process, if there is one, else by a new one, as long as that leaves
  // one worker of the pool; else it waits for a process to become idle, for `patience` at most: who
  // waited for a worker instead would wait for ever, as idle processes keep theirs. What fails in a
  // process that had other tasks before is tried in a new one before it counts. `host` is null when
  // it failed; the report says how.
  JobReport Make(const std::string& job_json, const ExecLimits& limits, absl::Time deadline,
                 std::shared_ptr<ReferenceHost>* host);

  // Ends all idle processes, for their memory.
  void EndIdle();

 private:
  friend class ReferenceHost;
  // An idle one, or nothing where a new one is to be started.
  std::unique_ptr<HostProcess> Take(absl::Time deadline);
  void GiveBack(std::unique_ptr<HostProcess> process);
  // One has ended, and takes no worker any more.
  void CountEnded();
  // Ends it.
  void End(std::unique_ptr<HostProcess> process);

  WorkerPool* const pool_;
  const absl::Duration patience_;
  absl::Mutex mutex_;
  std::vector<std::unique_ptr<HostProcess>> idle_ ABSL_GUARDED_BY(mutex_);
  int processes_ ABSL_GUARDED_BY(mutex_) = 0;  // idle ones, and those that hosts have
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_HOST_REFERENCE_HOST_H_
