// The start of every program: usage, version, log and flags.
#ifndef TRITONRL_BASE_PROGRAM_H_
#define TRITONRL_BASE_PROGRAM_H_

#include <string>
#include <vector>

namespace tritonrl {

// The version in the file VERSION at the top of the repository, e.g. "0.1.0".
std::string Version();

// Call first in main(). Sets the text of --help (`usage`) and of --version, reads the flags and
// sets up the log from --log_level and --log_format (base/log.h). Returns the program's name and
// the arguments that are not flags. Ends the process: exit code 1 and one sentence for an unknown
// flag or a bad value, 0 after --help and --version.
std::vector<char*> StartProgram(const std::string& usage, int argc, char** argv);

}  // namespace tritonrl

#endif  // TRITONRL_BASE_PROGRAM_H_
