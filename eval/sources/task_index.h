// Finds tasks by the names and numbers that files of generations use.
#ifndef TRITONRL_EVAL_SOURCES_TASK_INDEX_H_
#define TRITONRL_EVAL_SOURCES_TASK_INDEX_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tasks/loader.h"

namespace tritonrl {

// The number of a KernelBench problem by its task's id: the digits at the start of the file's name
// ("level1/12_Matmul": 12); 0 if there are none, or if something but "_" follows.
int ProblemNumber(absl::string_view task_id);

// N of the innermost folder "levelN" in a task's id; 0 if there is none.
int LevelInId(absl::string_view task_id);

class TaskIndex {
 public:
  // `tasks` must outlive this object.
  explicit TaskIndex(absl::Span<const Task> tasks);

  bool HasLevel(int level) const { return levels_.count(level) > 0; }

  // The position of a task among `tasks`. NotFound names the nearest task.
  absl::StatusOr<int> ByName(const std::string& name) const;
  // The same by level and number of a problem. InvalidArgument: several tasks have these numbers,
  // e.g. variants of one problem.
  absl::StatusOr<int> ByNumber(int level, int problem) const;

 private:
  const absl::Span<const Task> tasks_;
  std::map<std::string, int> names_;
  std::map<std::pair<int, int>, std::vector<int>> numbers_;
  std::set<int> levels_;
};

}  // namespace tritonrl

#endif  // TRITONRL_EVAL_SOURCES_TASK_INDEX_H_
