#include "verify/preflight_report.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/line_file.h"
#include "base/status.h"
#include "verify/exec_mode.h"
#include "verify/work_list.h"

namespace tritonrl {
namespace {

constexpr int kMostNameColumns = 44;

std::string TotalsText(const PreflightTotals& totals) {
  std::string text = absl::StrCat(totals.sound, " sound, ", totals.unsound, " unsound");
  if (totals.broken > 0) absl::StrAppend(&text, ", ", totals.broken, " broken");
  if (totals.not_checked > 0) absl::StrAppend(&text, ", ", totals.not_checked, " not checked");
  return text;
}

}  // namespace

PreflightTotals Count(const std::vector<TaskCheck>& checks) {
  PreflightTotals totals;
  for (const TaskCheck& check : checks) {
    switch (check.state) {
      case TaskState::kSound:
        ++totals.sound;
        break;
      case TaskState::kUnsound:
        ++totals.unsound;
        break;
      case TaskState::kBroken:
        ++totals.broken;
        break;
      case TaskState::kNotChecked:
        ++totals.not_checked;
        break;
    }
  }
  return totals;
}

absl::StatusOr<std::vector<TaskCheck>> RunPreflight(const std::vector<Task>& tasks,
                                                    DeviceBackend* backend,
                                                    const PreflightOptions& options,
                                                    const std::string& out, std::FILE* messages) {
  std::unique_ptr<LineFile> file;
  if (!out.empty()) {
    ASSIGN_OR_RETURN(file, LineFile::Create(out));
  }
  Recorder recorder(
      {.label = "preflight", .total = static_cast<int64_t>(tasks.size()), .out = messages},
      std::move(file));
  absl::Status written;
  std::vector<TaskCheck> so_far;
  PreflightOptions watched = options;
  watched.done = [&](const TaskCheck& check) {
    so_far.push_back(check);
    written.Update(recorder.Keep(TaskCheckJson(check, options.mode)));
    recorder.Show(TotalsText(Count(so_far)));
    options.done(check);
  };
  std::vector<TaskCheck> checks = CheckTasks(tasks, backend, watched);
  recorder.Finish(TotalsText(Count(so_far)));
  RETURN_IF_ERROR(written);
  return checks;
}

std::string PreflightTable(const std::vector<TaskCheck>& checks, ExecMode mode) {
  size_t columns = 4;
  for (const TaskCheck& check : checks) {
    if (check.state != TaskState::kSound) columns = std::max(columns, check.task.size());
  }
  const int width = static_cast<int>(std::min<size_t>(columns, kMostNameColumns));
  std::string text;
  for (const TaskCheck& check : checks) {
    if (check.state == TaskState::kSound) continue;
    absl::StrAppendFormat(&text, "  %-11s  %-*s  %s\n", TaskStateName(check.state), width,
                          check.task, check.reason);
  }
  absl::StrAppend(&text, checks.size(), checks.size() == 1 ? " task" : " tasks", " in the mode ",
                  ExecModeName(mode), ": ", TotalsText(Count(checks)), "\n");
  return text;
}

}  // namespace tritonrl
