// Seccomp policy of a job, built with libseccomp.
#ifndef TRITONRL_EXEC_SANDBOX_SECCOMP_POLICY_H_
#define TRITONRL_EXEC_SANDBOX_SECCOMP_POLICY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tritonrl {

struct SeccompPolicyOptions {
  // socket(AF_UNIX): the CUDA driver makes one in each process. All other families are refused
  // always; socketpair is allowed always.
  bool unix_sockets = false;
};

// The filter as an array of struct sock_filter, 8 bytes each: what prctl(PR_SET_SECCOMP) takes.
// Refused calls fail with EPERM (sockets with EAFNOSUPPORT; clone3, whose flags a filter cannot
// see, and calls newer than this list with ENOSYS). A call in another ABI of the processor (32 bit,
// x32), which has other numbers, kills the process.
absl::StatusOr<std::string> BuildSeccompPolicy(const SeccompPolicyOptions& options);

// OK when this kernel takes the filter and enforces it: a child process of ours installs it and
// tries a refused call. FailedPrecondition otherwise.
absl::Status CheckSeccompPolicy();

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_SANDBOX_SECCOMP_POLICY_H_
