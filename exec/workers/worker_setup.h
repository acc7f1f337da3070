// The setup of a pool's workers: Python sources, mounts, environment, device nodes.
#ifndef TRITONRL_EXEC_WORKERS_WORKER_SETUP_H_
#define TRITONRL_EXEC_WORKERS_WORKER_SETUP_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "exec/workers/worker.h"
#include "exec/workers/worker_pool.h"

namespace tritonrl {

// A world-readable copy of the Python sources that workers import. Workers run as another user, who
// may not be able to read the originals. The destructor removes the copy; Create also removes the
// copies of processes that were killed.
class StagedSources {
 public:
  // Copies the .py files of each folder and its subfolders to <path>/0, <path>/1, ..., and those of
  // each package to <path>/packages/<its folder's name>.
  static absl::StatusOr<std::unique_ptr<StagedSources>> Create(
      const std::vector<std::string>& folders, const std::vector<std::string>& packages = {});
  ~StagedSources();
  StagedSources(const StagedSources&) = delete;
  StagedSources& operator=(const StagedSources&) = delete;

  const std::string& path() const { return path_; }
  // Six characters that identify this copy on this host.
  std::string id() const { return path_.substr(path_.size() - 6); }

 private:
  StagedSources(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}

  const std::string path_;
  const int lock_;  // locked while this object lives
};

// Copies the folder of worker.py, then options.extra_python_dirs and
// options.python_packages.
absl::StatusOr<std::unique_ptr<StagedSources>> StagePythonSources(const WorkerPoolOptions& options);

// Makes a worker's configuration, except for the cgroup limits and the stop descriptor.
absl::StatusOr<WorkerConfig> MakeWorkerConfig(const WorkerPoolOptions& options,
                                              const std::string& staged_dir);

// NVIDIA device nodes of this host; empty if it has no GPU.
std::vector<std::string> NvidiaDevices();

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_WORKERS_WORKER_SETUP_H_
