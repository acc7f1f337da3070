// Normal forms of tasks, by which duplicates are found. Nothing is executed.
#ifndef TRITONRL_TOOLS_KERNELBOOK_PROGRAM_FORM_H_
#define TRITONRL_TOOLS_KERNELBOOK_PROGRAM_FORM_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tritonrl {

// The properties by which two tasks are compared, from their tokens (program_tokens.h).
struct ProgramForm {
  uint64_t program = 0;  // hash of the whole program: equal up to names, annotations and comments
  uint64_t model = 0;    // hash of the classes and functions that the model needs, without inputs
  uint64_t library = 0;  // hash of the set of library names and operators of the model
  std::vector<uint64_t> shingles;  // hashes of five tokens of the model in a row, sorted
};

// `entry_point` names the task's class in `source`. A source with syntax errors has a form too.
ProgramForm FormOf(const std::string& source, const std::string& entry_point);

}  // namespace tritonrl

#endif  // TRITONRL_TOOLS_KERNELBOOK_PROGRAM_FORM_H_
