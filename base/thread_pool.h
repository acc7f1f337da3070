// A fixed set of threads that run functions in the order they came.
#ifndef TRITONRL_BASE_THREAD_POOL_H_
#define TRITONRL_BASE_THREAD_POOL_H_

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"

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

}  // namespace tritonrl

#endif  // TRITONRL_BASE_THREAD_POOL_H_
