#include "verify/preflight_report.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/progress.h"
#include "base/status.h"
#include "verify/exec_mode.h"

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
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(nullptr, &std::fclose);
  if (!out.empty()) {
    RETURN_IF_ERROR(CreateDirectories(DirName(out)));
    file.reset(std::fopen(out.c_str(), "w"));
    if (file == nullptr) {
      return absl::UnavailableError(absl::StrCat(out, " cannot be opened for writing"));
    }
  }
  bool written = true;
  std::vector<TaskCheck> so_far;
  ProgressOptions progress_options;
  progress_options.label = "preflight";
  progress_options.total = static_cast<int64_t>(tasks.size());
  progress_options.out = messages;
  Progress progress(progress_options);
  PreflightOptions watched = options;
  watched.done = [&](const TaskCheck& check) {
    so_far.push_back(check);
    if (file != nullptr) {
      const std::string line = TaskCheckJson(check, options.mode) + "\n";
      written = written && std::fwrite(line.data(), 1, line.size(), file.get()) == line.size() &&
                std::fflush(file.get()) == 0;
    }
    if (so_far.size() < tasks.size()) {
      progress.Tick(static_cast<int64_t>(so_far.size()), TotalsText(Count(so_far)));
    }
    options.done(check);
  };
  std::vector<TaskCheck> checks = CheckTasks(tasks, backend, watched);
  progress.Line(static_cast<int64_t>(so_far.size()), TotalsText(Count(so_far)));
  if (!written) return absl::UnavailableError(absl::StrCat(out, " cannot be written: disk full?"));
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
