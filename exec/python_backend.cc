#include "exec/python_backend.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/classify.h"
#include "exec/result_json.h"

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
  return absl::OkStatus();
}

}  // namespace

PythonBackend::PythonBackend(std::string device, std::unique_ptr<WorkerPool> pool,
                             const ExecLimits& limits)
    : device_(std::move(device)), pool_(std::move(pool)), limits_(limits) {}

absl::StatusOr<ExecResult> PythonBackend::Run(const ExecRequest& request, absl::Time deadline) {
  RETURN_IF_ERROR(CheckRequest(request));
  const ExecLimits limits = EffectiveLimits(request.limits(), limits_);
  const std::string job = JobJson(request, device_, limits.wall_seconds());
  JobReport report = pool_->Run(job, limits, deadline);
  if (report.end != JobEnd::kWorkerDied || report.out_of_memory) return Classify(report, limits);

  report = pool_->Run(job, limits, deadline);
  ExecResult result = Classify(report, limits);
  result.set_attempts(2);
  if (report.end == JobEnd::kWorkerDied && !report.out_of_memory) {
    result.set_outcome(EXEC_KILLED_WORKER);
    result.set_fault(FaultOf(EXEC_KILLED_WORKER));
    result.set_message(absl::StrCat("its worker died under it twice: ", report.detail));
  }
  return result;
}

}  // namespace tritonrl
