// What a worker of a pool is started with: sources, mounts, environment, device nodes.
#ifndef TRITONRL_EXEC_WORKERS_WORKER_SETUP_H_
#define TRITONRL_EXEC_WORKERS_WORKER_SETUP_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "exec/workers/worker.h"
#include "exec/workers/worker_pool.h"

namespace tritonrl {

// A readable copy of the Python sources that workers import: the originals may be in a home folder
// closed to others, and workers run as another user. The destructor removes the copy; Create
// removes copies of processes that were killed.
class StagedSources {
 public:
  // Copies the .py files of each folder (and of folders below) to <path>/0, <path>/1, ...
  static absl::StatusOr<std::unique_ptr<StagedSources>> Create(
      const std::vector<std::string>& folders);
  ~StagedSources();
  StagedSources(const StagedSources&) = delete;
  StagedSources& operator=(const StagedSources&) = delete;

  const std::string& path() const { return path_; }
  // Six letters that tell this copy from all others on this machine.
  std::string id() const { return path_.substr(path_.size() - 6); }

 private:
  StagedSources(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}

  const std::string path_;
  const int lock_;  // locked while this object lives
};

// Copies worker.py, the runner and options.extra_python_dirs, in this order.
absl::StatusOr<std::unique_ptr<StagedSources>> StagePythonSources(const WorkerPoolOptions& options);

// Everything of a worker's configuration except the cgroup's limits and the stop descriptor.
absl::StatusOr<WorkerConfig> MakeWorkerConfig(const WorkerPoolOptions& options,
                                              const std::string& staged_dir);

// NVIDIA device nodes of this machine; empty when there is no GPU.
std::vector<std::string> NvidiaDevices();

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_WORKERS_WORKER_SETUP_H_
