// Probes, from inside a job, which confinement mechanisms are in force on this machine.
#ifndef TRITONRL_EXEC_HOST_CHECK_CONFINEMENT_PROBE_H_
#define TRITONRL_EXEC_HOST_CHECK_CONFINEMENT_PROBE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "exec/sandbox/sandbox.h"

namespace tritonrl {

struct ConfinementCheck {
  std::string name;  // "user", "network", "system calls", ...
  bool in_force = false;
  std::string how;  // the mechanism, or the missing part
};

// Starts one worker as a pool with this sandbox and device ("cpu" or "cuda") would, and
// runs a job in it that reports its surroundings instead of running a kernel (without torch; takes
// about half a second). FailedPrecondition: this machine does not support the sandbox.
absl::StatusOr<std::vector<ConfinementCheck>> ProbeConfinement(SandboxKind kind,
                                                               const std::string& device);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_HOST_CHECK_CONFINEMENT_PROBE_H_
