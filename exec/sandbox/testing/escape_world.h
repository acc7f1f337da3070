// The state of the host outside the sandbox, which no escape attempt may change.
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

// Bait and a record of the host's state. The bait: a secret in a file, in this process's
// environment and in its session key ring; listening sockets; a process of the candidates' user
// (the sentinel); a folder open to all.
class EscapeWorld {
 public:
  // Call before the pool starts: workers inherit keys and environment from this process.
  static absl::StatusOr<std::unique_ptr<EscapeWorld>> Create();
  ~EscapeWorld();
  EscapeWorld(const EscapeWorld&) = delete;
  EscapeWorld& operator=(const EscapeWorld&) = delete;

  // Records the state that Changes compares with. Call when the workers are ready.
  void Remember();
  // The differences since Remember, one sentence each.
  std::vector<std::string> Changes();

  // Whether `text` contains the secret, which only the bait holds.
  bool Tells(const std::string& text) const;
  // The secret, for more bait.
  const std::string& secret() const { return secret_; }
  // Paths, ports and numbers for the attempts, as a literal that is both JSON and Python.
  std::string Parameters() const;

 private:
  using Facts = std::map<std::string, std::string>;  // name of a fact -> its value as text

  EscapeWorld() = default;
  absl::Status LayOutFiles();
  absl::Status StartSentinel();
  void AddKey();
  Facts Look() const;
  void LookAtFiles(Facts* facts) const;
  void LookAtProcesses(Facts* facts) const;
  void LookAtSystem(Facts* facts) const;
  // Lines of the kernel log since the last call that come from an attempt.
  std::vector<std::string> NewKernelLines();

  std::string secret_;
  std::string mark_;  // in the name of every file, process and object that attempts leave behind
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
