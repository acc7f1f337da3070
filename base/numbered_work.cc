#include "base/numbered_work.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <new>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/thread_pool.h"

namespace tritonrl {
namespace {

class Numbers {
 public:
  Numbers(int64_t count, const std::function<absl::Status(int, int64_t)>& work)
      : count_(count), work_(work) {}

  void Take(int thread) {
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

absl::Status ForEachNumber(int threads, int64_t count,
                           const std::function<absl::Status(int, int64_t)>& work) {
  Numbers numbers(count, work);
  threads = static_cast<int>(std::min<int64_t>(threads, count));
  if (threads <= 1) {
    numbers.Take(0);
  } else {
    ThreadPool pool(threads);
    for (int i = 0; i < threads; ++i) pool.Schedule([&numbers, i] { numbers.Take(i); });
  }
  return numbers.status();
}

}  // namespace tritonrl
