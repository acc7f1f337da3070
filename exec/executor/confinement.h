// What an executor's process gives up before it sees a candidate's first byte.
#ifndef TRITONRL_EXEC_EXECUTOR_CONFINEMENT_H_
#define TRITONRL_EXEC_EXECUTOR_CONFINEMENT_H_

#include "absl/status/status.h"

namespace tritonrl::executor {

// What runs kernels. NVIDIA's driver works in this process: by ioctl on its descriptors, of which
// it opens some sixty when it starts.
enum class DeviceKind { kCpu, kCuda };

// At the start: few descriptors, no core dump, no debugger, no new privileges; Linux ends this
// process first if memory runs out.
absl::Status ConfineEarly(DeviceKind device);

// Once all libraries are loaded and used, for all threads: drops capabilities, and leaves only the
// system calls of a program that computes and talks through the descriptors that it has. Opening a
// file, making a socket or a process, and signals to others fail with EPERM. Does nothing under a
// sanitizer, whose runtime needs files. FailedPrecondition: this kernel has no seccomp.
//
// With a GPU ioctl is allowed too, for the driver's request numbers alone: those of other devices,
// terminals, sockets and virtual machines fail.
absl::Status ConfineForGood(DeviceKind device);

}  // namespace tritonrl::executor

#endif  // TRITONRL_EXEC_EXECUTOR_CONFINEMENT_H_
