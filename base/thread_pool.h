#ifndef TRITONRL_BASE_THREAD_POOL_H_
#define TRITONRL_BASE_THREAD_POOL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

// A fixed set of threads that run functions in the order they came.
//
// Pieces of work with numbers, for several threads.
//
// A blocking first-in first-out queue between threads, with a limit so that a fast producer waits.

namespace tritonrl {

class ThreadPool {
 public:
  explicit ThreadPool(int threads);  // at least one is started
  ~ThreadPool();                     // runs what is queued, then joins
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Never blocks. Functions must not throw.
  void Schedule(std::function<void()> work);

  // Returns when all that was scheduled so far has ended. Not to be called from within the pool.
  void Wait();

  int size() const { return static_cast<int>(threads_.size()); }

 private:
  void Run();
  bool HasWorkOrStopping() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !queue_.empty();
  }
  bool Idle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return running_ == 0 && queue_.empty();
  }

  absl::Mutex mutex_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

// Calls work(thread, i) once for each i in [0, count), from `threads` threads (fewer for fewer
// pieces; for one the caller's) that take the next number when they are done with one. `thread` is
// below `threads` and the same for one thread's calls: for memory that it keeps. Returns when all
// have ended; after an error no further piece is begun, and the first error is the result. What
// `work` throws becomes ResourceExhausted (std::bad_alloc) or Internal.
absl::Status ParallelFor(int threads, int64_t count,
                         const std::function<absl::Status(int thread, int64_t i)>& work);

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

#endif  // TRITONRL_BASE_THREAD_POOL_H_
