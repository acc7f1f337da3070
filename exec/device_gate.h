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
  // At most `places` requests (one at least) are inside at the same time. `memory_bytes` is shared
  // out among their reservations; 0: any number of bytes.
  explicit DeviceGate(int places, int64_t memory_bytes = 0, Clock* clock = Clock::Real());
  DeviceGate(const DeviceGate&) = delete;
  DeviceGate& operator=(const DeviceGate&) = delete;

  void SetMemory(int64_t bytes);

  // A request's stay. All waiting is in the order of asking, so that a large request is not
  // overtaken for ever by small ones.
  class Lease {
   public:
    // Waits for a place until `deadline`; `ok` says whether there was one. It does not use the
    // device yet.
    Lease(DeviceGate* gate, absl::Time deadline);
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    bool ok() const { return inside_; }
    // Uses the device from now on, among others, with so many bytes of its memory in place of what
    // it had before; more than there are is all of it, and who is the only one gets what he asks
    // for. While it waits it does not use the device. Not to be called while alone. False when
    // `deadline` passed, or without a place: it does not use the device then.
    bool Reserve(int64_t bytes, absl::Time deadline);
    // Uses it alone, with what it had reserved, until ReturnToShared, or until this object is gone:
    // waits until all others have left or want to be alone as well; nobody new comes in until all
    // who want that have had it, one after the other. False as for Reserve.
    bool AcquireExclusive(absl::Time deadline);
    // Among others again; waits until those who want to be alone have had it. False as for Reserve.
    bool ReturnToShared(absl::Time deadline);
    // Does not use the device from now on, and gives back what it had reserved.
    void Release();
    // Whether another request used the device at any time while this one did, since Reserve or
    // AcquireExclusive was called last.
    bool was_shared() const;

   private:
    friend class DeviceGate;
    bool Use(bool alone) ABSL_EXCLUSIVE_LOCKS_REQUIRED(gate_->mutex_);
    void Leave() ABSL_EXCLUSIVE_LOCKS_REQUIRED(gate_->mutex_);

    DeviceGate* const gate_;
    bool inside_ = false;  // the others are guarded by the gate's mutex
    bool using_ = false;
    bool alone_ = false;
    bool was_shared_ = false;
    int64_t wanted_ = 0, reserved_ = 0;
  };

  struct State {
    int users = 0;                     // requests that use the device
    int waiting = 0;                   // that wait for a place or for memory, or to be alone
    int64_t memory = 0, reserved = 0;  // bytes
  };
  State state() const;

 private:
  bool HasFreeSlot(const Lease* lease) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return entering_.front() == lease && taken_ < places_;
  }
  // None begins while somebody is alone or wants to be.
  bool CanReserve(const Lease* lease) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return reserving_.front() == lease && !alone_ && want_alone_ == 0 &&
           (reserved_ == 0 || memory_ == 0 || reserved_ + lease->wanted_ <= memory_);
  }

  // Waits until `condition` holds or `deadline` has passed; the value of `condition`.
  bool Await(const absl::Condition& condition, absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return clock_->AwaitWithDeadline(&mutex_, condition, deadline);
  }

  const int places_;
  Clock* const clock_;
  mutable absl::Mutex mutex_;
  int taken_ ABSL_GUARDED_BY(mutex_) = 0;  // places
  int want_alone_ ABSL_GUARDED_BY(mutex_) = 0;
  int want_shared_ ABSL_GUARDED_BY(mutex_) = 0;  // to be among others
  bool alone_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t memory_ ABSL_GUARDED_BY(mutex_);
  int64_t reserved_ ABSL_GUARDED_BY(mutex_) = 0;
  std::list<Lease*> users_ ABSL_GUARDED_BY(mutex_);
  std::list<const Lease*> entering_ ABSL_GUARDED_BY(mutex_);
  std::list<const Lease*> reserving_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_DEVICE_GATE_H_
