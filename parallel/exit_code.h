// How programs of several ranks end.
#ifndef TRITONRL_PARALLEL_EXIT_CODE_H_
#define TRITONRL_PARALLEL_EXIT_CODE_H_

#include "absl/status/status.h"
#include "parallel/data_parallel.h"

namespace tritonrl {

// Exit codes of the training programs.
enum ExitCode {
  kExitDone = 0,
  kExitFailed = 1,    // an error, said in one sentence on stderr
  kExitBadUsage = 2,  // a flag or the configuration
  kExitRequeue = 75,  // stopped by a signal with a checkpoint written: the same command goes on
};

// Prints "error: message" for a bad status and returns the exit code. With several ranks a failing
// one ends the job, since the others can't know.
int ExitCodeFor(const absl::Status& status, DataParallel* ranks);

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_EXIT_CODE_H_
