// Triton's compilers for an executor on a GPU, in the sandbox of candidates: a bug in them gives
// whoever wrote the Triton IR no more than a candidate's process has.
#ifndef TRITONRL_EXEC_EXECUTOR_CONFINED_COMPILERS_H_
#define TRITONRL_EXEC_EXECUTOR_CONFINED_COMPILERS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "exec/device/cuda/compile_workers.h"
#include "exec/sandbox/sandbox.h"

namespace tritonrl::executor {

struct ConfinedCompilersOptions {
  int count = 1;
  SandboxKind sandbox = SandboxKind::kBubblewrap;
  // The Python module that compiles, and its folder; "": that of the program's runfiles.
  std::string runner = "compile_worker";
  std::string folder;
};

// Starts `count` workers (exec/workers) that have imported Triton. Each forks a process for each
// request, which ends with all that it started: nothing of one kernel is there for the next. That
// process has the files, system calls and namespaces of a candidate, without a GPU, and limits of
// its own. A request needs no system call that ConfineForGood takes away. The workers end with the
// calling thread.
//
// FailedPrecondition: this host cannot confine candidates by `sandbox`. InvalidArgument: Python or
// its packages are closed to the user of candidates. NotFound: there is no Python. Unavailable: a
// worker does not start, and why.
absl::StatusOr<std::vector<std::unique_ptr<device::CompileProcess>>> StartConfinedCompilers(
    const ConfinedCompilersOptions& options);

}  // namespace tritonrl::executor

#endif  // TRITONRL_EXEC_EXECUTOR_CONFINED_COMPILERS_H_
