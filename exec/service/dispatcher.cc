#include "exec/service/dispatcher.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tritonrl {
namespace {

ExecResult NoTurnInTime(absl::Duration queued) {
  ExecResult result;
  SetOutcome(Outcome::DEADLINE, "the deadline passed while it waited for its turn at the server",
             result.mutable_outcome());
  result.set_phase("queue");
  result.set_queue_seconds(absl::ToDoubleSeconds(queued));
  return result;
}

bool WantsTime(const ExecRequest& request) {
  return !request.skip_timing() && !request.reference_only();
}

}  // namespace

absl::StatusOr<ServerRole> ParseServerRole(const std::string& name) {
  if (name == "both") return SERVER_ROLE_BOTH;
  if (name == "check") return SERVER_ROLE_CHECK;
  if (name == "time") return SERVER_ROLE_TIME;
  return absl::InvalidArgumentError(
      absl::StrCat("role \"", name, "\" is unknown; use \"both\", \"check\" or \"time\""));
}

Dispatcher::Dispatcher(const DispatcherOptions& options,
                       std::vector<std::unique_ptr<DeviceBackend>> backends, Clock* clock)
    : options_(options), clock_(clock), started_(clock->Now()) {
  for (std::unique_ptr<DeviceBackend>& backend : backends) {
    auto device = std::make_unique<Device>();
    const int slots = options_.role == SERVER_ROLE_TIME ? 1 : backend->concurrency();
    concurrency_ += slots;
    device->backend = std::move(backend);
    if (devices_.size() < options_.gpus.size()) device->gpu = options_.gpus[devices_.size()];
    device->gate = std::make_unique<DeviceGate>(slots, options_.memory_budget_bytes, clock_);
    devices_.push_back(std::move(device));
  }
}

absl::Status Dispatcher::CheckRole(const ExecRequest& request) const {
  if (options_.role == SERVER_ROLE_CHECK && WantsTime(request)) {
    return absl::FailedPreconditionError(
        "this server has the role \"check\" and takes no times; set skip_timing, or ask a server "
        "with the role \"time\" or \"both\"");
  }
  return absl::OkStatus();
}

absl::StatusOr<Dispatcher::Device*> Dispatcher::Enter() {
  absl::MutexLock lock(&mutex_);
  if (draining_) return absl::UnavailableError("this server is being shut down");
  if (jobs_ >= concurrency_ + options_.queue) {
    ++refused_;
    return absl::ResourceExhaustedError(
        absl::StrCat(jobs_ - concurrency_, " jobs wait at this server already"));
  }
  const auto least =
      std::min_element(devices_.begin(), devices_.end(),
                       [](const auto& a, const auto& b) { return a->jobs < b->jobs; });
  ++jobs_;
  ++(*least)->jobs;
  return least->get();
}

void Dispatcher::Leave(Device* device, absl::Duration time,
                       const absl::StatusOr<ExecResult>& result) {
  absl::MutexLock lock(&mutex_);
  --jobs_;
  --device->jobs;
  ++finished_;
  time_ += time;
  ++outcomes_[result.ok() ? ReasonName(result->outcome().reason()) : "no_result"];
  if (result.ok() && result->outcome().status() == Outcome::STATUS_INFRA_ERROR) ++infra_errors_;
}

void Dispatcher::NoteBusy(absl::Duration time) {
  absl::MutexLock lock(&mutex_);
  busy_ += time;
}

absl::StatusOr<ExecResult> Dispatcher::RunOn(Device* device, const ExecRequest& request,
                                             int64_t memory_bytes, absl::Time deadline,
                                             const std::function<bool()>& cancelled) {
  const absl::Time entered = clock_->Now();
  int64_t bytes = memory_bytes > 0 ? memory_bytes : options_.job_bytes;
  if (bytes <= 0 && options_.memory_budget_bytes > 0) {
    bytes = options_.memory_budget_bytes / std::max(1, device->backend->concurrency());
  }
  bool alone = false;
  for (int attempt = 1;; ++attempt) {
    // With the role TIME the gate has one slot. With other roles the backend itself takes exclusive
    // use of the device, only for the timed part of a job.
    DeviceGate::Lease lease(device->gate.get(), deadline);
    const bool in = alone ? lease.AcquireExclusive(deadline) : lease.Reserve(bytes, deadline);
    if (!in) return NoTurnInTime(clock_->Now() - entered);
    if (cancelled()) return absl::CancelledError("the caller has gone");
    const absl::Time begin = clock_->Now();
    absl::StatusOr<ExecResult> run = device->backend->Run(request, deadline);
    NoteBusy(clock_->Now() - begin);
    RETURN_IF_ERROR(run.status());
    ExecResult result = *std::move(run);
    result.set_gpu(device->gpu);
    if (attempt == 1) {
      result.set_queue_seconds(result.queue_seconds() + absl::ToDoubleSeconds(begin - entered));
    } else {
      result.set_attempts(std::max(result.attempts(), 1) + 1);
    }
    // A lack of device memory counts only if no other job used the device at the same time.
    if (!result.outcome().device_memory() || !lease.was_shared()) return result;
    alone = true;
  }
}

absl::StatusOr<ExecResult> Dispatcher::Run(const ExecRequest& request, int64_t memory_bytes,
                                           absl::Time deadline,
                                           const std::function<bool()>& cancelled) {
  RETURN_IF_ERROR(CheckRole(request));
  ASSIGN_OR_RETURN(Device * device, Enter());
  const absl::Time entered = clock_->Now();
  absl::StatusOr<ExecResult> result = RunOn(device, request, memory_bytes, deadline, cancelled);
  Leave(device, clock_->Now() - entered, result);
  return result;
}

void Dispatcher::Drain() {
  absl::MutexLock lock(&mutex_);
  draining_ = true;
}

bool Dispatcher::WaitIdle(absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return jobs_ == 0; };
  return clock_->AwaitWithDeadline(&mutex_, absl::Condition(&idle), deadline);
}

int64_t Dispatcher::RetryHint() const {
  absl::MutexLock lock(&mutex_);
  if (finished_ == 0) return 500;
  return std::clamp<int64_t>(absl::ToInt64Milliseconds(time_ / finished_), 50, 5000);
}

ServerDescription Dispatcher::Describe() const {
  ServerDescription description;
  description.set_role(options_.role);
  description.set_concurrency(concurrency_);
  description.set_queue(options_.queue);
  int running = 0;
  for (const auto& device : devices_) {
    const DeviceGate::State state = device->gate->state();
    const DeviceMemory memory = device->backend->memory();
    DeviceState* const told = description.add_devices();
    told->set_gpu(device->gpu);
    told->set_running(state.users);
    told->set_memory_bytes(memory.shared_out);
    told->set_reserved_bytes(memory.reserved);
    running += state.users;
    description.set_backend(device->backend->name());
    description.set_modelled(device->backend->modelled());
    description.set_sandbox(device->backend->sandbox_description());
  }
  description.set_running(running);
  description.set_uptime_seconds(absl::ToDoubleSeconds(clock_->Now() - started_));
  absl::MutexLock lock(&mutex_);
  description.set_waiting(std::max(0, jobs_ - running));
  description.set_finished(finished_);
  description.set_draining(draining_);
  description.mutable_outcomes()->insert(outcomes_.begin(), outcomes_.end());
  description.set_infra_errors(infra_errors_);
  description.set_refused(refused_);
  description.set_busy_seconds(absl::ToDoubleSeconds(busy_));
  return description;
}

}  // namespace tritonrl
