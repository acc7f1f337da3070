#include "exec/client_run/executor_slots.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tritonrl {
namespace {

constexpr int kMostSlots = 64;  // arenas of 1 TiB in the 47 bits of a process's addresses

}  // namespace

absl::StatusOr<std::unique_ptr<ExecutorSlots>> ExecutorSlots::Create(int count, int threads) {
  if (count < 1 || count > kMostSlots || threads < 1) {
    return absl::InvalidArgumentError(absl::StrCat("executors: ", count, " with ", threads,
                                                   " threads each; 1 to ", kMostSlots,
                                                   " with at least one thread are possible"));
  }
  std::unique_ptr<ExecutorSlots> slots(new ExecutorSlots(threads));
  for (int i = 0; i < count; ++i) {
    // Where the first arena may lie anywhere, so may the others.
    const uintptr_t base =
        device::kArenaBase == 0
            ? 0
            : device::kArenaBase +
                  static_cast<uintptr_t>(i) * static_cast<uintptr_t>(device::kArenaBytes);
    ASSIGN_OR_RETURN(std::unique_ptr<device::Arena> arena, device::Arena::Create(base));
    const absl::MutexLock lock(&slots->mutex_);
    slots->free_.push_back(arena.get());
    slots->arenas_.push_back(std::move(arena));
  }
  return slots;
}

absl::StatusOr<ExecutorSlots::Lease> ExecutorSlots::Acquire(absl::Time deadline) {
  const auto has_one = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !free_.empty(); };
  const absl::MutexLock lock(&mutex_);
  if (!mutex_.AwaitWithDeadline(absl::Condition(&has_one), deadline)) {
    return absl::DeadlineExceededError("no executor became free before the deadline");
  }
  device::Arena* const arena = free_.back();
  free_.pop_back();
  return Lease(this, arena);
}

ExecutorSlots::Lease::~Lease() {
  if (arena_ == nullptr) return;
  arena_->Reset();
  const absl::MutexLock lock(&slots_->mutex_);
  slots_->free_.push_back(arena_);
}

}  // namespace tritonrl
