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
  std::string how;  // by what, or what is missing
};

// Starts one worker as a pool of that kind and device ("interpreter" or "cuda") would, and runs a
// job in it that reports its surroundings instead of a kernel (no torch; about half a second).
// FailedPrecondition when candidates cannot be confined that way here.
absl::StatusOr<std::vector<ConfinementCheck>> ProbeConfinement(SandboxKind kind,
                                                               const std::string& device);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_HOST_CHECK_CONFINEMENT_PROBE_H_
