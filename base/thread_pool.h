// A thread pool, a parallel loop and a bounded queue.
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

namespace tritonrl {

// A fixed set of threads that start functions in the order of Schedule. Thread-safe.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);  // starts at least one thread
  ~ThreadPool();                     // runs all queued functions, then joins the threads
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Never blocks. Functions must not throw.
  void Schedule(std::function<void()> work);

  // Returns when every function scheduled so far has returned. Do not call it from the pool's own
  // threads.
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

// Calls work(thread, i) once for each i in [0, count), from at most `threads` threads; with one
// thread, or count = 1, the caller's thread runs all calls. A thread that has finished a call takes
// the next i. `thread` in [0, threads) is the number of the thread that runs the call, e.g. to
// select its own buffer. After an error no further call begins, and ParallelFor returns the first
// error when all calls have ended. An exception of `work` becomes ResourceExhausted
// (std::bad_alloc) or Internal.
absl::Status ParallelFor(int threads, int64_t count,
                         const std::function<absl::Status(int thread, int64_t i)>& work);

// A first-in first-out queue between threads that holds at most `capacity` values. Thread-safe.
template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity == 0 ? 1 : capacity) {}
  BoundedQueue(const BoundedQueue&) = delete;
  BoundedQueue& operator=(const BoundedQueue&) = delete;

  // Waits while the queue is full. Returns false, and discards the value, if the queue is closed.
  bool Push(T value) {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](BoundedQueue* q) { return q->closed_ || q->values_.size() < q->capacity_; }, this));
    if (closed_) return false;
    values_.push_back(std::move(value));
    return true;
  }

  // Waits for a value. Returns nullopt if the queue is closed and empty.
  std::optional<T> Pop() { return PopFor(absl::InfiniteDuration()); }

  // Like Pop, but also returns nullopt after `wait`.
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

  // Makes further pushes fail and wakes all waiting threads; queued values can still be popped.
  void Close() {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }

 private:
  const size_t capacity_;
  absl::Mutex mutex_;
  std::deque<T> values_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tritonrl

#endif  // TRITONRL_BASE_THREAD_POOL_H_
