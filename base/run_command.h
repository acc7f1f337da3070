// Runs a command until it ends and returns its output.
#ifndef TRITONRL_BASE_RUN_COMMAND_H_
#define TRITONRL_BASE_RUN_COMMAND_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tritonrl {

struct RunCommandOptions {
  absl::Duration timeout = absl::Seconds(60);
  std::string input;             // written to stdin
  size_t max_output = 16 << 20;  // bytes kept of each stream; further bytes are read and discarded
  std::vector<std::pair<std::string, std::string>> env;
  bool clear_env = false;
  std::string cwd;
};

struct CommandResult {
  int exit_code = -1;
  int signal = 0;
  std::string out;
  std::string err;
  bool timed_out = false;  // the process group was killed at the timeout
  bool truncated = false;  // a stream was longer than max_output
  bool ok() const { return exit_code == 0 && signal == 0 && !timed_out; }
};

// Waits for the command, or kills its process group at the timeout. Afterwards it kills all other
// processes of the group. The only errors are those of Subprocess::Start.
absl::StatusOr<CommandResult> RunCommand(const std::vector<std::string>& argv,
                                         const RunCommandOptions& options = {});

}  // namespace tritonrl

#endif  // TRITONRL_BASE_RUN_COMMAND_H_
