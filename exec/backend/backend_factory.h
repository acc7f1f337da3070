#ifndef TRITONRL_EXEC_BACKEND_BACKEND_FACTORY_H_
#define TRITONRL_EXEC_BACKEND_BACKEND_FACTORY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "exec/backend/python_backend.h"
#include "exec/device_backend.h"
#include "exec/workers/worker_pool.h"

// Picks and starts the device backend that a configuration asks for.
//
// Checks candidates without a GPU: compiled for sm_89 by the real Triton compiler, executed on the
// CPU, timed by a roofline model.
//
// Checks candidates on an NVIDIA GPU: compiled, executed and timed there. The same workers and
// protocol as without; the sandbox shows the GPU's device nodes and the driver's libraries.

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

class InterpreterBackend : public PythonBackend {
 public:
  // Starts the workers; options.device is ignored.
  static absl::StatusOr<std::unique_ptr<InterpreterBackend>> Start(WorkerPoolOptions options);

  bool modelled() const override { return true; }

 private:
  using PythonBackend::PythonBackend;
};

class CudaBackend : public PythonBackend {
 public:
  // FailedPrecondition when there is no GPU. With more than one worker, jobs share the GPU and
  // their times disturb each other.
  static absl::StatusOr<std::unique_ptr<CudaBackend>> Start(WorkerPoolOptions options);

  bool modelled() const override { return false; }

 private:
  using PythonBackend::PythonBackend;
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_BACKEND_BACKEND_FACTORY_H_
