// Starts the device backend that the configuration names.
#ifndef TRITONRL_EXEC_BACKEND_BACKEND_FACTORY_H_
#define TRITONRL_EXEC_BACKEND_BACKEND_FACTORY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "exec/backend/local_backend.h"
#include "exec/device_backend.h"
#include "exec/workers/worker_pool.h"

namespace tritonrl {

enum class BackendKind {
  kAuto,    // CUDA when this machine has an NVIDIA GPU, else native
  kNative,  // compiles for sm_89, executes on the CPU, models the time
  kCuda,    // compiles, executes and times on the GPU
};

// Parses "auto", "native" or "cuda". InvalidArgument lists the valid names.
absl::StatusOr<BackendKind> ParseBackendKind(const std::string& name);

struct BackendOptions {
  BackendKind kind = BackendKind::kAuto;
  int workers = 0;  // 0: the number of CPU cores without a GPU, 1 with one
  // How candidates are confined: "bubblewrap" or "none". MakeBackend fails if this machine does not
  // support bubblewrap; it never falls back to "none".
  std::string sandbox = "bubblewrap";
  WorkerPoolOptions pool;  // limits and time-outs; MakeBackend sets workers and sandbox
};

// Starts the workers (each imports torch and Triton, which takes some seconds) and returns once the
// first is ready. InvalidArgument: the sandbox name is unknown. FailedPrecondition names the
// requirement that this machine does not meet.
absl::StatusOr<std::unique_ptr<DeviceBackend>> MakeBackend(const BackendOptions& options);

// True when /dev/nvidiactl and at least one /dev/nvidia<N> exist.
bool HasNvidiaGpu();

// Starts a backend that compiles candidates for sm_89, executes them on the CPU and models their
// time. As everywhere, candidates hold no data: their processes send commands to executors, which
// are other processes (exec/client_run, exec/executor).
absl::StatusOr<std::unique_ptr<LocalBackend>> StartNativeBackend(WorkerPoolOptions options);
// The same with reference processes, as on a GPU: tasks of more than `whole_bytes` pass through
// windows. For tests.
absl::StatusOr<std::unique_ptr<LocalBackend>> StartNativeBackendWithWindows(
    WorkerPoolOptions options, int64_t whole_bytes);

// Starts a backend that compiles, executes and times candidates on the GPU, which their own
// processes do not see (exec/device/cuda). Limits that `options` leaves unset get defaults for a
// GPU. With more than one worker, checks share the GPU; a timing run is alone on it.
// FailedPrecondition: this machine has no GPU.
absl::StatusOr<std::unique_ptr<LocalBackend>> StartCudaBackend(WorkerPoolOptions options);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_BACKEND_BACKEND_FACTORY_H_
