// The places where this process executes what candidates ask for: each has an arena of memory at a
// fixed address, and all share the compiled kernels.
#ifndef TRITONRL_EXEC_CLIENT_RUN_EXECUTOR_SLOTS_H_
#define TRITONRL_EXEC_CLIENT_RUN_EXECUTOR_SLOTS_H_

#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "exec/device/arena.h"
#include "exec/device/kernel_table.h"
#include "exec/device/ttir_compiler.h"

namespace tritonrl {

// Thread-safe.
class ExecutorSlots {
 public:
  // `count` candidates at once, `threads` for each launch. InvalidArgument: a number below 1 or
  // above 64; FailedPrecondition: something else has memory where an arena should be.
  static absl::StatusOr<std::unique_ptr<ExecutorSlots>> Create(int count, int threads);

  // One arena, for one candidate at a time.
  class Lease {
   public:
    Lease(ExecutorSlots* slots, device::Arena* arena) : slots_(slots), arena_(arena) {}
    Lease(Lease&& other) noexcept
        : slots_(other.slots_), arena_(std::exchange(other.arena_, nullptr)) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease();
    device::Arena* arena() const { return arena_; }

   private:
    ExecutorSlots* slots_;
    device::Arena* arena_;
  };
  // Waits for a free arena. DeadlineExceeded if there is none until then.
  absl::StatusOr<Lease> Acquire(absl::Time deadline);

  device::KernelCompiler* compiler() { return &cache_; }
  int threads() const { return threads_; }

 private:
  explicit ExecutorSlots(int threads) : threads_(threads) {}

  const int threads_;
  device::TtirCompiler ttir_;
  device::KernelCache cache_{&ttir_, /*max_kernels=*/512};
  std::vector<std::unique_ptr<device::Arena>> arenas_;
  absl::Mutex mutex_;
  std::vector<device::Arena*> free_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_CLIENT_RUN_EXECUTOR_SLOTS_H_
