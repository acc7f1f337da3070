// A small thread pool for short parallel loops.

#ifndef TRITONRL_MODEL_CPU_THREADS_H_
#define TRITONRL_MODEL_CPU_THREADS_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"

namespace tritonrl {

class CpuThreads {
 public:
  // `count` threads, including the caller, run a loop; 0 means all hardware threads.
  explicit CpuThreads(int count);
  ~CpuThreads();
  CpuThreads(const CpuThreads&) = delete;
  CpuThreads& operator=(const CpuThreads&) = delete;

  int count() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(i) for each i in [0, n), in any order and on any thread, and returns when all calls
  // have returned. Bodies must not throw. Each writes to its own memory, so that results do not
  // depend on the number of threads. A loop started inside a body, or while another thread's loop
  // runs, runs on its calling thread alone.
  void ParallelFor(int64_t n, absl::FunctionRef<void(int64_t)> body);

  // Returns 64-byte aligned scratch memory of the calling thread for at least `floats` floats, with
  // undefined content. It is valid until the next call on the same thread. Throws std::bad_alloc.
  static float* Scratch(int64_t floats);

 private:
  void WorkerLoop();
  void RunTasks(absl::FunctionRef<void(int64_t)> body, int64_t n);

  std::vector<std::thread> workers_;
  std::mutex loop_mutex_;  // held by the loop that uses the workers

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  std::atomic<uint64_t> generation_{0};  // number of loops so far; a change wakes the workers
  std::atomic<bool> stop_{false};
  const absl::FunctionRef<void(int64_t)>* body_ = nullptr;
  int64_t num_tasks_ = 0;
  std::atomic<int64_t> next_task_{0};
  std::atomic<int> busy_workers_{0};
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CPU_THREADS_H_
