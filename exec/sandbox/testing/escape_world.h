// What stands outside the sandbox and must be the same after an attempt as before it.
#ifndef TRITONRL_EXEC_SANDBOX_TESTING_ESCAPE_WORLD_H_
#define TRITONRL_EXEC_SANDBOX_TESTING_ESCAPE_WORLD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/subprocess.h"
#include "exec/sandbox/testing/listeners.h"

namespace tritonrl {

// Bait (a secret in a file, in our environment and in our session's key ring; listening sockets; a
// process of the candidates' own user; a folder open to all) and a record of the machine's state.
class EscapeWorld {
 public:
  // Before the pool starts: workers inherit keys and environment from here.
  static absl::StatusOr<std::unique_ptr<EscapeWorld>> Create();
  ~EscapeWorld();
  EscapeWorld(const EscapeWorld&) = delete;
  EscapeWorld& operator=(const EscapeWorld&) = delete;

  // Once the workers are ready: what "the same" is from now on.
  void Remember();
  // Each difference since Remember in one sentence; empty when there is none.
  std::vector<std::string> Changes();

  // True when `text` holds the secret that only the bait knows.
  bool Tells(const std::string& text) const;
  // A line of text with the secret, for more bait.
  const std::string& secret() const { return secret_; }
  // What attempts are told: paths, ports, numbers; as a literal that is JSON and Python.
  std::string Parameters() const;

 private:
  // Name of a fact and its value as text.
  using Facts = std::map<std::string, std::string>;

  EscapeWorld() = default;
  absl::Status LayOutFiles();
  absl::Status StartSentinel();
  void AddKey();
  Facts Look() const;
  void LookAtFiles(Facts* facts) const;
  void LookAtProcesses(Facts* facts) const;
  void LookAtSystem(Facts* facts) const;
  // Lines of the kernel's log since the last call that an attempt would leave.
  std::vector<std::string> NewKernelLines();

  std::string secret_;
  std::string mark_;  // in the name of all that attempts leave
  std::string folder_;
  std::string site_packages_;
  std::string secret_handle_;
  int64_t ipc_key_ = 0;
  int64_t key_number_ = 0;
  int kernel_log_ = -1;
  char memory_[64] = "untouched";
  Listeners listeners_;
  std::optional<Subprocess> sentinel_;
  Facts before_;
  int64_t clock_before_ = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_SANDBOX_TESTING_ESCAPE_WORLD_H_
