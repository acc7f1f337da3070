// Preflight for a person: progress while it runs, a table, a JSONL file.
#ifndef TRITONRL_VERIFY_PREFLIGHT_REPORT_H_
#define TRITONRL_VERIFY_PREFLIGHT_REPORT_H_

#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "verify/preflight.h"

namespace tritonrl {

struct PreflightTotals {
  int sound = 0, unsound = 0, broken = 0, not_checked = 0;
};
PreflightTotals Count(const std::vector<TaskCheck>& checks);

// Checks all tasks with progress on `messages` and, if `out` is not empty, a line of JSON for each
// task in it, written as tasks end. Errors are those of the file.
absl::StatusOr<std::vector<TaskCheck>> RunPreflight(const std::vector<Task>& tasks,
                                                    DeviceBackend* backend,
                                                    const PreflightOptions& options,
                                                    const std::string& out,
                                                    std::FILE* messages = stderr);

// One line for each task that is not sound (its state, name and reason) and the totals.
std::string PreflightTable(const std::vector<TaskCheck>& checks, ExecMode mode);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_PREFLIGHT_REPORT_H_
