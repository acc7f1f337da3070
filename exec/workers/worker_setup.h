// What a worker of a pool is started with: sources, mounts, environment, device nodes.
#ifndef TRITONRL_EXEC_WORKERS_WORKER_SETUP_H_
#define TRITONRL_EXEC_WORKERS_WORKER_SETUP_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "exec/workers/staged_sources.h"
#include "exec/workers/worker.h"
#include "exec/workers/worker_pool.h"

namespace tritonrl {

// Copies worker.py, the runner and options.extra_python_dirs, in this order.
absl::StatusOr<std::unique_ptr<StagedSources>> StagePythonSources(const WorkerPoolOptions& options);

// Everything of a worker's configuration except the cgroup's limits and the stop descriptor.
absl::StatusOr<WorkerConfig> MakeWorkerConfig(const WorkerPoolOptions& options,
                                              const std::string& staged_dir);

// NVIDIA device nodes of this machine; empty when there is no GPU.
std::vector<std::string> NvidiaDevices();

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_WORKERS_WORKER_SETUP_H_
