// An LRU cache of reference results, so that the samples of one task run the reference once.
#ifndef TRITONRL_EXEC_REFERENCE_REFERENCE_CACHE_H_
#define TRITONRL_EXEC_REFERENCE_REFERENCE_CACHE_H_

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "exec/reference/reference_runner.h"

namespace tritonrl {

// Thread safe.
class ReferenceCache {
 public:
  // Above `max_bytes` in total, the cache evicts the least recently used results; an evicted result
  // stays alive until its last user drops it.
  // With `max_sessions` > 0 the cache also limits the results with a reference process
  // (reference_process.h), including those being made: before a new one is made, it evicts unused
  // ones down to the limit.
  explicit ReferenceCache(int64_t max_bytes, int max_sessions = 0)
      : max_bytes_(max_bytes), max_sessions_(max_sessions) {}

  using Make = std::function<std::shared_ptr<const ReferenceResult>()>;

  // Returns the cached result of `key`, else the result of `make`. Callers with the same key wait
  // for one run of `make`. Results and failures of the task are cached. An infrastructure error is
  // not: only the caller that ran `make` gets it, and the next caller runs `make` again. Null if
  // `deadline` passes while the caller waits for another caller's run. Sets `cached` to whether the
  // result came from another caller's run.
  std::shared_ptr<const ReferenceResult> Get(const std::string& key, absl::Time deadline,
                                             const Make& make, bool* cached);

  // Evicts `result` if it is the cached result of `key`.
  void Forget(const std::string& key, const std::shared_ptr<const ReferenceResult>& result);
  // Evicts all results with a reference process that no caller uses.
  void DropIdleSessions();

  struct Counts {
    int64_t runs = 0;
    int64_t hits = 0;
    int64_t entries = 0;
    int64_t bytes = 0;
  };
  Counts counts() const;

 private:
  struct Entry {
    std::shared_ptr<const ReferenceResult> result;  // null while it is being made
    int64_t bytes = 0;
    std::list<std::string>::iterator place;  // in recent_; valid once there is a result
  };

  // Evicted results, which the caller destroys without the lock.
  using Dropped = std::vector<std::shared_ptr<const ReferenceResult>>;
  void Store(const std::string& key, std::shared_ptr<const ReferenceResult> result,
             Dropped* dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Evicts an entry that has a result.
  void Erase(const std::string& key, Dropped* dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Evicts unused results with a reference process, the least recently used first, until at most
  // `most` reference processes are left. Each result being made counts as one.
  void DropSessions(int most, Dropped* dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t max_bytes_;
  const int max_sessions_;
  mutable absl::Mutex mutex_;
  absl::CondVar changed_;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::list<std::string> recent_ ABSL_GUARDED_BY(mutex_);  // most recently used first
  Counts counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_REFERENCE_REFERENCE_CACHE_H_
