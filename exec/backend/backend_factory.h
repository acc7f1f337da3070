// Starts the device backend that the configuration names.
#ifndef TRITONRL_EXEC_BACKEND_BACKEND_FACTORY_H_
#define TRITONRL_EXEC_BACKEND_BACKEND_FACTORY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "exec/backend/python_backend.h"
#include "exec/device_backend.h"
#include "exec/workers/worker_pool.h"

namespace tritonrl {

enum class BackendKind {
  kAuto,         // CUDA when this machine has an NVIDIA GPU, else native
  kInterpreter,  // compiles for sm_89, executes on the CPU, models the time
  kNative,       // the same with an executor that holds all data: candidates have none
  kCuda,         // compiles, executes and times on the GPU
  kNativeCuda,   // the same with an executor that holds all data: candidates have none
};

// Parses "auto", "interpreter", "native", "cuda" or "native_cuda". InvalidArgument lists the valid
// names.
absl::StatusOr<BackendKind> ParseBackendKind(const std::string& name);

struct BackendOptions {
  BackendKind kind = BackendKind::kAuto;
  int workers = 0;  // 0: the number of CPU cores without a GPU, 1 with one
  // How candidates are confined: "bubblewrap" or "none". MakeBackend fails if this machine does not
  // support bubblewrap; it never falls back to "none".
  std::string sandbox = "bubblewrap";
  WorkerPoolOptions pool;  // limits and time-outs; MakeBackend sets device, workers and sandbox
};

// Starts the workers (each imports torch and Triton, which takes some seconds) and returns once the
// first is ready. InvalidArgument: the sandbox name is unknown. FailedPrecondition names the
// requirement that this machine does not meet.
absl::StatusOr<std::unique_ptr<DeviceBackend>> MakeBackend(const BackendOptions& options);

// True when /dev/nvidiactl and at least one /dev/nvidia<N> exist.
bool HasNvidiaGpu();

// Starts a backend that compiles candidates for sm_89, executes them on the CPU and models their
// time. Sets options.device; keeps the other options.
absl::StatusOr<std::unique_ptr<PythonBackend>> StartInterpreterBackend(WorkerPoolOptions options);

// Starts a backend as the one above whose candidates never hold data: their processes send commands
// to executors, which are other processes (exec/client_run, exec/executor).
absl::StatusOr<std::unique_ptr<PythonBackend>> StartNativeBackend(WorkerPoolOptions options);

// Starts a backend that compiles, executes and times candidates on the GPU. Limits that `options`
// leaves unset get defaults for a GPU. With more than one worker, checks share the GPU; a timing
// run is alone on it. FailedPrecondition: this machine has no GPU.
absl::StatusOr<std::unique_ptr<PythonBackend>> StartCudaBackend(WorkerPoolOptions options);

// Starts a backend as the one above whose candidates never hold data, nor see the GPU: executors
// run and time what they ask for (exec/device/cuda). FailedPrecondition: this machine has no GPU.
absl::StatusOr<std::unique_ptr<PythonBackend>> StartNativeCudaBackend(WorkerPoolOptions options);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_BACKEND_BACKEND_FACTORY_H_
