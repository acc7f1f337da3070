// An executor's process: executor_pool.h starts it. Not for people.
#ifndef TRITONRL_EXEC_EXECUTOR_EXECUTOR_PROGRAM_H_
#define TRITONRL_EXEC_EXECUTOR_EXECUTOR_PROGRAM_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "exec/executor/confinement.h"
#include "exec/executor/executor_server.h"

namespace tritonrl::executor {

// Where the process runs kernels: memory of candidates, and what makes kernels of their Triton IR.
class Machine {
 public:
  virtual ~Machine() = default;

  // Does once what loads libraries, reads files, makes a device's memory or starts threads when it
  // is done for the first time. The process is not confined yet.
  virtual absl::Status WarmUp() = 0;
  // How candidates are served; refers to this.
  virtual ServedDevice Served() = 0;
};
using MakeMachine = std::function<absl::StatusOr<std::unique_ptr<Machine>>()>;

// Starts two threads as LibTorch does, and ends one. For WarmUp.
void WarmUpThreads();

// The whole program. Does not return: it ends when whoever started it is gone, or with an answer
// that says what is wrong.
[[noreturn]] void RunExecutorProgram(int argc, char** argv, DeviceKind device,
                                     const MakeMachine& make);

}  // namespace tritonrl::executor

#endif  // TRITONRL_EXEC_EXECUTOR_EXECUTOR_PROGRAM_H_
