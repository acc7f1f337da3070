// A blocking first-in first-out queue between threads, with a limit so that a fast producer waits.
#ifndef TRITONRL_BASE_BOUNDED_QUEUE_H_
#define TRITONRL_BASE_BOUNDED_QUEUE_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace tritonrl {

template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity == 0 ? 1 : capacity) {}
  BoundedQueue(const BoundedQueue&) = delete;
  BoundedQueue& operator=(const BoundedQueue&) = delete;

  // Waits for room. False when the queue was closed; the value is then dropped.
  bool Push(T value) {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](BoundedQueue* q) { return q->closed_ || q->values_.size() < q->capacity_; }, this));
    if (closed_) return false;
    values_.push_back(std::move(value));
    return true;
  }

  // False at once when the queue is full or closed; `value` is then untouched.
  bool TryPush(T& value) {
    absl::MutexLock lock(&mutex_);
    if (closed_ || values_.size() >= capacity_) return false;
    values_.push_back(std::move(value));
    return true;
  }

  // Waits for a value. Nothing once the queue is closed and empty.
  std::optional<T> Pop() { return PopFor(absl::InfiniteDuration()); }

  // Same, for at most `wait`; nothing too when the time has passed.
  std::optional<T> PopFor(absl::Duration wait) {
    absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(
        absl::Condition(
            +[](BoundedQueue* q) { return q->closed_ || !q->values_.empty(); }, this),
        wait);
    if (values_.empty()) return std::nullopt;
    std::optional<T> value(std::move(values_.front()));
    values_.pop_front();
    return value;
  }

  // No more pushes; values already in the queue can still be popped. Wakes everybody.
  void Close() {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }

  bool closed() const {
    absl::MutexLock lock(&mutex_);
    return closed_;
  }
  size_t size() const {
    absl::MutexLock lock(&mutex_);
    return values_.size();
  }

 private:
  const size_t capacity_;
  mutable absl::Mutex mutex_;
  std::deque<T> values_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tritonrl

#endif  // TRITONRL_BASE_BOUNDED_QUEUE_H_
