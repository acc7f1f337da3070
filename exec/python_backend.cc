#include "exec/python_backend.h"

#include <cmath>
#include <future>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/status.h"
#include "exec/candidate_run.h"
#include "exec/classify.h"
#include "exec/job_json.h"
#include "exec/task_probes.h"

namespace tritonrl {
namespace {

constexpr size_t kMaxSource = 2 << 20;

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
  if (request.probe_task() && !request.reference_only()) {
    return absl::InvalidArgumentError(
        absl::StrCat(task, "probe_task is for requests with reference_only"));
  }
  return absl::OkStatus();
}

// Everything that what a reference makes depends on.
std::string OracleKey(const ExecRequest& request, const std::string& device,
                      const ExecLimits& limits) {
  return Sha256Hex(absl::StrCat(device, " ", request.device_model(), " ", request.seed(), " ",
                                TrialsOf(request), " ", request.skip_timing(), " ", request.mode(),
                                " ", request.probe_task(), " ", limits.wall_seconds(), " ",
                                limits.memory_bytes(), "\n", request.reference_source()));
}

ExecResult Failed(ExecOutcome outcome, const std::string& phase, const std::string& message) {
  ExecResult result;
  SetOutcome(outcome, message, &result);
  result.set_phase(phase);
  return result;
}

}  // namespace

absl::StatusOr<BackendPools> StartPools(WorkerPoolOptions options, int64_t cache_bytes) {
  WorkerPoolOptions oracle_options = options;
  // On a GPU each candidate that is timed takes one beside it.
  if (options.device != "cuda") oracle_options.workers = (options.workers + 1) / 2;
  oracle_options.kept_bytes = cache_bytes;
  if (options.runner == "runner") oracle_options.runner = "oracle_worker";
  auto oracles = std::async(std::launch::async, [&] { return WorkerPool::Start(oracle_options); });
  BackendPools pools;
  auto runners = WorkerPool::Start(options);
  auto started = oracles.get();
  RETURN_IF_ERROR(runners.status());
  RETURN_IF_ERROR(started.status());
  pools.runners = *std::move(runners);
  pools.oracles = *std::move(started);
  pools.cache_bytes = cache_bytes;
  return pools;
}

PythonBackend::PythonBackend(std::string device, BackendPools pools)
    : device_(std::move(device)),
      pools_(std::move(pools)),
      cache_(pools_.cache_bytes),
      doubt_(device_, pools_.oracles.get()),
      gate_(pools_.runners->workers()) {}

absl::StatusOr<ExecResult> PythonBackend::Run(const ExecRequest& request, absl::Time deadline) {
  RETURN_IF_ERROR(CheckRequest(request));
  const ExecLimits limits = EffectiveLimits(request.limits(), pools_.runners->limits());
  JobContext context{request, device_,
                     DeriveSeeds(request.seed(), TrialsOf(request), MostVariants(request)),
                     limits.wall_seconds()};
  std::optional<GpuGate::Place> place;
  if (!modelled()) {
    place.emplace(&gate_, deadline);
    if (!place->ok()) {
      return Failed(EXEC_NO_WORKER_IN_TIME, "start",
                    "the caller's deadline passed while other requests used the GPU");
    }
    context.place = &*place;
  }
  if (const absl::Status sound = doubt_.Settle(pools_.runners->limits(), deadline); !sound.ok()) {
    return Failed(
        EXEC_INTERNAL_ERROR, "start",
        absl::StrCat("the GPU failed a check of ours after a candidate's error: ", Message(sound)));
  }
  bool cached = false;
  const std::shared_ptr<const OracleResult> oracle = cache_.Get(
      OracleKey(request, device_, limits), deadline,
      [&] { return RunOracle(context, pools_.oracles.get(), limits, deadline); }, &cached);
  if (oracle == nullptr) {
    return Failed(EXEC_NO_WORKER_IN_TIME, "reference",
                  "the caller's deadline passed while another request ran the reference");
  }
  if (!oracle->ok() || request.reference_only()) {
    ExecResult result = oracle->run;
    result.set_oracle_cached(cached);
    if (oracle->ok() && request.probe_task()) ProbeTask(request, *oracle, &result);
    return result;
  }
  CandidateRun run;
  for (int attempt = 1; attempt <= 2; ++attempt) {
    run = RunCandidate(context, *oracle, pools_.runners.get(), pools_.oracles.get(), limits,
                       deadline);
    run.result.set_attempts(attempt);
    if (!run.worker_died) break;
  }
  if (run.worker_died) {
    SetOutcome(EXEC_KILLED_WORKER,
               absl::StrCat("its worker died under it twice: ", run.result.message()), &run.result);
  }
  doubt_.Note(run.result.outcome());
  run.result.set_oracle_cached(cached);
  return run.result;
}

}  // namespace tritonrl
