// A few threads that share out short loops.

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
  // `count` threads take part in a loop, the caller among them; 0 means all hardware threads.
  explicit CpuThreads(int count);
  ~CpuThreads();
  CpuThreads(const CpuThreads&) = delete;
  CpuThreads& operator=(const CpuThreads&) = delete;

  int count() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(i) for each i in [0, n), in any order and on any thread, and returns when all are
  // done. Bodies must not throw, and write to places of their own so that results do not depend on
  // the number of threads. Inside a body, and while another thread's loop runs here, a loop runs
  // on its calling thread alone.
  void ParallelFor(int64_t n, absl::FunctionRef<void(int64_t)> body);

  // The calling thread's scratch memory, 64-byte aligned, at least `floats` long; the next call on
  // the same thread may move it. Contents are undefined.
  static float* Scratch(int64_t floats);

 private:
  void WorkerLoop();
  void RunTasks(absl::FunctionRef<void(int64_t)> body, int64_t n);

  std::vector<std::thread> workers_;
  std::mutex loop_mutex_;  // held by the one loop that uses the workers

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  std::atomic<uint64_t> generation_{0};  // counts loops; a change wakes the workers
  std::atomic<bool> stop_{false};
  const absl::FunctionRef<void(int64_t)>* body_ = nullptr;
  int64_t num_tasks_ = 0;
  std::atomic<int64_t> next_task_{0};
  std::atomic<int> busy_workers_{0};
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CPU_THREADS_H_
