#include "base/thread_pool.h"

#include <algorithm>
#include <utility>

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
    work = nullptr;  // what it captured goes before the pool counts as idle
    absl::MutexLock lock(&mutex_);
    --running_;
  }
}

}  // namespace tritonrl
