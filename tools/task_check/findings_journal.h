// The findings of tasks' runs, kept across programs that were stopped or killed.
#ifndef TRITONRL_TOOLS_TASK_CHECK_FINDINGS_JOURNAL_H_
#define TRITONRL_TOOLS_TASK_CHECK_FINDINGS_JOURNAL_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/jsonl.h"
#include "tools/task_check/task_checker.h"

namespace tritonrl {

// A file of findings by key. The key names the task's source, the checker and its limits: a change
// of one of them gives another key, and the task is run again. Thread-safe.
class FindingsJournal {
 public:
  // Reads the findings of `path`; a line that is not a finding is removed. FailedPrecondition while
  // another process uses the file.
  static absl::StatusOr<std::unique_ptr<FindingsJournal>> Open(const std::string& path);

  // The finding of an earlier run or Append, or null.
  const TaskFinding* Find(const std::string& key) const;
  // Keeps a finding and writes it to the file. ResourceExhausted: the disk is full.
  absl::Status Append(const std::string& key, const TaskFinding& finding);

 private:
  FindingsJournal() = default;

  mutable absl::Mutex mutex_;
  std::map<std::string, TaskFinding> findings_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<JsonlJournal> file_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tritonrl

#endif  // TRITONRL_TOOLS_TASK_CHECK_FINDINGS_JOURNAL_H_
