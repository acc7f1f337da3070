#include "exec/device_gate.h"

#include <algorithm>
#include <utility>

namespace tritonrl {

DeviceGate::DeviceGate(int places, int64_t memory_bytes, Clock* clock)
    : places_(std::max(1, places)), clock_(clock), memory_(std::max<int64_t>(0, memory_bytes)) {}

void DeviceGate::SetMemory(int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  memory_ = bytes;
}

DeviceGate::Lease::Lease(DeviceGate* gate, absl::Time deadline) : gate_(gate) {
  absl::MutexLock lock(&gate_->mutex_);
  gate_->entering_.push_back(this);
  const auto ready = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return gate_->HasFreeSlot(this); };
  inside_ = gate_->Await(absl::Condition(&ready), deadline);
  gate_->entering_.remove(this);
  if (inside_) ++gate_->taken_;
}

DeviceGate::Lease::~Lease() {
  absl::MutexLock lock(&gate_->mutex_);
  if (!inside_) return;
  Leave();
  gate_->reserved_ -= reserved_;
  --gate_->taken_;
}

bool DeviceGate::Lease::Use(bool alone) {
  for (Lease* other : gate_->users_) other->was_shared_ = true;
  was_shared_ = was_shared_ || !gate_->users_.empty();
  gate_->users_.push_back(this);
  gate_->alone_ = alone_ = alone;
  using_ = true;
  return true;
}

void DeviceGate::Lease::Leave() {
  if (alone_) gate_->alone_ = false;
  if (using_) gate_->users_.remove(this);
  using_ = alone_ = false;
}

bool DeviceGate::Lease::Reserve(int64_t bytes, absl::Time deadline) {
  absl::MutexLock lock(&gate_->mutex_);
  if (!inside_ || alone_) return false;
  Leave();
  gate_->reserved_ -= std::exchange(reserved_, 0);
  was_shared_ = false;
  bytes = std::max<int64_t>(0, bytes);
  wanted_ = gate_->memory_ > 0 ? std::min(bytes, gate_->memory_) : bytes;
  gate_->reserving_.push_back(this);
  const auto ready = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return gate_->CanReserve(this); };
  const bool had = gate_->Await(absl::Condition(&ready), deadline);
  gate_->reserving_.remove(this);
  if (!had) return false;
  reserved_ = wanted_;
  gate_->reserved_ += reserved_;
  return Use(/*alone=*/false);
}

bool DeviceGate::Lease::AcquireExclusive(absl::Time deadline) {
  absl::MutexLock lock(&gate_->mutex_);
  if (!inside_) return false;
  if (alone_) return true;
  Leave();
  was_shared_ = false;
  ++gate_->want_alone_;
  const auto ready = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return gate_->users_.empty(); };
  const bool had = gate_->Await(absl::Condition(&ready), deadline);
  --gate_->want_alone_;
  if (had) return Use(/*alone=*/true);
  gate_->reserved_ -= std::exchange(reserved_, 0);
  return false;
}

bool DeviceGate::Lease::ReturnToShared(absl::Time deadline) {
  absl::MutexLock lock(&gate_->mutex_);
  if (!alone_) return using_;
  Leave();
  ++gate_->want_shared_;
  const auto ready = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return !gate_->alone_ && gate_->want_alone_ == 0;
  };
  const bool had = gate_->Await(absl::Condition(&ready), deadline);
  --gate_->want_shared_;
  if (had) return Use(/*alone=*/false);
  gate_->reserved_ -= std::exchange(reserved_, 0);
  return false;
}

void DeviceGate::Lease::Release() {
  absl::MutexLock lock(&gate_->mutex_);
  if (alone_) return;
  Leave();
  gate_->reserved_ -= std::exchange(reserved_, 0);
}

bool DeviceGate::Lease::was_shared() const {
  absl::MutexLock lock(&gate_->mutex_);
  return was_shared_;
}

DeviceGate::State DeviceGate::state() const {
  absl::MutexLock lock(&mutex_);
  return {.users = static_cast<int>(users_.size()),
          .waiting =
              static_cast<int>(entering_.size() + reserving_.size()) + want_alone_ + want_shared_,
          .memory = memory_,
          .reserved = reserved_};
}

}  // namespace tritonrl
