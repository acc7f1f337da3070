// Checks many cases and writes a line for each, in the order of the input.
#ifndef TRITONRL_VERIFY_BATCH_H_
#define TRITONRL_VERIFY_BATCH_H_

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "verify/batch_file.h"
#include "verify/verifier.h"

namespace tritonrl {

struct BatchOptions {
  std::string in;   // JSONL file or folder, see cases.h
  std::string out;  // JSONL file, see batch_file.h; what it already holds is not checked again
  // Cases in memory at the same time: being checked, or waiting for a slower one before them.
  int window = 64;
  std::FILE* messages = stderr;  // progress, and a sentence for each broken line
  std::function<bool()> stop = [] { return false; };  // asked often; true ends the batch early
};

struct BatchSummary {
  BatchTotals totals;     // of the whole output file
  int64_t cases = 0;      // in the input
  int64_t checked = 0;    // lines written by this run
  int64_t was_there = 0;  // lines of this input that an earlier run had written
  bool interrupted = false;
};

// The verdict of a case is written as soon as those of all cases before it are. When `stop` says
// so, no case is begun any more; those that run are finished and written (with gaps where earlier
// ones had not begun), and the next run with the same arguments checks what is missing.
// Closes the verifier in that case. Errors are those of the files.
absl::StatusOr<BatchSummary> RunBatch(const BatchOptions& options, Verifier* verifier);

// The summary as a few lines of text: how many of each layer and outcome.
std::string SummaryText(const BatchSummary& summary);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_BATCH_H_
