// Checks tasks and their variants in the sandbox, and keeps the findings in a journal.
#ifndef TRITONRL_TOOLS_AUGMENT_INPUTS_FAMILY_CHECKER_H_
#define TRITONRL_TOOLS_AUGMENT_INPUTS_FAMILY_CHECKER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/augment_inputs/family.h"
#include "tools/task_check/findings_journal.h"
#include "tools/task_check/task_checker.h"

namespace tritonrl {

// Thread-safe for different families.
class FamilyChecker {
 public:
  // `journal`: file of the findings; nothing in it is run again. Errors: those of TaskChecker and
  // FindingsJournal.
  static absl::StatusOr<std::unique_ptr<FamilyChecker>> Start(const TaskCheckerOptions& options,
                                                              const std::string& journal);

  // Checks the task itself in the first call. Makes variants of its proposals until `wanted` are
  // kept, and drops the other proposals. Cancelled if `stop` returns true before a run. Other
  // errors: the journal's; InvalidArgument for a task without get_inputs().
  absl::Status Check(int wanted, const std::function<bool()>& stop, Family* family);

  int workers() const { return checker_->workers(); }

 private:
  FamilyChecker() = default;
  absl::Status CheckOriginal(Family* family);
  // The finding for `key` from the journal, else that of `run`.
  absl::StatusOr<TaskFinding> Find(const std::string& key,
                                   absl::FunctionRef<absl::StatusOr<TaskFinding>()> run);
  std::string KeyOf(const std::string& what, const std::string& source) const;

  std::unique_ptr<TaskChecker> checker_;
  std::unique_ptr<FindingsJournal> journal_;
  std::string version_;  // of the checker
};

}  // namespace tritonrl

#endif  // TRITONRL_TOOLS_AUGMENT_INPUTS_FAMILY_CHECKER_H_
