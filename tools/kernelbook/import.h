// Imports KernelBook: reads its rows, leaves out each that gives no sound task, and writes the
// others as tasks.
#ifndef TRITONRL_TOOLS_KERNELBOOK_IMPORT_H_
#define TRITONRL_TOOLS_KERNELBOOK_IMPORT_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "tools/kernelbook/import_output.h"
#include "tools/kernelbook/near_duplicates.h"
#include "tools/task_check/task_checker.h"

namespace tritonrl {

struct ImportOptions {
  std::string in;           // file of rows (rows.h)
  std::string out;          // folder that the import owns; created
  std::string kernelbench;  // folder of KernelBench's tasks to keep out; "": none
  int64_t limit = 0;        // rows to read; 0: all
  TaskCheckerOptions check;
  double similarity =
      NearDuplicates::kThreshold;  // of near duplicates; above 1: none are looked for
  std::function<bool()> stop = [] { return false; };  // asked between tasks
};

// Runs the whole import and writes into `out`:
//   tasks/NAME.py    the tasks that are kept
//   left_out.jsonl   row, uuid, entry_point, repo_name, reason and message of each other row
//   summary.json     counts of every stage
//   journal.jsonl    what each task's run showed; an import that was killed goes on from it
//   source.json      name and hash of the file; the folder takes no import of another file
// The first three appear when the import is complete and replace those of an earlier one.
//
// A row's fate does not depend on the number of workers: of duplicates the first row is kept. Tasks
// whose worker was lost twice are left out as sandbox_error and tried again by the next import.
//
// Errors are one sentence: those of ReadKernelBook and TaskChecker::Start; FailedPrecondition while
// another import uses `out`, or if `out` holds the import of another file; ResourceExhausted if the
// disk is full; Cancelled after `stop`. After an error the journal keeps the findings so far.
absl::StatusOr<ImportSummary> ImportKernelBook(const ImportOptions& options);

}  // namespace tritonrl

#endif  // TRITONRL_TOOLS_KERNELBOOK_IMPORT_H_
