#include "exec/gpu_gate.h"

namespace tritonrl {

GpuGate::Place::Place(GpuGate* gate, absl::Time deadline) : gate_(gate) {
  absl::MutexLock lock(&gate_->mutex_);
  inside_ = gate_->mutex_.AwaitWithDeadline(
      absl::Condition(
          +[](GpuGate* g) ABSL_NO_THREAD_SAFETY_ANALYSIS { return g->CanEnter(); }, gate_),
      deadline);
  if (!inside_) return;
  ++gate_->taken_;
  ++gate_->sharing_;
}

GpuGate::Place::~Place() {
  if (!inside_) return;
  absl::MutexLock lock(&gate_->mutex_);
  --gate_->taken_;
  if (alone_) {
    gate_->alone_ = false;
  } else {
    --gate_->sharing_;
  }
}

void GpuGate::Place::TakeAlone() {
  if (!inside_ || alone_) return;
  absl::MutexLock lock(&gate_->mutex_);
  --gate_->sharing_;
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
}

}  // namespace tritonrl
