// Who may run at the same time: jobs are admitted while their estimates fit a budget of memory,
// some of them only alone.
#ifndef TRITONRL_EXEC_MEMORY_BUDGET_H_
#define TRITONRL_EXEC_MEMORY_BUDGET_H_

#include <cstdint>
#include <list>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace tritonrl {

class MemoryBudget {
 public:
  // `bytes` of memory for `slots` jobs at most; bytes <= 0: only the slots count.
  MemoryBudget(int64_t bytes, int slots);
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  // Holds its share while it lives.
  class Ticket {
   public:
    ~Ticket();
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;
    // True when another job ran at any time beside this one.
    bool had_company() const;

   private:
    friend class MemoryBudget;
    Ticket(MemoryBudget* budget, int64_t bytes, bool alone)
        : budget_(budget), bytes_(bytes), alone_(alone) {}
    MemoryBudget* const budget_;
    const int64_t bytes_;
    const bool alone_;
    bool had_company_ = false;  // guarded by the budget's mutex
    bool admitted_ = false;
  };

  // Waits for its turn, in the order of asking, so that a large job is not overtaken for ever by
  // small ones. A job above the whole budget, and one asked for as `alone`, runs with no other.
  // Null when the deadline passed first. The budget must outlive the ticket.
  std::unique_ptr<Ticket> Admit(int64_t bytes, bool alone, absl::Time deadline);

  int running() const;
  int waiting() const;

 private:
  bool Fits(const Ticket& ticket) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Leave(const Ticket& ticket);

  const int64_t budget_;
  const int slots_;
  mutable absl::Mutex mutex_;
  int64_t used_ ABSL_GUARDED_BY(mutex_) = 0;
  std::list<Ticket*> running_ ABSL_GUARDED_BY(mutex_);
  std::list<const Ticket*> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_MEMORY_BUDGET_H_
