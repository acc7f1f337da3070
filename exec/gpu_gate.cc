#include "exec/gpu_gate.h"

#include <algorithm>
#include <utility>

namespace tritonrl {

void GpuGate::SetMemory(int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  memory_ = bytes;
}

GpuGate::Place::Place(GpuGate* gate, absl::Time deadline) : gate_(gate) {
  absl::MutexLock lock(&gate_->mutex_);
  inside_ = gate_->mutex_.AwaitWithDeadline(
      absl::Condition(
          +[](GpuGate* g) ABSL_NO_THREAD_SAFETY_ANALYSIS { return g->CanEnter(); }, gate_),
      deadline);
  if (!inside_) return;
  ++gate_->taken_;
  ++gate_->sharing_;
  sharing_ = true;
}

GpuGate::Place::~Place() {
  if (!inside_) return;
  absl::MutexLock lock(&gate_->mutex_);
  --gate_->taken_;
  if (alone_) gate_->alone_ = false;
  if (sharing_) --gate_->sharing_;
  gate_->reserved_ -= reserved_;
}

void GpuGate::Place::TakeAlone() {
  if (!sharing_) return;
  absl::MutexLock lock(&gate_->mutex_);
  --gate_->sharing_;
  sharing_ = false;
  ++gate_->want_alone_;
  gate_->mutex_.Await(absl::Condition(
      +[](GpuGate* g) ABSL_NO_THREAD_SAFETY_ANALYSIS { return g->CanBeAlone(); }, gate_));
  --gate_->want_alone_;
  gate_->alone_ = alone_ = true;
}

void GpuGate::Place::ShareAgain() {
  if (!alone_) return;
  absl::MutexLock lock(&gate_->mutex_);
  gate_->alone_ = alone_ = false;
  gate_->mutex_.Await(absl::Condition(
      +[](GpuGate* g) ABSL_NO_THREAD_SAFETY_ANALYSIS { return !g->alone_ && g->want_alone_ == 0; },
      gate_));
  ++gate_->sharing_;
  sharing_ = true;
}

void GpuGate::Place::StepAside() {
  if (!sharing_) return;
  absl::MutexLock lock(&gate_->mutex_);
  --gate_->sharing_;
  sharing_ = false;
  gate_->reserved_ -= std::exchange(reserved_, 0);
}

bool GpuGate::Place::Reserve(int64_t bytes, absl::Time deadline) {
  if (!inside_ || alone_) return false;
  StepAside();
  absl::MutexLock lock(&gate_->mutex_);
  wanted_ = gate_->memory_ > 0 ? std::min(bytes, gate_->memory_) : bytes;
  gate_->queue_.push_back(this);
  const auto ready = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return gate_->CanReserve(this); };
  const bool had = gate_->mutex_.AwaitWithDeadline(absl::Condition(&ready), deadline);
  gate_->queue_.remove(this);
  if (!had) return false;
  reserved_ = wanted_;
  gate_->reserved_ += reserved_;
  ++gate_->sharing_;
  sharing_ = true;
  return true;
}

}  // namespace tritonrl
