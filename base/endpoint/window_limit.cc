#include "base/endpoint/window_limit.h"

namespace tritonrl {

void WindowLimit::Forget(absl::Time now) {
  while (!entries_.empty() && entries_.front().time + window_ <= now) {
    sum_ -= entries_.front().amount;
    entries_.pop_front();
    ++first_;
  }
}

absl::Time WindowLimit::EarliestStart(int64_t amount, absl::Time now) {
  Forget(now);
  int64_t excess = sum_ + amount - limit_;
  if (limit_ <= 0 || entries_.empty() || excess <= 0) return now;
  for (const Entry& entry : entries_) {
    excess -= entry.amount;
    if (excess <= 0) return entry.time + window_;
  }
  return entries_.back().time + window_;
}

int64_t WindowLimit::Add(int64_t amount, absl::Time now) {
  if (limit_ <= 0) return -1;
  Forget(now);
  entries_.push_back({.time = now, .amount = amount});
  sum_ += amount;
  return first_ + static_cast<int64_t>(entries_.size()) - 1;
}

void WindowLimit::Correct(int64_t number, int64_t amount) {
  if (number < first_) return;  // -1 too
  Entry& entry = entries_[number - first_];
  sum_ += amount - entry.amount;
  entry.amount = amount;
}

}  // namespace tritonrl
