#include "trainer/grpo/task_preflight.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "verify/preflight_report.h"

namespace tritonrl {
namespace {

// One line for each task: '-' (leave out) or '+' (keep), and a sentence or nothing.
std::string FindingsText(const std::vector<TaskCheck>& checks) {
  std::string text;
  for (const TaskCheck& check : checks) {
    const bool out = check.state == TaskState::kUnsound || check.state == TaskState::kBroken;
    std::string sentence;
    if (check.state != TaskState::kSound) {
      sentence = absl::StrCat(check.task, ": ", out ? "left out by the preflight, " : "",
                              TaskStateName(check.state), ": ", check.reason);
    }
    for (char& c : sentence) c = absl::ascii_iscntrl(c) ? ' ' : c;
    absl::StrAppend(&text, out ? "-" : "+", sentence, "\n");
  }
  return text;
}

}  // namespace

absl::Status LeaveOutUnsound(const Verification& verification, DataParallel* ranks,
                             PreparedTasks* tasks) {
  std::string text;
  if (ranks->is_root()) {
    std::vector<Task> sources;
    for (const PreparedTask& task : tasks->tasks) sources.push_back(task.task);
    ASSIGN_OR_RETURN(const std::vector<TaskCheck> checks,
                     RunPreflight(sources, verification.backend.get(),
                                  PreflightLike(verification.options), /*out=*/""));
    text = FindingsText(checks);
  }
  RETURN_IF_ERROR(ranks->Broadcast(&text));
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  if (lines.size() != tasks->tasks.size()) {
    return absl::InternalError("the ranks did not load the same tasks");
  }
  std::vector<PreparedTask> kept;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i][0] == '+') kept.push_back(std::move(tasks->tasks[i]));
    if (lines[i].size() > 1) tasks->problems.push_back(lines[i].substr(1));
  }
  tasks->tasks = std::move(kept);
  if (tasks->tasks.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the preflight leaves no task; the first: ", tasks->problems.back()));
  }
  return absl::OkStatus();
}

}  // namespace tritonrl
