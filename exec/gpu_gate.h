// Who may use a GPU: checks side by side as far as its memory goes, times alone.
#ifndef TRITONRL_EXEC_GPU_GATE_H_
#define TRITONRL_EXEC_GPU_GATE_H_

#include <cstdint>
#include <list>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace tritonrl {

class GpuGate {
 public:
  // At most `places` requests are inside at the same time.
  explicit GpuGate(int places) : places_(places) {}

  // Bytes that reservations share; 0, as at first: any number.
  void SetMemory(int64_t bytes);

  // A request's stay. It begins among others; once it wants the GPU alone, nobody new comes in
  // until it and all who want the same have had it, one after the other.
  class Place {
   public:
    // Waits for a place until `deadline`; `ok` says whether there was one.
    Place(GpuGate* gate, absl::Time deadline);
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    bool ok() const { return inside_; }
    // Waits until all others have left or want to be alone as well; those who are inside leave in
    // the time that their own limits give them. From then on alone until ShareAgain, or until
    // this object is gone.
    void TakeAlone();
    // Among others again; waits until those who want to be alone have had it.
    void ShareAgain();
    // Does not use the GPU from now on until Reserve, and is not waited for; what it had reserved
    // is given back.
    void StepAside();
    // Has so many bytes of the memory until this object is gone, in place of what it had before;
    // more than there are is all of it. Waits for its turn, in the order of asking, and does not
    // count as one of the others meanwhile; then it does. Not to be called while alone. False when
    // `deadline` passed (it is aside then), or without a place.
    bool Reserve(int64_t bytes, absl::Time deadline);

   private:
    friend class GpuGate;
    GpuGate* const gate_;
    bool inside_ = false;
    bool sharing_ = false;
    bool alone_ = false;
    int64_t wanted_ = 0, reserved_ = 0;
  };

 private:
  bool CanEnter() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return taken_ < places_ && !alone_ && want_alone_ == 0;
  }
  // Whether a reservation can be had now. None is made while somebody times or wants to.
  bool CanReserve(const Place* place) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return queue_.front() == place && !alone_ && want_alone_ == 0 &&
           (memory_ == 0 || reserved_ + place->wanted_ <= memory_);
  }
  bool CanBeAlone() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return sharing_ == 0 && !alone_; }

  const int places_;
  absl::Mutex mutex_;
  int taken_ ABSL_GUARDED_BY(mutex_) = 0;  // places
  int sharing_ ABSL_GUARDED_BY(mutex_) = 0;
  int want_alone_ ABSL_GUARDED_BY(mutex_) = 0;
  bool alone_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t memory_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t reserved_ ABSL_GUARDED_BY(mutex_) = 0;
  std::list<const Place*> queue_ ABSL_GUARDED_BY(mutex_);  // for reservations
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_GPU_GATE_H_
