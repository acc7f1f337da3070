#include "trainer/grpo/starting_backend.h"

#include <utility>

namespace tritonrl {

StartingBackend::StartingBackend(Maker make, std::string name, bool modelled, int concurrency)
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
      // Workers may die with the thread that started them, so it stays until the end.
      state->mutex.Await(absl::Condition(&state->stopping));
      ended = std::move(state->backend);
    }
  });
}

StartingBackend::~StartingBackend() {
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

absl::StatusOr<ExecResult> StartingBackend::Run(const ExecRequest& request, absl::Time deadline) {
  DeviceBackend* backend = nullptr;
  {
    absl::MutexLock lock(&state_->mutex);
    if (!state_->mutex.AwaitWithDeadline(absl::Condition(state_.get(), &State::StartedOrCancelled),
                                         deadline)) {
      return absl::DeadlineExceededError("the verification workers have not started in time");
    }
    if (!state_->started) return absl::CancelledError("the run ended before the workers started");
    if (!state_->status.ok()) return state_->status;
    backend = state_->backend.get();  // lives as long as this object
  }
  return backend->Run(request, deadline);
}

void StartingBackend::Cancel() {
  absl::MutexLock lock(&state_->mutex);
  state_->cancelled = true;
}

std::string StartingBackend::sandbox_description() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->backend == nullptr ? "starting" : state_->backend->sandbox_description();
}

absl::Status StartingBackend::StartStatus() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->status;
}

}  // namespace tritonrl
