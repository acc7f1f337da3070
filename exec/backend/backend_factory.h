// Starts the device backend that a configuration asks for.
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
  kAuto,         // CUDA when this machine has an NVIDIA GPU, else the interpreter
  kInterpreter,  // compiles for sm_89, executes on the CPU, models the time
  kCuda,         // compiles, executes and times on the GPU
};

// "auto", "interpreter", "cuda". InvalidArgument lists them.
absl::StatusOr<BackendKind> ParseBackendKind(const std::string& name);

struct BackendOptions {
  BackendKind kind = BackendKind::kAuto;
  int workers = 0;  // 0: the number of CPU cores for the interpreter, 1 for CUDA
  // What confines the candidate. "bubblewrap" is refused with the reason where it can't work;
  // "none" must be asked for by name.
  std::string sandbox = "bubblewrap";
  WorkerPoolOptions pool;  // limits and time-outs; device, workers and sandbox are filled in
};

// Starts the workers (they import torch and Triton, some seconds) and returns once the first is
// ready. FailedPrecondition says what this machine lacks.
absl::StatusOr<std::unique_ptr<DeviceBackend>> MakeBackend(const BackendOptions& options);

// True when /dev/nvidiactl and at least one /dev/nvidia<N> exist.
bool HasNvidiaGpu();

// Compiles candidates for sm_89, executes them on the CPU and models their time. Sets
// options.device; the other options are kept.
absl::StatusOr<std::unique_ptr<PythonBackend>> StartInterpreterBackend(WorkerPoolOptions options);

// Compiles, executes and times candidates on the GPU, with limits for a GPU where `options` sets
// none. FailedPrecondition when there is no GPU. With more than one worker, jobs share the GPU and
// their times disturb each other.
absl::StatusOr<std::unique_ptr<PythonBackend>> StartCudaBackend(WorkerPoolOptions options);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_BACKEND_BACKEND_FACTORY_H_
