#include "exec/backend/make_backend.h"

#include <ctype.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/backend/cuda_backend.h"
#include "exec/backend/interpreter_backend.h"
#include "exec/sandbox/sandbox.h"
#include "exec/workers/worker_setup.h"

namespace tritonrl {

absl::StatusOr<BackendKind> ParseBackendKind(const std::string& name) {
  if (name == "auto") return BackendKind::kAuto;
  if (name == "interpreter") return BackendKind::kInterpreter;
  if (name == "cuda") return BackendKind::kCuda;
  return absl::InvalidArgumentError(
      absl::StrCat("backend \"", name, "\" is unknown; use \"auto\", \"interpreter\" or \"cuda\""));
}

bool HasNvidiaGpu() {
  bool control = false;
  bool gpu = false;
  for (const std::string& device : NvidiaDevices()) {
    if (device == "/dev/nvidiactl") control = true;
    const std::string number = device.substr(sizeof("/dev/nvidia") - 1);
    if (!number.empty() && std::all_of(number.begin(), number.end(), isdigit)) gpu = true;
  }
  return control && gpu;
}

absl::StatusOr<std::unique_ptr<DeviceBackend>> MakeBackend(const BackendOptions& options) {
  WorkerPoolOptions pool = options.pool;
  ASSIGN_OR_RETURN(pool.sandbox, ParseSandboxKind(options.sandbox));
  BackendKind kind = options.kind;
  if (kind == BackendKind::kAuto) {
    kind = HasNvidiaGpu() ? BackendKind::kCuda : BackendKind::kInterpreter;
  }
  pool.workers = options.workers;
  if (kind == BackendKind::kCuda) {
    if (pool.workers == 0) pool.workers = 1;
    ASSIGN_OR_RETURN(std::unique_ptr<DeviceBackend> backend, CudaBackend::Start(std::move(pool)));
    return backend;
  }
  if (pool.workers == 0) pool.workers = std::max(1u, std::thread::hardware_concurrency());
  ASSIGN_OR_RETURN(std::unique_ptr<DeviceBackend> backend,
                   InterpreterBackend::Start(std::move(pool)));
  return backend;
}

}  // namespace tritonrl
