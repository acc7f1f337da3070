// The seccomp filter of a job, built with libseccomp.
#ifndef TRITONRL_EXEC_SANDBOX_SECCOMP_POLICY_H_
#define TRITONRL_EXEC_SANDBOX_SECCOMP_POLICY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tritonrl {

struct SeccompPolicyOptions {
  // Allows socket(AF_UNIX): the CUDA driver makes one in each process. The filter always refuses
  // all other families, and always allows socketpair.
  bool unix_sockets = false;
};

// The filter for prctl(PR_SET_SECCOMP): an array of struct sock_filter, 8 bytes each. Refused calls
// fail with EPERM, socket with EAFNOSUPPORT. clone3, whose flags a filter cannot read, and calls
// newer than Linux 6.13 fail with ENOSYS. A call through another ABI of the processor (32 bit,
// x32), which has other call numbers, kills the process. Internal if libseccomp makes no filter.
absl::StatusOr<std::string> BuildSeccompPolicy(const SeccompPolicyOptions& options);

// OK if this kernel accepts and enforces the filter: a forked child installs it and tries a refused
// call. FailedPrecondition otherwise.
absl::Status CheckSeccompPolicy();

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_SANDBOX_SECCOMP_POLICY_H_
