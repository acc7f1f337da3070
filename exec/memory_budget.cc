#include "exec/memory_budget.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace tritonrl {

MemoryBudget::MemoryBudget(int64_t bytes, int slots)
    : budget_(bytes > 0 ? bytes : std::numeric_limits<int64_t>::max()),
      slots_(std::max(1, slots)) {}

bool MemoryBudget::Fits(const Ticket& ticket) const {
  if (running_.empty()) return true;
  if (ticket.alone_ || running_.front()->alone_) return false;
  return static_cast<int>(running_.size()) < slots_ && ticket.bytes_ <= budget_ - used_;
}

std::unique_ptr<MemoryBudget::Ticket> MemoryBudget::Admit(int64_t bytes, bool alone,
                                                          absl::Time deadline) {
  bytes = std::clamp<int64_t>(bytes, 0, budget_);
  std::unique_ptr<Ticket> ticket(new Ticket(this, bytes, alone));
  absl::MutexLock lock(&mutex_);
  waiting_.push_back(ticket.get());
  const auto place = std::prev(waiting_.end());
  auto my_turn = [this, &ticket]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return waiting_.front() == ticket.get() && Fits(*ticket);
  };
  const bool admitted = mutex_.AwaitWithDeadline(absl::Condition(&my_turn), deadline);
  waiting_.erase(place);
  if (!admitted) return nullptr;
  ticket->admitted_ = true;
  ticket->had_company_ = !running_.empty();
  for (Ticket* other : running_) other->had_company_ = true;
  running_.push_back(ticket.get());
  used_ += bytes;
  return ticket;
}

void MemoryBudget::Leave(const Ticket& ticket) {
  absl::MutexLock lock(&mutex_);
  running_.remove_if([&ticket](const Ticket* other) { return other == &ticket; });
  used_ -= ticket.bytes_;
}

MemoryBudget::Ticket::~Ticket() {
  if (admitted_) budget_->Leave(*this);  // else it has nothing to give back
}

bool MemoryBudget::Ticket::had_company() const {
  absl::MutexLock lock(&budget_->mutex_);
  return had_company_;
}

int MemoryBudget::running() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(running_.size());
}

int MemoryBudget::waiting() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(waiting_.size());
}

}  // namespace tritonrl
