// Keeps what references made, so that the samples of one task run theirs once.
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

class ReferenceCache {
 public:
  // Least recently used results go first once all together take more than `max_bytes`; those that
  // somebody still uses live on until he is done.
  // Results whose references have a reference process (reference_process.h) are kept `max_sessions`
  // at most, those that are being made included: room for one is made before it is.
  explicit ReferenceCache(int64_t max_bytes, int max_sessions = 0)
      : max_bytes_(max_bytes), max_sessions_(max_sessions) {}

  using Make = std::function<std::shared_ptr<const ReferenceResult>()>;

  // The result kept for `key`, or the one of `make`. Callers with the same key wait for one run of
  // it. Kept are results and faults of the task; an infrastructure error goes to the caller whose
  // run it was, and the next one tries again. Null when `deadline` passed while another one's run
  // was awaited. `cached` says whether the result was made for somebody else.
  std::shared_ptr<const ReferenceResult> Get(const std::string& key, absl::Time deadline,
                                             const Make& make, bool* cached);

  // Forgets what is kept for `key`, if it is that result.
  void Forget(const std::string& key, const std::shared_ptr<const ReferenceResult>& result);
  // Ends all reference processes that nobody uses.
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
    std::list<std::string>::iterator place;  // in recent_, once there is a result
  };

  using Dropped = std::vector<std::shared_ptr<const ReferenceResult>>;
  void Store(const std::string& key, std::shared_ptr<const ReferenceResult> result,
             Dropped* dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes out an entry that has a result.
  void Erase(const std::string& key, Dropped* dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Hosts nobody uses go, the least recently used first, until at most `most` are left; those of
  // results that are being made count.
  void DropSessions(int most, Dropped* dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t max_bytes_;
  const int max_sessions_;
  mutable absl::Mutex mutex_;
  absl::CondVar changed_;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::list<std::string> recent_ ABSL_GUARDED_BY(mutex_);  // the last used first
  Counts counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_REFERENCE_REFERENCE_CACHE_H_
