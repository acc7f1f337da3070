// Makes variants of tasks with other input shapes, by the responses of a model. Each variant that
// passes the checks becomes a task of its own.
#ifndef TRITONRL_TOOLS_AUGMENT_INPUTS_AUGMENT_H_
#define TRITONRL_TOOLS_AUGMENT_INPUTS_AUGMENT_H_

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/endpoint/client.h"
#include "tasks/loader.h"
#include "tools/augment_inputs/augment_summary.h"
#include "tools/endpoint/data_tool.h"
#include "tools/task_check/task_checker.h"

namespace tritonrl {

// Variants of one task that a run may write.
inline constexpr int kMostVariants = 10;

struct AugmentOptions {
  std::vector<Task> tasks;
  std::string prompt;  // with the placeholders {task} and {variants}
  // Of later rounds, with {task}, {variants}, {shapes}, {failed} and {limits}.
  std::string prompt_again;
  // Folder of the results, which exists:
  //   responses.jsonl   each response (base/endpoint/response_journal.h)
  //   checks.jsonl      the checks of originals and variants
  //   TASK_v1.py, ...   the variants, below the same folders as their tasks
  //   TASK.py           the original, with with_originals
  //   variants.jsonl    variant, task and input shapes
  //   left_out.jsonl    variant or task, and the reason
  //   summary.json      the figures of the table
  std::string out;
  AskSettings ask;
  int variants = 5;  // of each task, at most
  // Requests of a task, at most: one that has fewer variants after its checks is asked again.
  int rounds = 1;
  bool with_originals = false;
  TaskCheckerOptions check = {.wall_seconds = 30};
  std::function<bool()> stop = [] { return false; };
  std::FILE* messages = stderr;
};

// Asks for the responses that `out` does not hold yet, and checks originals and variants in the
// sandbox with TaskChecker. Writes the variants that pass and whose shapes differ from the
// original's and from each other's. A variant has as many inputs as the original, of the same types
// and numbers of dimensions. The original's inputs are unknown if neither it nor its get_inputs()
// alone runs within the limits; then this holds among the variants (ReasonToLeaveOut). The same
// call resumes after a stop or a kill. Errors: those of AskAll, FamilyChecker and the files;
// InvalidArgument if a task's own file would be a variant of another task.
absl::StatusOr<AugmentSummary> AugmentInputs(const AugmentOptions& options, EndpointClient* client);

}  // namespace tritonrl

#endif  // TRITONRL_TOOLS_AUGMENT_INPUTS_AUGMENT_H_
