#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <new>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tritonrl {

ThreadPool::ThreadPool(int threads) {
  for (int i = 0; i < std::max(1, threads); ++i) threads_.emplace_back([this] { Run(); });
}

ThreadPool::~ThreadPool() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::Schedule(std::function<void()> work) {
  absl::MutexLock lock(&mutex_);
  queue_.push_back(std::move(work));
}

void ThreadPool::Wait() {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &ThreadPool::Idle));
}

void ThreadPool::Run() {
  while (true) {
    std::function<void()> work;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &ThreadPool::HasWorkOrStopping));
      if (queue_.empty()) return;
      work = std::move(queue_.front());
      queue_.pop_front();
      ++running_;
    }
    work();
    work = nullptr;  // destroys the captured objects before Wait may return
    absl::MutexLock lock(&mutex_);
    --running_;
  }
}

namespace {

class ParallelLoop {
 public:
  ParallelLoop(int64_t count, const std::function<absl::Status(int, int64_t)>& work)
      : count_(count), work_(work) {}

  void Run(int thread) {
    while (!failed_) {
      const int64_t number = next_++;
      if (number >= count_) return;
      const absl::Status status = Caught(thread, number);
      if (status.ok()) continue;
      failed_ = true;
      absl::MutexLock lock(&mutex_);
      status_.Update(status);
    }
  }

  absl::Status status() {
    absl::MutexLock lock(&mutex_);
    return status_;
  }

 private:
  absl::Status Caught(int thread, int64_t number) const {
    try {
      return work_(thread, number);
    } catch (const std::bad_alloc&) {
      return absl::ResourceExhaustedError("out of memory");
    } catch (const std::exception& error) {
      return absl::InternalError(error.what());
    }
  }

  const int64_t count_;
  const std::function<absl::Status(int, int64_t)>& work_;
  std::atomic<int64_t> next_{0};
  std::atomic<bool> failed_{false};
  absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::Status ParallelFor(int threads, int64_t count,
                         const std::function<absl::Status(int, int64_t)>& work) {
  ParallelLoop loop(count, work);
  threads = static_cast<int>(std::min<int64_t>(threads, count));
  if (threads <= 1) {
    loop.Run(0);
  } else {
    ThreadPool pool(threads);
    for (int i = 0; i < threads; ++i) pool.Schedule([&loop, i] { loop.Run(i); });
  }
  return loop.status();
}

}  // namespace tritonrl
