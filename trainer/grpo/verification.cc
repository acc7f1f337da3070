#include "trainer/grpo/verification.h"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status.h"
#include "exec/backend/backend_factory.h"
#include "exec/service/remote_backend.h"
#include "trainer/config/config.h"
#include "verify/preflight/preflight.h"
#include "verify/preflight/preflight_journal.h"

namespace tritonrl {

DeferredBackend::DeferredBackend(Maker make, std::string name, bool modelled, int concurrency)
    : name_(std::move(name)),
      modelled_(modelled),
      concurrency_(concurrency),
      state_(std::make_shared<State>()) {
  thread_ = std::thread([state = state_, make = std::move(make)] {
    absl::StatusOr<std::unique_ptr<DeviceBackend>> made = make();
    std::unique_ptr<DeviceBackend> ended;
    {
      absl::MutexLock lock(&state->mutex);
      if (made.ok()) {
        state->backend = *std::move(made);
      } else {
        state->status = made.status();
      }
      state->started = true;
      // Workers may be killed when the thread that started them ends, so the thread waits.
      state->mutex.Await(absl::Condition(&state->stopping));
      ended = std::move(state->backend);
    }
  });
}

DeferredBackend::~DeferredBackend() {
  bool started = false;
  {
    absl::MutexLock lock(&state_->mutex);
    state_->stopping = true;
    started = state_->started;
  }
  if (started) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

absl::StatusOr<ExecResult> DeferredBackend::Run(const ExecRequest& request, absl::Time deadline) {
  DeviceBackend* backend = nullptr;
  {
    absl::MutexLock lock(&state_->mutex);
    if (!state_->mutex.AwaitWithDeadline(absl::Condition(state_.get(), &State::StartedOrCancelled),
                                         deadline)) {
      return absl::DeadlineExceededError("the verification workers have not started in time");
    }
    if (!state_->started) return absl::CancelledError("the run ended before the workers started");
    if (!state_->status.ok()) return state_->status;
    backend = state_->backend.get();  // valid until this object is destroyed
  }
  return backend->Run(request, deadline);
}

void DeferredBackend::Cancel() {
  absl::MutexLock lock(&state_->mutex);
  state_->cancelled = true;
}

std::string DeferredBackend::sandbox_description() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->backend == nullptr ? "starting" : state_->backend->sandbox_description();
}

absl::Status DeferredBackend::StartStatus() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->status;
}

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
      backend.kind = HasNvidiaGpu() ? BackendKind::kCuda : BackendKind::kNative;
      break;
    case VerifierConfig::NATIVE:
      backend.kind = BackendKind::kNative;
      break;
    case VerifierConfig::CUDA:
      backend.kind = BackendKind::kCuda;
      break;
  }
  backend.workers = config.workers();
  if (backend.workers == 0) {
    backend.workers = backend.kind == BackendKind::kCuda ? 1 : options.cores;
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

Rules ToRules(VerifierConfig::Rules rules) {
  switch (rules) {
    case VerifierConfig::PAPER:
      return RULES_PAPER;
    case VerifierConfig::ROBUST:
      return RULES_ROBUST;
    case VerifierConfig::STRICT:
      break;
  }
  return RULES_STRICT;
}

// Null if no judge is configured.
absl::StatusOr<std::unique_ptr<Judge>> MakeConfiguredJudge(const JudgeConfig& config) {
  RETURN_IF_ERROR(CheckJudgeMode(config));
  if (!HasJudge(config)) return std::unique_ptr<Judge>();
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
  RETURN_IF_ERROR(verifier->JournalStatus());
  return verifier->JudgeStatus();
}

absl::StatusOr<Verification> StartVerification(const VerificationOptions& options) {
  const VerifierConfig& config = options.config;
  const BackendOptions backend = ToBackendOptions(options);
  const bool cuda = backend.kind == BackendKind::kCuda;
  const std::string name = cuda ? "cuda" : "native";
  DeferredBackend::Maker make = [backend] { return MakeBackend(backend); };
  if (!config.servers().empty())
    make = [config, name] { return ConnectToConfigured(config, name); };
  Verification verification;
  verification.backend = std::make_unique<DeferredBackend>(std::move(make), name,
                                                           /*modelled=*/!cuda, backend.workers);
  ASSIGN_OR_RETURN(verification.judge, MakeConfiguredJudge(config.judge()));
  VerifierOptions verifier;
  verifier.parallel = backend.workers;
  verifier.seed = options.seed;
  verifier.trials = config.trials();
  verifier.atol = verifier.rtol = config.tolerance();
  verifier.rules = ToRules(config.rules());
  verifier.run_limit = absl::Seconds(config.limits().seconds());
  verifier.max_attempts = config.retries() + 1;
  verifier.ablation = config.ablation();
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

std::string DescribeJudge(const JudgeConfig& config) {
  if (!HasJudge(config)) return "judge: none";
  return absl::StrCat("judge: ", config.model(), " at ", config.endpoint());
}

namespace {

// One line per task: '-' (remove) or '+' (keep), then a sentence or nothing.
std::string FindingsText(const std::vector<TaskCheck>& checks) {
  std::string text;
  for (const TaskCheck& check : checks) {
    const bool out = check.state == TaskState::kUnsound || check.state == TaskState::kBroken;
    std::string sentence;
    if (check.state != TaskState::kSound) {
      sentence = absl::StrCat(check.task, ": ", out ? "left out by the preflight, " : "",
                              TaskStateName(check.state), ": ", check.reason);
    }
    for (char& c : sentence) c = absl::ascii_iscntrl(c) ? ' ' : c;
    absl::StrAppend(&text, out ? "-" : "+", sentence, "\n");
  }
  return text;
}

// Checks the tasks and returns the FindingsText of the results.
absl::StatusOr<std::string> FindUnsoundTasks(const Verification& verification,
                                             const PreflightSettings& settings,
                                             const PreparedTasks& tasks) {
  std::vector<Task> sources;
  for (const PreparedTask& task : tasks.tasks) sources.push_back(task.task);
  PreflightOptions options = PreflightOptionsFrom(verification.options);
  options.give_up = settings.give_up;
  ASSIGN_OR_RETURN(
      const std::vector<TaskCheck> checks,
      RunPreflightWithJournal(sources, verification.backend.get(), options, settings.journal));
  return FindingsText(checks);
}

// A time that the preflight of `tasks` tasks does not exceed.
absl::Duration PreflightLimit(size_t tasks, const Verification& verification,
                              const PreflightSettings& settings) {
  const PreflightOptions options = PreflightOptionsFrom(verification.options);
  const size_t parallel = std::max(1, options.parallel);
  const size_t rounds = tasks / parallel + 1;
  return static_cast<double>(rounds) * options.run_limit + 2 * settings.give_up + absl::Minutes(10);
}

}  // namespace

absl::Status RemoveUnsoundTasks(const Verification& verification, const PreflightSettings& settings,
                                ProcessGroup* ranks, PreparedTasks* tasks) {
  absl::StatusOr<std::string> found = "";
  if (ranks->is_root()) found = FindUnsoundTasks(verification, settings, *tasks);
  // The other ranks wait here longer than for an ordinary collective call.
  RETURN_IF_ERROR(ranks->Barrier(PreflightLimit(tasks->tasks.size(), verification, settings)));
  RETURN_IF_ERROR(ranks->AllReduceStatus(found.status()));
  std::string text = *std::move(found);
  RETURN_IF_ERROR(ranks->Broadcast(&text));
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  if (lines.size() != tasks->tasks.size()) {
    return absl::InternalError("the ranks did not load the same tasks");
  }
  std::vector<PreparedTask> kept;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i][0] == '+') kept.push_back(std::move(tasks->tasks[i]));
    if (lines[i].size() > 1) tasks->problems.push_back(lines[i].substr(1));
  }
  tasks->tasks = std::move(kept);
  if (tasks->tasks.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the preflight leaves no task; the first: ", tasks->problems.back()));
  }
  return absl::OkStatus();
}

}  // namespace tritonrl
