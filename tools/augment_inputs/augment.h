// Makes variants of tasks with other input shapes, by the answers of a model. Each variant that
// runs becomes a task of its own.
#ifndef TRITONRL_TOOLS_AUGMENT_INPUTS_AUGMENT_H_
#define TRITONRL_TOOLS_AUGMENT_INPUTS_AUGMENT_H_

#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/endpoint/client.h"
#include "tasks/loader.h"
#include "tools/augment_inputs/variant_check.h"
#include "tools/endpoint/data_tool.h"

namespace tritonrl {

struct AugmentOptions {
  std::vector<Task> tasks;
  std::string prompt;  // with the placeholders {task} and {variants}
  // Folder of the results, which exists:
  //   responses.jsonl   each answer (base/endpoint/response_journal.h)
  //   checks.jsonl      the runs of originals and variants
  //   TASK_v1.py, ...   the variants, below the same folders as their tasks
  //   TASK.py           the original, with with_originals
  //   variants.jsonl    variant, task and input shapes
  //   left_out.jsonl    variant or task, and the reason
  //   summary.json      the figures of the table
  std::string out;
  AskSettings ask;
  int variants = 5;  // of each task, at most
  bool with_originals = false;
  InputCheckOptions check;
  std::function<bool()> stop = [] { return false; };
  std::FILE* messages = stderr;
};

struct AugmentSummary {
  int64_t tasks = 0;
  int64_t broken = 0;    // tasks that do not run themselves
  int64_t proposed = 0;  // variants in the answers, at most `variants` of each task
  int64_t kept = 0;
  std::map<int, int64_t> tasks_by_kept;     // number of kept variants -> tasks
  std::map<std::string, int64_t> left_out;  // reason -> variants
  int64_t failed = 0;                       // requests of this run without an answer
  EndpointCounts counts;
  bool interrupted = false;  // stopped by a signal: nothing but the journals is written
  absl::Status ended;        // the endpoint's error that ended the asking; the rest is written
};

// Asks for the answers that `out` does not hold yet, runs originals and variants in the sandbox,
// and writes the variants whose reference runs within the limits and whose shapes differ from the
// original's and from each other's. The same call goes on after a stop or a kill. Errors: those of
// AskAll, InputChecker and the files; InvalidArgument if a task's own file would be a variant of
// another task.
absl::StatusOr<AugmentSummary> AugmentInputs(const AugmentOptions& options, EndpointClient* client);

// The summary as a table for people.
std::string AugmentTable(const AugmentSummary& summary);

}  // namespace tritonrl

#endif  // TRITONRL_TOOLS_AUGMENT_INPUTS_AUGMENT_H_
