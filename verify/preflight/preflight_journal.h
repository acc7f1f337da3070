// The preflight with a file of results, so that no task is checked twice by the same rules.
#ifndef TRITONRL_VERIFY_PREFLIGHT_PREFLIGHT_JOURNAL_H_
#define TRITONRL_VERIFY_PREFLIGHT_PREFLIGHT_JOURNAL_H_

#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/jsonl.h"
#include "tasks/loader.h"
#include "verify/preflight/preflight.h"

namespace tritonrl {

class DeviceBackend;

// One line of all settings on which the check of a task depends besides its source.
std::string PreflightRules(const PreflightOptions& options, const std::string& backend);

// The results of earlier checks by task source and rules, and the file that holds them. A task
// that could not be checked is not kept. Not thread-safe.
class PreflightJournal {
 public:
  // Reads the file if it exists. Results by other rules stay in it; a line that is not a result is
  // removed. Errors are those of the file.
  static absl::StatusOr<std::unique_ptr<PreflightJournal>> Open(const std::string& path,
                                                                const std::string& rules);

  // The stored check of a task with this source, under the name of `task`.
  std::optional<TaskCheck> Find(const Task& task) const;

  // Appends a check unless its state is kNotChecked. Errors are those of the file.
  absl::Status Add(const Task& task, const TaskCheck& check);

 private:
  explicit PreflightJournal(std::string rules) : rules_(std::move(rules)) {}
  std::string KeyOf(const Task& task) const;

  const std::string rules_;
  std::unique_ptr<JsonlJournal> file_;
  std::map<std::string, TaskCheck> checks_;  // by KeyOf
};

// As RunPreflight, but takes the checks that the file `journal` holds from there, and appends each
// new check to the file when it ends. An empty path: no file.
absl::StatusOr<std::vector<TaskCheck>> RunPreflightWithJournal(const std::vector<Task>& tasks,
                                                               DeviceBackend* backend,
                                                               const PreflightOptions& options,
                                                               const std::string& journal,
                                                               std::FILE* messages = stderr);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_PREFLIGHT_PREFLIGHT_JOURNAL_H_
