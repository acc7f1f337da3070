#include "trainer/grpo/verification.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "exec/backend/make_backend.h"
#include "exec/service/remote_backend.h"

namespace tritonrl {
namespace {

ExecLimits ToExecLimits(const LimitsConfig& limits) {
  ExecLimits exec;
  exec.set_wall_seconds(limits.seconds());
  exec.set_cpu_seconds(limits.seconds());
  exec.set_memory_bytes(int64_t{limits.memory_mib()} << 20);
  exec.set_processes(limits.processes());
  exec.set_output_bytes(limits.output_bytes());
  exec.set_tmp_bytes(int64_t{limits.disk_mib()} << 20);
  return exec;
}

BackendOptions ToBackendOptions(const VerificationOptions& options) {
  const VerifierConfig& config = options.config;
  BackendOptions backend;
  switch (config.backend()) {
    case VerifierConfig::AUTO:
      backend.kind = HasNvidiaGpu() ? BackendKind::kCuda : BackendKind::kInterpreter;
      break;
    case VerifierConfig::INTERPRETER:
      backend.kind = BackendKind::kInterpreter;
      break;
    case VerifierConfig::CUDA:
      backend.kind = BackendKind::kCuda;
      break;
  }
  backend.workers = config.workers();
  if (backend.workers == 0) {
    const int cores = std::max(1u, std::thread::hardware_concurrency());
    backend.workers =
        backend.kind == BackendKind::kCuda ? 1 : std::max(1, cores / options.ranks_here);
  }
  backend.sandbox = config.sandbox() == VerifierConfig::SANDBOX_NONE ? "none" : "bubblewrap";
  backend.pool.limits = ToExecLimits(config.limits());
  return backend;
}

absl::StatusOr<std::unique_ptr<DeviceBackend>> ConnectToConfigured(const VerifierConfig& config,
                                                                   const std::string& expected) {
  ASSIGN_OR_RETURN(std::unique_ptr<RemoteBackend> backend,
                   ConnectToServers(config.servers(), config.token_file()));
  if (backend->name() != expected) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the servers have the backend ", backend->name(), ", but verifier.backend is ", expected));
  }
  return backend;
}

// Null when none is configured.
absl::StatusOr<std::unique_ptr<Judge>> MakeConfiguredJudge(const JudgeConfig& config) {
  if (config.endpoint().empty()) return std::unique_ptr<Judge>();
  HttpJudgeOptions options;
  options.url = config.endpoint();
  while (absl::EndsWith(options.url, "/")) options.url.pop_back();
  options.url += "/chat/completions";
  options.model = config.model();
  options.api_key_variable = config.api_key_variable();
  options.timeout = absl::Seconds(config.timeout_s());
  options.attempts = config.retries() + 1;
  return MakeHttpJudge(options);
}

}  // namespace

absl::Status Verification::Health() const {
  RETURN_IF_ERROR(backend->StartStatus());
  return verifier->JournalStatus();
}

absl::StatusOr<Verification> StartVerification(const VerificationOptions& options) {
  const VerifierConfig& config = options.config;
  const BackendOptions backend = ToBackendOptions(options);
  const bool cuda = backend.kind == BackendKind::kCuda;
  const std::string name = cuda ? "cuda" : "interpreter";
  StartingBackend::Maker make = [backend] { return MakeBackend(backend); };
  if (!config.servers().empty())
    make = [config, name] { return ConnectToConfigured(config, name); };
  Verification verification;
  verification.backend = std::make_unique<StartingBackend>(std::move(make), name,
                                                           /*modelled=*/!cuda, backend.workers);
  ASSIGN_OR_RETURN(verification.judge, MakeConfiguredJudge(config.judge()));
  VerifierOptions verifier;
  verifier.parallel = backend.workers;
  verifier.seed = options.seed;
  verifier.trials = config.trials();
  verifier.atol = verifier.rtol = config.tolerance();
  verifier.mode = config.mode() == VerifierConfig::ROBUST ? EXEC_MODE_ROBUST : EXEC_MODE_PAPER;
  verifier.run_limit = absl::Seconds(config.limits().seconds());
  verifier.max_attempts = config.retries() + 1;
  verifier.ablation = config.ablation();
  verifier.gpu_profile = config.gpu_profile();
  verifier.cache = config.cache();
  verifier.journal = options.journal;
  verifier.judge_parallel = config.judge().parallel();
  verifier.judge_cache = UserPath(config.judge().cache());
  verifier.device_model = config.device_model();
  verification.options = verifier;
  verification.verifier =
      std::make_unique<Verifier>(verifier, verification.backend.get(), verification.judge.get());
  RETURN_IF_ERROR(verification.verifier->Open());
  return verification;
}

}  // namespace tritonrl
