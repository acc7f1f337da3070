#include "exec/backend/backend_factory.h"

#include <ctype.h>

#include <algorithm>
#include <future>
#include <optional>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/client_run/client_job.h"
#include "exec/executor/executor_pool.h"
#include "exec/sandbox/sandbox.h"
#include "exec/workers/worker_setup.h"

namespace tritonrl {
namespace {

// A task of the mini suite takes about 100 KB.
constexpr int64_t kCpuCacheBytes = 256 << 20;
// Holds inputs and outputs of a dozen tasks at KernelBench's full shapes.
constexpr int64_t kCudaCacheBytes = int64_t{16} << 30;
// An executor with a GPU keeps the driver's memory, libraries' and that of copies.
constexpr int64_t kCudaExecutorBytes = int64_t{12} << 30;

// Limits of CPU memory suffice for jobs whose tensors stay on the GPU: only inputs that cannot be
// made on the GPU pass through CPU memory.
ExecLimits WithGpuDefaults(const ExecLimits& asked) {
  ExecLimits limits;
  limits.set_wall_seconds(180);
  limits.set_cpu_seconds(600);
  limits.set_memory_bytes(int64_t{24} << 30);
  limits.set_processes(256);
  limits.set_tmp_bytes(int64_t{1} << 30);
  limits.set_shm_bytes(int64_t{1} << 30);
  limits.set_open_files(1024);
  limits.MergeFrom(asked);
  return limits;
}

absl::Status CheckGpu() {
  if (HasNvidiaGpu()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "no NVIDIA GPU here (/dev/nvidiactl and /dev/nvidia<N> are missing); use the backend "
      "\"native\"");
}

// As StartPools, with executors that start meanwhile; the candidates' processes hold no data.
absl::StatusOr<BackendPools> StartPoolsWithExecutors(WorkerPoolOptions options,
                                                     const ExecutorPoolOptions& executor_options,
                                                     int64_t cache_bytes, bool reference_processes,
                                                     const std::string& reference_device) {
  auto executors =
      std::async(std::launch::async, [&] { return ExecutorPool::Create(executor_options); });
  ASSIGN_OR_RETURN(options, ClientPoolOptions(std::move(options)));
  ASSIGN_OR_RETURN(BackendPools pools, StartPools(std::move(options), cache_bytes,
                                                  reference_processes, reference_device));
  ASSIGN_OR_RETURN(pools.executors, executors.get());
  return pools;
}

}  // namespace

absl::StatusOr<BackendKind> ParseBackendKind(const std::string& name) {
  if (name == "auto") return BackendKind::kAuto;
  if (name == "native") return BackendKind::kNative;
  if (name == "cuda") return BackendKind::kCuda;
  return absl::InvalidArgumentError(
      absl::StrCat("backend \"", name, "\" is unknown; use \"auto\", \"native\" or \"cuda\""));
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

namespace {

absl::StatusOr<std::unique_ptr<LocalBackend>> StartNative(WorkerPoolOptions options,
                                                          std::optional<int64_t> whole_bytes) {
  const int cores = std::max(1u, std::thread::hardware_concurrency());
  ExecutorPoolOptions executor_options;
  executor_options.count = options.workers;
  executor_options.process.threads = std::max(1, cores / std::max(1, options.workers));
  ASSIGN_OR_RETURN(BackendPools pools,
                   StartPoolsWithExecutors(std::move(options), executor_options, kCpuCacheBytes,
                                           /*reference_processes=*/whole_bytes.has_value(), "cpu"));
  pools.whole_bytes = whole_bytes.value_or(-1);
  return std::make_unique<LocalBackend>("cpu", std::move(pools));
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalBackend>> StartNativeBackend(WorkerPoolOptions options) {
  return StartNative(std::move(options), std::nullopt);
}

absl::StatusOr<std::unique_ptr<LocalBackend>> StartNativeBackendWithWindows(
    WorkerPoolOptions options, int64_t whole_bytes) {
  return StartNative(std::move(options), whole_bytes);
}

absl::StatusOr<std::unique_ptr<LocalBackend>> StartCudaBackend(WorkerPoolOptions options) {
  RETURN_IF_ERROR(CheckGpu());
  options.limits = WithGpuDefaults(options.limits);
  ExecutorPoolOptions executor_options;
  executor_options.count = options.workers;
  executor_options.process.device = "cuda";
  executor_options.process.gpu = options.gpu;
  executor_options.process.sandbox = options.sandbox;
  executor_options.max_resident_bytes = kCudaExecutorBytes;
  ASSIGN_OR_RETURN(BackendPools pools,
                   StartPoolsWithExecutors(std::move(options), executor_options, kCudaCacheBytes,
                                           /*reference_processes=*/true, "cuda"));
  return std::make_unique<LocalBackend>("cuda", std::move(pools));
}

absl::StatusOr<std::unique_ptr<DeviceBackend>> MakeBackend(const BackendOptions& options) {
  WorkerPoolOptions pool = options.pool;
  ASSIGN_OR_RETURN(pool.sandbox, ParseSandboxKind(options.sandbox));
  BackendKind kind = options.kind;
  if (kind == BackendKind::kAuto) {
    kind = HasNvidiaGpu() ? BackendKind::kCuda : BackendKind::kNative;
  }
  pool.workers = options.workers;
  if (kind == BackendKind::kCuda) {
    if (pool.workers == 0) pool.workers = 1;
    return StartCudaBackend(std::move(pool));
  }
  if (pool.workers == 0) pool.workers = std::max(1u, std::thread::hardware_concurrency());
  return StartNativeBackend(std::move(pool));
}

}  // namespace tritonrl
