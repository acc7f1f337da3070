// Executors as processes that live on from candidate to candidate.
#ifndef TRITONRL_EXEC_EXECUTOR_EXECUTOR_POOL_H_
#define TRITONRL_EXEC_EXECUTOR_EXECUTOR_POOL_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "exec/executor/executor.h"
#include "exec/executor/executor_process.h"

namespace tritonrl {

struct ExecutorPoolOptions {
  int count = 1;  // candidates at once
  executor::ProcessOptions process;
  // After so many candidates, or with so much memory after one, a process is replaced.
  int max_candidates = 500;
  int64_t max_resident_bytes = int64_t{2} << 30;
};

struct ExecutorPoolCounts {
  int64_t started = 0;
  int64_t lost = 0;  // ended by themselves, sent nonsense, or killed as they were late
  // After their share of candidates, for their memory, or as a kernel broke the GPU's context.
  int64_t replaced = 0;
};

// Thread-safe. Sessions must not outlive it.
class ExecutorPool : public Executors {
 public:
  // Starts the processes, and returns when the first is ready. InvalidArgument: a number below 1,
  // or more than 256 executors; else the error of the first one that does not start.
  static absl::StatusOr<std::unique_ptr<ExecutorPool>> Create(const ExecutorPoolOptions& options);
  ~ExecutorPool() override;

  absl::StatusOr<std::unique_ptr<ExecutorSession>> Acquire(absl::Time deadline) override;
  int threads() const override { return options_.process.threads; }
  std::optional<device::DeviceDescription> gpu() const override;

  ExecutorPoolCounts counts() const;
  // The processes that serve a candidate now. For tests.
  std::vector<pid_t> busy() const;

 private:
  friend class ProcessSession;
  struct Member {
    std::unique_ptr<executor::ExecutorProcess> process;
    int candidates = 0;
    bool worn = false;  // it says that it can serve no other
  };

  explicit ExecutorPool(const ExecutorPoolOptions& options) : options_(options) {}
  // Keeps `count` processes alive.
  void Start();
  void Return(Member member);

  const ExecutorPoolOptions options_;
  std::vector<std::thread> starters_;
  mutable absl::Mutex mutex_;
  std::vector<Member> free_ ABSL_GUARDED_BY(mutex_);
  std::vector<pid_t> busy_ ABSL_GUARDED_BY(mutex_);
  int live_ ABSL_GUARDED_BY(mutex_) = 0;              // and those being started
  absl::Status start_error_ ABSL_GUARDED_BY(mutex_);  // of the last start
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<device::DeviceDescription> gpu_ ABSL_GUARDED_BY(mutex_);
  ExecutorPoolCounts counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_EXECUTOR_EXECUTOR_POOL_H_
