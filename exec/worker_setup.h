// What a worker of a pool is started with: sources, mounts, environment, device nodes.
#ifndef TRITONRL_EXEC_WORKER_SETUP_H_
#define TRITONRL_EXEC_WORKER_SETUP_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "exec/worker.h"
#include "exec/worker_pool.h"

namespace tritonrl {

// Copies the Python sources into a fresh folder that the workers' user can read (the sources may
// lie in a home folder closed to others). The caller removes it.
absl::StatusOr<std::string> StagePythonSources(const WorkerPoolOptions& options);

// Everything of a worker's configuration except the cgroup's limits and the stop descriptor.
absl::StatusOr<WorkerConfig> MakeWorkerConfig(const WorkerPoolOptions& options,
                                              const std::string& staged_dir);

// NVIDIA device nodes of this machine; empty when there is no GPU.
std::vector<std::string> NvidiaDevices();

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_WORKER_SETUP_H_
