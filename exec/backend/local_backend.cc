#include "exec/backend/local_backend.h"

#include <algorithm>
#include <cmath>
#include <future>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/hash.h"
#include "base/status.h"
#include "exec/candidate/task_probes.h"
#include "exec/outcome/classify_outcome.h"
#include "exec/reference/job_json.h"
#include "exec/timing/roofline.h"

namespace tritonrl {
namespace {

constexpr size_t kMaxSource = 2 << 20;
constexpr int64_t kAllMemory = int64_t{1} << 50;  // more than any GPU has
// Share of a GPU's memory that stays free, as allocators take more than is requested of them.
constexpr double kFreeShare = 0.08;
// GPU memory of one reference process: tensors that it keeps (at least), its context and weights.
constexpr int64_t kKeptReferenceBytes = int64_t{2} << 30;
constexpr int64_t kKeptReferencesPart = 4;  // of the GPU's memory, for all of them
constexpr int64_t kReferenceProcessBytes = int64_t{1} << 30;
// Share reserved while a reference runs for the first time, when its needs are unknown.
constexpr int64_t kReferenceFileBytes = int64_t{1} << 40;
constexpr double kMakingShare = 0.12;
constexpr char kTooLate[] = "the caller's deadline passed while other requests used the GPU";

absl::Status CheckRequest(const ExecRequest& request) {
  const std::string task = absl::StrCat("task ", request.task_id(), ": ");
  if (request.reference_source().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(task, "reference_source is empty"));
  }
  if (request.candidate_source().empty() && !request.reference_only()) {
    return absl::InvalidArgumentError(absl::StrCat(task, "candidate_source is empty"));
  }
  for (const std::string* source : {&request.reference_source(), &request.candidate_source()}) {
    if (source->size() > kMaxSource) {
      return absl::InvalidArgumentError(
          absl::StrCat(task, "a source of ", source->size(), " bytes is above ", kMaxSource));
    }
  }
  if (request.trials() < 0 || request.trials() > 1000) {
    return absl::InvalidArgumentError(absl::StrCat(task, "trials must be 0 to 1000"));
  }
  for (const double tolerance : {request.atol(), request.rtol()}) {
    if (!(tolerance >= 0) || !std::isfinite(tolerance)) {
      return absl::InvalidArgumentError(absl::StrCat(task, "a tolerance must not be negative"));
    }
  }
  RETURN_IF_ERROR(FindRooflineModel(request.device_model()).status());
  if (request.probe_task() && !request.reference_only()) {
    return absl::InvalidArgumentError(
        absl::StrCat(task, "probe_task is for requests with reference_only"));
  }
  return absl::OkStatus();
}

// Cache key: a hash of all inputs that a reference's result depends on.
std::string ReferenceKey(const ExecRequest& request, const std::string& device,
                         const ExecLimits& limits) {
  return Sha256Hex(absl::StrCat(device, " ", request.device_model(), " ", request.seed(), " ",
                                TrialsOf(request), " ", request.skip_timing(), " ", request.rules(),
                                " ", request.probe_task(), " ", limits.wall_seconds(), " ",
                                limits.memory_bytes(), "\n", request.reference_source()));
}

ExecResult Failed(Outcome::Reason reason, const std::string& phase, const std::string& message) {
  ExecResult result;
  SetOutcome(reason, message, result.mutable_outcome());
  result.set_phase(phase);
  return result;
}

}  // namespace

absl::StatusOr<BackendPools> StartPools(WorkerPoolOptions options, int64_t cache_bytes,
                                        bool reference_processes,
                                        const std::string& reference_device) {
  ASSIGN_OR_RETURN(const SecretKey seed_key, InstallationKey());
  WorkerPoolOptions reference_options = options;
  // Each running candidate needs its reference process at the same time. One more worker lets a new
  // process start while another is slow to free its memory, and the device check occupies one.
  reference_options.workers = reference_processes ? options.workers + 2 : (options.workers + 1) / 2;
  reference_options.kept_bytes = cache_bytes;
  // Their processes may make files of memory for what they hand over.
  if (reference_processes) reference_options.limits.set_file_bytes(kReferenceFileBytes);
  reference_options.device = reference_device;
  // Tests have runners of their own, for both.
  if (!options.python_packages.empty()) {
    ASSIGN_OR_RETURN(reference_options, ReferencePoolOptions(std::move(reference_options)));
  }
  auto reference_workers =
      std::async(std::launch::async, [&] { return WorkerPool::Start(reference_options); });
  BackendPools pools;
  pools.reference_processes = reference_processes;
  auto runners = WorkerPool::Start(options);
  auto started = reference_workers.get();
  RETURN_IF_ERROR(runners.status());
  RETURN_IF_ERROR(started.status());
  pools.runners = *std::move(runners);
  pools.reference_workers = *std::move(started);
  pools.cache_bytes = cache_bytes;
  pools.seed_key = seed_key;
  return pools;
}

LocalBackend::LocalBackend(std::string device, BackendPools pools)
    : device_(std::move(device)),
      pools_(std::move(pools)),
      gate_(pools_.runners->workers()),
      // The memory that reference processes keep is not part of the gate's memory: NoteMemory
      // subtracts a fixed amount for each, so that no request waits for one of them to end.
      reference_processes_(pools_.reference_processes ? std::make_shared<ReferenceProcessPool>(
                                                            pools_.reference_workers.get())
                                                      : nullptr),
      // A reference process occupies a worker. At most as many as there are runners are in use, and
      // one worker must remain for the device check.
      cache_(pools_.cache_bytes, pools_.reference_processes ? pools_.runners->workers() : 0),
      device_health_(device_, pools_.reference_workers.get()) {}

DeviceMemory LocalBackend::memory() const {
  const DeviceGate::State state = gate_.state();
  return {.shared_out = state.memory, .reserved = state.reserved};
}

int64_t LocalBackend::KeptBytes(int64_t device_bytes) const {
  return std::max(kKeptReferenceBytes, device_bytes / kKeptReferencesPart / concurrency());
}

void LocalBackend::NoteMemory(int64_t device_bytes) {
  const double free = (1 - kFreeShare) * static_cast<double>(device_bytes);
  const int64_t reference_processes =
      concurrency() * (KeptBytes(device_bytes) + kReferenceProcessBytes) + kReferenceProcessBytes;
  memory_bytes_ = std::max(static_cast<int64_t>(free) - reference_processes, device_bytes / 4);
  gate_.SetMemory(memory_bytes_);
  making_bytes_ = static_cast<int64_t>(kMakingShare * static_cast<double>(device_bytes));
}

void LocalBackend::EndIdleReferenceProcesses() {
  cache_.DropIdleSessions();
  if (reference_processes_ != nullptr) reference_processes_->EndIdle();
}

bool LocalBackend::Reserve(int64_t bytes, DeviceGate::Lease* lease, absl::Time deadline) {
  return lease == nullptr || lease->Reserve(bytes, deadline);
}

bool LocalBackend::TakeMemory(DeviceGate::Lease* lease, absl::Time deadline) {
  if (lease == nullptr || !lease->Reserve(kAllMemory, deadline)) return false;
  EndIdleReferenceProcesses();
  return true;
}

bool LocalBackend::Admit(const ReferenceResult& reference_result, DeviceGate::Lease* lease,
                         absl::Time deadline) {
  if (lease == nullptr) return true;
  const int64_t bytes = reference_result.CandidateBytes();
  return bytes < memory_bytes_ ? Reserve(bytes, lease, deadline) : TakeMemory(lease, deadline);
}

std::shared_ptr<const ReferenceResult> LocalBackend::GetReference(JobContext context,
                                                                  const std::string& key,
                                                                  const ExecLimits& limits,
                                                                  absl::Time deadline,
                                                                  bool* cached) {
  const auto late = [] {
    auto result = std::make_shared<ReferenceResult>();
    result->run = Failed(Outcome::DEADLINE, "reference", kTooLate);
    return std::shared_ptr<const ReferenceResult>(std::move(result));
  };
  ExecLimits of_reference = limits;
  if (context.host_memory_bytes > 0) of_reference.set_file_bytes(context.host_memory_bytes);
  const auto run = [&]() -> std::shared_ptr<const ReferenceResult> {
    auto made = RunReference(context, pools_.reference_workers.get(), of_reference, deadline);
    // The request's model is known: CheckRequest.
    if (made->ok() && modelled()) ModelReference(context.request, made.get()).IgnoreError();
    return made;
  };
  const auto make = [&] {
    if (!Reserve(making_bytes_, context.lease, deadline)) return late();
    auto made = run();
    if (!made->out_of_memory) return made;
    // Other requests may have used the memory, so the task is not at fault yet.
    if (!TakeMemory(context.lease, deadline)) return late();
    context.has_all_memory = true;
    return run();
  };
  auto reference_result = cache_.Get(key, deadline, make, cached);
  if (reference_result != nullptr && reference_result->shared_buffers.device_bytes > 0) {
    NoteMemory(reference_result->shared_buffers.device_bytes);
  }
  return reference_result;
}

std::shared_ptr<const ReferenceResult> LocalBackend::Renew(
    const JobContext& context, const std::string& key, const ExecLimits& limits,
    absl::Time deadline, const std::shared_ptr<const ReferenceResult>& reference_result) {
  if (reference_result->session != nullptr && !reference_result->session->alive())
    cache_.Forget(key, reference_result);
  // As in Run: while this request waits it must not block exclusive use by another one.
  if (context.lease != nullptr) context.lease->Release();
  bool cached = false;
  auto renewed = GetReference(context, key, limits, deadline, &cached);
  if (renewed == nullptr || !renewed->ok()) return nullptr;
  return Admit(*renewed, context.lease, deadline) ? renewed : nullptr;
}

CandidateRun LocalBackend::RunOn(const JobContext& context, const std::string& key,
                                 const ExecLimits& limits, absl::Time deadline,
                                 std::shared_ptr<const ReferenceResult> reference_result) {
  CandidateRun run;
  for (int attempt = 1; attempt <= 2; ++attempt) {
    run = RunClient(context, *reference_result, pools_.runners.get(), pools_.executors.get(),
                    limits, deadline);
    run.result.set_attempts(attempt);
    // Only a lack of device memory justifies a retry alone: a job that exceeded its own limit would
    // exceed it again, while all other requests wait.
    const bool out_of_memory = run.out_of_memory || run.result.outcome().device_memory();
    if (attempt == 2 || absl::Now() >= deadline) break;
    bool again = run.worker_died;
    if (out_of_memory && pools_.reference_processes) {
      again = TakeMemory(context.lease, deadline);
      if (!again) run.result = Failed(Outcome::DEADLINE, "start", kTooLate);
    } else if (run.exchange_failed) {
      auto renewed = Renew(context, key, limits, deadline, reference_result);
      again = renewed != nullptr;
      if (again) reference_result = std::move(renewed);
    }
    if (!again) break;
  }
  const bool lacked = run.out_of_memory || run.result.outcome().device_memory();
  if (lacked && run.result.attempts() == 2) {
    SetOutcome(Outcome::NO_DEVICE_MEMORY,
               absl::StrCat("alone on the GPU, too: ", run.result.outcome().message()),
               run.result.mutable_outcome());
    run.result.mutable_outcome()->set_device_memory(true);  // a server may know of other jobs
  }
  if (run.worker_died) {
    SetOutcome(Outcome::KILLED_WORKER,
               absl::StrCat("its worker died under it twice: ", run.result.outcome().message()),
               run.result.mutable_outcome());
  }
  return run;
}

absl::StatusOr<ExecResult> LocalBackend::Run(const ExecRequest& request, absl::Time deadline) {
  RETURN_IF_ERROR(CheckRequest(request));
  const ExecLimits limits = EffectiveLimits(request.limits(), pools_.runners->limits());
  JobContext context{
      request, device_,
      DeriveSeeds(pools_.seed_key, request.seed(), TrialsOf(request), MaxVariants(request)),
      limits.wall_seconds()};
  context.reference_processes = reference_processes_.get();
  if (pools_.reference_processes) {
    const auto gpu = pools_.executors->gpu();
    context.keep_bytes = KeptBytes(gpu.has_value() ? gpu->total_bytes : 0);
    context.host_memory_bytes = pools_.runners->limits().memory_bytes();
    context.whole_bytes = pools_.whole_bytes;
  }
  std::optional<DeviceGate::Lease> lease;
  if (!modelled() || pools_.reference_processes) {
    lease.emplace(&gate_, deadline);
    if (!lease->ok() || !lease->Reserve(0, deadline)) {
      return Failed(Outcome::DEADLINE, "start", kTooLate);
    }
    context.lease = &*lease;
  }
  if (const absl::Status sound = device_health_.EnsureHealthy(pools_.runners->limits(), deadline);
      !sound.ok()) {
    if (absl::IsDeadlineExceeded(sound)) return Failed(Outcome::DEADLINE, "start", kTooLate);
    return Failed(
        Outcome::INTERNAL_ERROR, "start",
        absl::StrCat("the GPU failed a check of ours after a candidate's error: ", Message(sound)));
  }
  bool cached = false;
  const std::string key = ReferenceKey(request, device_, limits);
  // A request that waits for another one's run of the reference must not block exclusive use.
  if (lease.has_value()) lease->Release();
  const auto reference_result = GetReference(context, key, limits, deadline, &cached);
  if (reference_result == nullptr) {
    return Failed(Outcome::DEADLINE, "reference",
                  "the caller's deadline passed while another request ran the reference");
  }
  if (!reference_result->ok() || request.reference_only()) {
    ExecResult result = reference_result->run;
    result.set_reference_cached(cached);
    if (!reference_result->ok() || !request.probe_task()) return result;
    ProbeTask(request, *reference_result, &result);
    return result;
  }
  if (!Admit(*reference_result, context.lease, deadline)) {
    return Failed(Outcome::DEADLINE, "start", kTooLate);
  }
  CandidateRun run = RunOn(context, key, limits, deadline, reference_result);
  device_health_.Note(run.result.outcome().reason());
  run.result.set_reference_cached(cached);
  return run.result;
}

}  // namespace tritonrl
