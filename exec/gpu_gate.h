// Who may use a GPU: checks side by side, times alone.
#ifndef TRITONRL_EXEC_GPU_GATE_H_
#define TRITONRL_EXEC_GPU_GATE_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace tritonrl {

class GpuGate {
 public:
  // At most `places` requests are inside at the same time.
  explicit GpuGate(int places) : places_(places) {}

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

   private:
    GpuGate* const gate_;
    bool inside_ = false;
    bool alone_ = false;
  };

 private:
  bool CanEnter() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return taken_ < places_ && !alone_ && want_alone_ == 0;
  }
  bool CanBeAlone() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return sharing_ == 0 && !alone_; }

  const int places_;
  absl::Mutex mutex_;
  int taken_ ABSL_GUARDED_BY(mutex_) = 0;  // places
  int sharing_ ABSL_GUARDED_BY(mutex_) = 0;
  int want_alone_ ABSL_GUARDED_BY(mutex_) = 0;
  bool alone_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_GPU_GATE_H_
