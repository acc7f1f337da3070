// The command //verify:verify: its options, their validation and its execution.
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
#include "verify/cli/case_reader.h"
#include "verify/judge/judge.h"
#include "verify/pipeline/verifier.h"

namespace tritonrl {

// The command line. Each member is a flag of the same name, described in verify_main.cc.
struct VerifyCommand {
  // The input: one pair, many cases, or the tasks of a preflight.
  std::string reference, candidate;
  std::string in, out;
  std::string response_style = "auto", code_block = "auto";  // of responses in `in`
  bool preflight = false;
  std::string tasks;
  std::string html;
  bool json = false;
  // The backend.
  std::string backend, sandbox, device_model;
  std::string servers, token_file;
  int workers = 0;
  double time_limit = 0, memory_gb = 0;
  // The settings of the verifier.
  uint64_t seed = 0;
  int trials = 5;
  double tolerance = 0;
  std::string rules;
  bool functionality = true, ablation = true, timing = true;
  std::string judge_url, judge_model, judge_key_variable, judge_cache;
  int judge_parallel = 1;
};

// InvalidArgument, with one sentence that names the flag, if the flags are wrong.
absl::Status ValidateCommand(const VerifyCommand& command);

// The inputs of the command, read before workers start so that mistakes are reported at once.
struct CommandInputs {
  std::string reference, candidate;  // of one pair
  CaseOptions cases;                 // of many cases
  std::vector<Task> tasks;           // of a preflight
};
// Errors name the flag and the file. Invalid tasks are left out and named on stderr.
absl::StatusOr<CommandInputs> ReadCommandInputs(const VerifyCommand& command);

// Returns null if --judge_url is empty.
absl::StatusOr<std::unique_ptr<Judge>> MakeCommandJudge(const VerifyCommand& command);

// Connects to servers, or starts workers on this machine. InvalidArgument, Unauthenticated,
// PermissionDenied or NotFound for a mistake in the command.
absl::StatusOr<std::unique_ptr<DeviceBackend>> StartCommandBackend(const VerifyCommand& command);

VerifierOptions MakeVerifierOptions(const VerifyCommand& command, const DeviceBackend& backend);

// Exit codes of the program; verify_main.cc describes them for a pair, a batch and a preflight.
constexpr int kExitCorrect = 0, kExitCandidateFailed = 1, kExitUserError = 2, kExitInfraError = 3;

// Validates the command, reads its inputs, starts judge and backend, and prints the results:
// verdicts on stdout, progress and one sentence about a mistake on stderr. Returns the exit code.
int RunCommand(const VerifyCommand& command);

// Prints the message of a mistake in the command on stderr; returns kExitUserError.
int ReportCommandError(const absl::Status& status);

// Sets the flags of a command line: --name=value, --name value, --name and --noname. Abseil's
// parser is not used because it exits with code 1 after a wrong flag, which here means that the
// candidate failed. InvalidArgument with one sentence that names the flag.
absl::Status ParseFlags(int argc, char** argv);

// Returns a line for each flag that the source file defines, sorted by name: help and default.
std::string FlagsHelp(absl::string_view source_file);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_CLI_VERIFY_COMMAND_H_
