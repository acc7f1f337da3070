// Command lines of programs whose exit codes mean something.
#ifndef TRITONRL_VERIFY_PARSE_FLAGS_H_
#define TRITONRL_VERIFY_PARSE_FLAGS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tritonrl {

// Sets the flags of a command line: --name=value, --name value, --name and --noname. Absl's own
// parser ends the process with code 1 on a wrong flag, which can mean "the candidate failed".
// InvalidArgument: one sentence that names the flag.
absl::Status ParseFlags(int argc, char** argv);

// A line for each flag that the source file defines, by name: what it means and its default.
std::string FlagsHelp(absl::string_view source_file);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_PARSE_FLAGS_H_
