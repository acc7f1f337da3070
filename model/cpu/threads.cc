#include "model/cpu/threads.h"

#include <immintrin.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace tritonrl {
namespace {

// Loops follow each other within microseconds, so a short spin saves the wake-up. A long spin would
// take the core from the verification workers.
constexpr int kSpins = 2000;

thread_local bool inside_loop = false;

struct ScratchMemory {
  ~ScratchMemory() { std::free(data); }
  float* data = nullptr;
  int64_t size = 0;
};

}  // namespace

CpuThreads::CpuThreads(int count) {
  if (count <= 0) count = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  for (int i = 1; i < count; ++i) workers_.emplace_back([this] { WorkerLoop(); });
}

CpuThreads::~CpuThreads() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    ++generation_;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

float* CpuThreads::Scratch(int64_t floats) {
  static thread_local ScratchMemory scratch;
  if (scratch.size < floats) {
    std::free(scratch.data);
    scratch.size = (floats + 1023) / 1024 * 1024;
    scratch.data = static_cast<float*>(std::aligned_alloc(64, scratch.size * sizeof(float)));
    if (scratch.data == nullptr) throw std::bad_alloc();
  }
  return scratch.data;
}

void CpuThreads::RunTasks(absl::FunctionRef<void(int64_t)> body, int64_t n) {
  inside_loop = true;
  for (int64_t i = next_task_.fetch_add(1); i < n; i = next_task_.fetch_add(1)) body(i);
  inside_loop = false;
}

void CpuThreads::ParallelFor(int64_t n, absl::FunctionRef<void(int64_t)> body) {
  std::unique_lock<std::mutex> loop(loop_mutex_, std::defer_lock);
  if (n <= 1 || workers_.empty() || inside_loop || !loop.try_lock()) {
    for (int64_t i = 0; i < n; ++i) body(i);
    return;
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    body_ = &body;
    num_tasks_ = n;
    next_task_ = 0;
    ++generation_;
  }
  wake_.notify_all();
  RunTasks(body, n);
  {
    // The caller does not wait for workers that have not woken up yet: they find no body and sleep
    // again.
    std::lock_guard<std::mutex> lock(mutex_);
    body_ = nullptr;
  }
  for (int spin = 0; spin < kSpins && busy_workers_.load() > 0; ++spin) _mm_pause();
  if (busy_workers_.load() > 0) {
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [this] { return busy_workers_.load() == 0; });
  }
}

void CpuThreads::WorkerLoop() {
  uint64_t seen = 0;
  while (true) {
    for (int spin = 0; spin < kSpins && generation_.load() == seen; ++spin) _mm_pause();
    const absl::FunctionRef<void(int64_t)>* body = nullptr;
    int64_t n = 0;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      wake_.wait(lock, [&] { return generation_.load() != seen; });
      seen = generation_.load();
      if (stop_) return;
      if (body_ == nullptr) continue;
      body = body_;
      n = num_tasks_;
      ++busy_workers_;
    }
    RunTasks(*body, n);
    if (busy_workers_.fetch_sub(1) == 1) {
      // The lock ensures that the caller either sees 0 or is already waiting.
      std::lock_guard<std::mutex> lock(mutex_);
      done_.notify_one();
    }
  }
}

}  // namespace tritonrl
