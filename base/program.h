#ifndef TRITONRL_BASE_PROGRAM_H_
#define TRITONRL_BASE_PROGRAM_H_

#include <signal.h>

#include <string>
#include <vector>

// The start of every program (usage, version, log, flags) and the signals that stop it.

namespace tritonrl {

// The version in the file VERSION at the top of the repository, e.g. "0.1.0".
std::string Version();

// Call first in main(). Sets the text of --help (`usage`) and of --version, reads the flags and
// sets up the log from --log_level and --log_format (base/log.h). Returns the program's name and
// the arguments that are not flags. Ends the process: exit code 1 and one sentence for an unknown
// flag or a bad value, 0 after --help and --version.
std::vector<char*> StartProgram(const std::string& usage, int argc, char** argv);

// Notes signals while it exists; afterwards they have their default action again. One object a
// process.
class SignalHandler {
 public:
  // Notes SIGINT and SIGTERM; a second one of either ends the process at once.
  SignalHandler() : SignalHandler({SIGINT, SIGTERM}, {}) {}
  // Notes all signals of both lists. A second one of the same number ends the process at once if it
  // is in `ends_if_repeated`; one of `repeatable` may come any number of times.
  SignalHandler(std::vector<int> ends_if_repeated, std::vector<int> repeatable);
  ~SignalHandler();
  SignalHandler(const SignalHandler&) = delete;
  SignalHandler& operator=(const SignalHandler&) = delete;

  // The signal that came last, or 0.
  int received() const;
  bool requested() const { return received() != 0; }

 private:
  const std::vector<int> ends_if_repeated_, repeatable_;
};

}  // namespace tritonrl

#endif  // TRITONRL_BASE_PROGRAM_H_
