// The //verify:verify command: its options, their validation, and running it.
#ifndef TRITONRL_VERIFY_CLI_VERIFY_COMMAND_H_
#define TRITONRL_VERIFY_CLI_VERIFY_COMMAND_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "exec/device_backend.h"
#include "tasks/loader.h"
#include "verify/judge/judge.h"
#include "verify/pipeline/verifier.h"

namespace tritonrl {

// Each member is the flag of the same name in verify_main.cc, which says what it means.
struct VerifyCommand {
  // What: one pair, many cases, or tasks themselves.
  std::string reference, candidate;
  std::string in, out;
  bool preflight = false;
  std::string tasks;
  std::string html;
  bool json = false;
  // Where.
  std::string backend, sandbox, device_model;
  std::string servers, token_file;
  int workers = 0;
  double time_limit = 0, memory_gb = 0;
  // How.
  uint64_t seed = 0;
  int trials = 5;
  double tolerance = 0;
  std::string mode;
  bool functionality = true, ablation = true, gpu_profile = true, timing = true;
  std::string judge_url, judge_model, judge_key_variable, judge_cache;
  int judge_parallel = 1;
};

// InvalidArgument: one sentence that names the flag at fault.
absl::Status ValidateCommand(const VerifyCommand& command);

// The inputs of the command. They are read before workers start, so that mistakes show first.
struct CommandInputs {
  std::string reference, candidate;  // of one pair
  std::vector<Task> tasks;           // of a preflight
};
// Errors name the flag and the file. Tasks that cannot be read are named on stderr.
absl::StatusOr<CommandInputs> ReadCommandInputs(const VerifyCommand& command);

// Null when no judge is asked for.
absl::StatusOr<std::unique_ptr<Judge>> MakeCommandJudge(const VerifyCommand& command);

// Connects to servers or starts workers here. InvalidArgument, Unauthenticated, PermissionDenied or
// NotFound for a mistake in the command.
absl::StatusOr<std::unique_ptr<DeviceBackend>> StartCommandBackend(const VerifyCommand& command);

VerifierOptions MakeVerifierOptions(const VerifyCommand& command, const DeviceBackend& backend);

// Exit codes of the program. verify_main.cc gives their meaning for a pair, a batch, a preflight.
constexpr int kExitCorrect = 0, kExitCandidateFailed = 1, kExitUserError = 2, kExitInfraError = 3;

// Validates the command, reads its inputs, starts judge and workers, and prints the results:
// verdicts on stdout, progress and one sentence for a mistake on stderr. Returns the exit code.
int RunCommand(const VerifyCommand& command);

// Prints the sentence of a mistake in the command.
int ReportCommandError(const absl::Status& status);

// Sets the flags of a command line: --name=value, --name value, --name and --noname. Absl's own
// parser ends the process with code 1 on a wrong flag, which can mean "the candidate failed".
// InvalidArgument: one sentence that names the flag.
absl::Status ParseFlags(int argc, char** argv);

// A line for each flag that the source file defines, by name: what it means and its default.
std::string FlagsHelp(absl::string_view source_file);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_CLI_VERIFY_COMMAND_H_
