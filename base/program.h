// The start of every program (usage, version, log, flags) and the signals that stop it.
#ifndef TRITONRL_BASE_PROGRAM_H_
#define TRITONRL_BASE_PROGRAM_H_

#include <signal.h>

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tritonrl {

// The version in the file VERSION at the top of the repository, e.g. "0.1.0".
std::string Version();

// main() calls it first. Sets the text of --help (`usage`) and of --version, parses the flags and
// sets up the log from --log_level and --log_format (base/log.h). Returns the program's name and
// the arguments that are not flags. It exits with code 1 and one sentence after an unknown flag or
// a bad value, and with code 0 after --help and --version.
std::vector<char*> StartProgram(const std::string& usage, int argc, char** argv);

// For a program that parses its flags itself: the line of --version, and the set-up of the log from
// --log_level and --log_format, InvalidArgument if one has a bad value.
std::string VersionLine();
absl::Status SetUpLogFromFlags();

// Records signals instead of letting them end the process. Its destructor restores the default
// actions. At most one object may exist in a process.
class SignalHandler {
 public:
  // Records SIGINT and SIGTERM; a repeated SIGINT or a repeated SIGTERM ends the process.
  SignalHandler() : SignalHandler({SIGINT, SIGTERM}, {}) {}
  // Records all signals of both lists. A signal of `ends_if_repeated` ends the process when it
  // arrives a second time; a signal of `repeatable` is recorded each time.
  SignalHandler(std::vector<int> ends_if_repeated, std::vector<int> repeatable);
  ~SignalHandler();
  SignalHandler(const SignalHandler&) = delete;
  SignalHandler& operator=(const SignalHandler&) = delete;

  // The last recorded signal, or 0.
  int received() const;
  bool requested() const { return received() != 0; }

 private:
  const std::vector<int> ends_if_repeated_, repeatable_;
};

}  // namespace tritonrl

#endif  // TRITONRL_BASE_PROGRAM_H_
