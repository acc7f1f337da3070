// The command line that confines a warm worker with bubblewrap. Bubblewrap starts after the change
// to an unprivileged user.
#ifndef TRITONRL_EXEC_SANDBOX_SANDBOX_H_
#define TRITONRL_EXEC_SANDBOX_SANDBOX_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tritonrl {

enum class SandboxKind {
  kBubblewrap,
  kNone,  // only rlimits, an unprivileged user and kills; for hosts without user namespaces
};

// Parses "bubblewrap" or "none". InvalidArgument, which lists both, for any other name.
absl::StatusOr<SandboxKind> ParseSandboxKind(const std::string& name);

// The user and group of candidates ("nobody") if the supervisor is root.
inline constexpr int kSandboxUid = 65534;

struct SandboxSpec {
  SandboxKind kind = SandboxKind::kBubblewrap;
  // Folders or files mounted read-only: (path on the host, path in the sandbox). Besides these the
  // worker sees /usr, a few files of /etc, and fresh /proc, /dev, /tmp and /dev/shm.
  std::vector<std::pair<std::string, std::string>> read_only;
  std::vector<std::string> devices;                      // device nodes mounted at the same path
  std::vector<std::pair<std::string, std::string>> env;  // the whole environment
  int64_t tmp_bytes = 256 << 20;          // size of the worker's /tmp; each job gets its own /tmp
  int64_t shm_bytes = 64 << 20;           // size of the worker's /dev/shm, likewise
  std::vector<std::string> cgroup_procs;  // cgroup.procs files that the process joins first
};

// Path of the bubblewrap program: $TRITONRL_BWRAP (a bundle's own copy), else the first bwrap in an
// absolute folder of PATH, else "".
std::string BubblewrapPath();

// The argv that runs `command` confined by `spec`. `command` uses paths inside the sandbox (kNone:
// paths of the host).
std::vector<std::string> SandboxCommand(const SandboxSpec& spec,
                                        const std::vector<std::string>& command);

// OK if this host can confine candidates by `kind`. Runs the real command line once (about 30 ms).
// FailedPrecondition, with the cause and a remedy, otherwise.
absl::Status CheckSandbox(SandboxKind kind);

// Checks that the worker can read `path`. As root, the worker runs as kSandboxUid, so every folder
// of the path must be open to other users; InvalidArgument names the first that is not. As another
// user, only the existence of `path` is checked.
absl::Status CheckReadableByAll(const std::string& path);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_SANDBOX_SANDBOX_H_
