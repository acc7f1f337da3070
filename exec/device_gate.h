// Admission to a device (a GPU, or the machine itself without one): requests run concurrently
// within limits of slots and memory; timing runs get exclusive use.
#ifndef TRITONRL_EXEC_DEVICE_GATE_H_
#define TRITONRL_EXEC_DEVICE_GATE_H_

#include <cstdint>
#include <list>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace tritonrl {

class DeviceGate {
 public:
  // At most `places` requests (at least one) hold a slot at the same time. `memory_bytes` bounds
  // the sum of their reservations; 0: unbounded.
  explicit DeviceGate(int places, int64_t memory_bytes = 0, Clock* clock = Clock::Real());
  DeviceGate(const DeviceGate&) = delete;
  DeviceGate& operator=(const DeviceGate&) = delete;

  // Replaces `memory_bytes` of the constructor.
  void SetMemory(int64_t bytes);

  // One request's slot and use of the device. Leases that wait for a slot or for memory are served
  // in their order of arrival, so that small requests cannot starve a large one.
  class Lease {
   public:
    // Waits for a slot until `deadline`; ok() says whether it got one. The lease does not use the
    // device yet.
    Lease(DeviceGate* gate, absl::Time deadline);
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    bool ok() const { return inside_; }
    // Starts shared use of the device and reserves `bytes` of its memory; the lease's previous
    // reservation is freed first. `bytes` above the device's memory reserve all of it. A request is
    // admitted with any amount while no other reservation is held. The lease does not use the
    // device while it waits. Returns false, without use of the device, if `deadline` passed, the
    // lease has no slot, or it is in exclusive use (a caller's error: that use goes on).
    bool Reserve(int64_t bytes, absl::Time deadline);
    // Starts exclusive use, with the same reservation, until ReturnToShared or destruction. Waits
    // until no other lease uses the device; leases that wait for exclusive use do not count as
    // users. No shared use begins until all waiting exclusive uses are over, one after the other.
    // Returns false, without use of the device and without a reservation, if `deadline` passed;
    // also false if the lease has no slot.
    bool AcquireExclusive(absl::Time deadline);
    // Returns from exclusive to shared use, after all waiting exclusive uses. Returns false,
    // without use of the device and without a reservation, if `deadline` passed.
    bool ReturnToShared(absl::Time deadline);
    // Ends shared use of the device and frees its reservation. No effect during exclusive use.
    void Release();
    // Whether another request has used the device at the same time since this lease's last call of
    // Reserve or AcquireExclusive.
    bool was_shared() const;

   private:
    friend class DeviceGate;
    bool Use(bool alone) ABSL_EXCLUSIVE_LOCKS_REQUIRED(gate_->mutex_);
    void Leave() ABSL_EXCLUSIVE_LOCKS_REQUIRED(gate_->mutex_);

    DeviceGate* const gate_;
    bool inside_ = false;  // holds a slot; constant after construction
    // The gate's mutex guards the fields below.
    bool using_ = false;
    bool alone_ = false;
    bool was_shared_ = false;
    int64_t wanted_ = 0, reserved_ = 0;
  };

  struct State {
    int users = 0;                     // requests that use the device
    int waiting = 0;                   // requests that wait for a slot, memory, or a kind of use
    int64_t memory = 0, reserved = 0;  // bytes
  };
  State state() const;

 private:
  bool HasFreeSlot(const Lease* lease) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return entering_.front() == lease && taken_ < places_;
  }
  // Shared use does not begin during exclusive use or while a lease waits for it.
  bool CanReserve(const Lease* lease) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return reserving_.front() == lease && !alone_ && want_alone_ == 0 &&
           (reserved_ == 0 || memory_ == 0 || reserved_ + lease->wanted_ <= memory_);
  }

  // Waits until `condition` holds or `deadline` has passed. Returns the value of `condition`.
  bool Await(const absl::Condition& condition, absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return clock_->AwaitWithDeadline(&mutex_, condition, deadline);
  }

  const int places_;
  Clock* const clock_;
  mutable absl::Mutex mutex_;
  int taken_ ABSL_GUARDED_BY(mutex_) = 0;        // slots in use
  int want_alone_ ABSL_GUARDED_BY(mutex_) = 0;   // leases that wait in AcquireExclusive
  int want_shared_ ABSL_GUARDED_BY(mutex_) = 0;  // leases that wait in ReturnToShared
  bool alone_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t memory_ ABSL_GUARDED_BY(mutex_);
  int64_t reserved_ ABSL_GUARDED_BY(mutex_) = 0;
  std::list<Lease*> users_ ABSL_GUARDED_BY(mutex_);
  std::list<const Lease*> entering_ ABSL_GUARDED_BY(mutex_);
  std::list<const Lease*> reserving_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_DEVICE_GATE_H_
