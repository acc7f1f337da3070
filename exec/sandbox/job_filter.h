// The system calls that a job may not make: a seccomp filter, built with libseccomp.
#ifndef TRITONRL_EXEC_SANDBOX_JOB_FILTER_H_
#define TRITONRL_EXEC_SANDBOX_JOB_FILTER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tritonrl {

struct JobFilterOptions {
  // socket(AF_UNIX): the CUDA driver makes one in each process. All other families are refused
  // always; socketpair is allowed always.
  bool unix_sockets = false;
};

// The filter as an array of struct sock_filter, 8 bytes each: what prctl(PR_SET_SECCOMP) takes.
// Refused calls fail with EPERM (sockets with EAFNOSUPPORT; clone3, whose flags a filter cannot
// see, and calls newer than this list with ENOSYS). A call in another ABI of the processor (32 bit,
// x32), which has other numbers, kills the process.
absl::StatusOr<std::string> JobFilter(const JobFilterOptions& options);

// OK when this kernel takes the filter and enforces it: a child process of ours installs it and
// tries a refused call. FailedPrecondition otherwise.
absl::Status CheckJobFilter();

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_SANDBOX_JOB_FILTER_H_
