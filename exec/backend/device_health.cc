#include "exec/backend/device_health.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "base/status.h"
#include "exec/reference/job_json.h"
#include "exec/reference/reference_runner.h"

namespace tritonrl {
namespace {

constexpr int kElements = 1 << 20;
constexpr int64_t kMemoryBytes = 64 << 20;  // of a task that is not used
constexpr double kSeconds = 60;             // a new context on a busy GPU takes a few seconds
// A reference process needs a task to start; the checks do not use this one.
constexpr char kProgram[] = R"(import torch
class Model(torch.nn.Module):
    def forward(self, x): return x + 1
def get_inputs(): return [torch.ones(4)]
def get_init_inputs(): return []
)";

}  // namespace

absl::Status DeviceHealthChecker::Start(const ExecLimits& limits, absl::Time deadline) {
  ExecRequest request;
  request.set_task_id("check of the device");
  request.set_reference_source(kProgram);
  request.set_trials(1);
  request.set_skip_timing(true);
  ExecLimits own = limits;
  own.set_wall_seconds(std::min(kSeconds, limits.wall_seconds()));
  JobContext context{request, device_, DeriveSeeds(SecretKey(), 0, 1), own.wall_seconds()};
  context.reference_processes = reference_processes_.get();
  context.host_memory_bytes = kMemoryBytes;
  const std::shared_ptr<const ReferenceResult> made =
      RunReference(context, reference_workers_, own, deadline);
  if (!made->ok()) return absl::UnavailableError(made->run.outcome().message());
  session_ = made->session;
  return absl::OkStatus();
}

absl::Status DeviceHealthChecker::Ask(absl::Time deadline) {
  const auto right =
      session_->Ask({{"check", {{"elements", kElements}}}}, "checked",
                    {.deadline = deadline, .answer_timeout = absl::Seconds(kSeconds)});
  if (!right.ok()) return absl::UnavailableError(Message(right.status()));
  if (*right == true) return absl::OkStatus();
  return absl::UnavailableError("it computes other numbers than the CPU");
}

absl::Status DeviceHealthChecker::Check(const ExecLimits& limits, absl::Time deadline) {
  if (absl::Now() >= deadline) return absl::DeadlineExceededError("no time is left for a check");
  if (session_ != nullptr && Ask(deadline).ok()) return absl::OkStatus();
  session_ = nullptr;
  reference_processes_->EndIdle();
  RETURN_IF_ERROR(Start(limits, deadline));
  const absl::Status sound = Ask(deadline);
  if (!sound.ok()) session_ = nullptr;
  return sound;
}

void DeviceHealth::Note(Outcome::Reason reason) {
  if (device_ != "cuda") return;
  switch (reason) {
    case Outcome::OUT_OF_BOUNDS:
    case Outcome::TIMEOUT:
    case Outcome::CRASHED:
    case Outcome::RUNTIME_ERROR:
    case Outcome::KILLED_WORKER:
    case Outcome::INTERNAL_ERROR: {
      absl::MutexLock lock(&mutex_);
      doubtful_ = true;
      return;
    }
    default:
      return;
  }
}

absl::Status DeviceHealth::EnsureHealthy(const ExecLimits& limits, absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  if (!doubtful_) return absl::OkStatus();
  ++checks_;
  const absl::Status sound = checker_.Check(limits, deadline);
  doubtful_ = !sound.ok();
  return sound;
}

int64_t DeviceHealth::checks() const {
  absl::MutexLock lock(&mutex_);
  return checks_;
}

}  // namespace tritonrl
