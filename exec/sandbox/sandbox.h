// The command line that confines a warm worker: bubblewrap, started with the uid already dropped.
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
  kNone,  // rlimits, a dropped uid and killing only; for hosts without user namespaces
};

// "bubblewrap" or "none". InvalidArgument lists them.
absl::StatusOr<SandboxKind> ParseSandboxKind(const std::string& name);

// User and group that run candidates when the supervisor is root ("nobody").
inline constexpr int kSandboxUid = 65534;

struct SandboxSpec {
  SandboxKind kind = SandboxKind::kBubblewrap;
  // Folders or files shown read-only: (path here, path inside). Besides these the worker sees
  // /usr, a few files of /etc, and fresh /proc, /dev, /tmp and /dev/shm.
  std::vector<std::pair<std::string, std::string>> read_only;
  std::vector<std::string> devices;                      // device nodes shown under the same name
  std::vector<std::pair<std::string, std::string>> env;  // the whole environment
  int64_t tmp_bytes = 256 << 20;  // of the worker itself; each job gets its own
  int64_t shm_bytes = 64 << 20;
  std::vector<std::string> cgroup_procs;  // cgroup.procs files to join before anything else
};

// The bubblewrap that is used: $TRITONRL_BWRAP (a bundle's own copy), else the first bwrap on PATH
// as an absolute path, "" when there is none.
std::string BubblewrapPath();

// argv that runs `command` confined by `spec`. `command` is given in paths inside the sandbox
// (kNone: paths here).
std::vector<std::string> SandboxCommand(const SandboxSpec& spec,
                                        const std::vector<std::string>& command);

// OK when candidates can be confined this way on this machine. Runs the real command line once
// (about 30 ms). FailedPrecondition says what is missing and what to do.
absl::Status CheckSandbox(SandboxKind kind);

// InvalidArgument when a user that is not the owner cannot read `path`, naming the folder that is
// in the way: the worker runs as kSandboxUid when we are root.
absl::Status CheckReadableByAll(const std::string& path);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_SANDBOX_SANDBOX_H_
