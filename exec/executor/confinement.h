// What an executor's process gives up before it sees a candidate's first byte.
#ifndef TRITONRL_EXEC_EXECUTOR_CONFINEMENT_H_
#define TRITONRL_EXEC_EXECUTOR_CONFINEMENT_H_

#include "absl/status/status.h"

namespace tritonrl::executor {

// At the start: few descriptors, no core dump, no debugger, no new privileges; Linux ends this
// process first if memory runs out.
absl::Status ConfineEarly();

// Once all libraries are loaded and used, for all threads: drops capabilities, and leaves only the
// system calls of a program that computes and talks through the descriptors that it has. Opening a
// file, making a socket or a process, and signals to others fail with EPERM. Does nothing under a
// sanitizer, whose runtime needs files. FailedPrecondition: this kernel has no seccomp.
absl::Status ConfineForGood();

}  // namespace tritonrl::executor

#endif  // TRITONRL_EXEC_EXECUTOR_CONFINEMENT_H_
