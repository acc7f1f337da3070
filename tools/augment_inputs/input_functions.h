// Functions get_inputs() as text: those of a model's response, and their place in a task's source.
#ifndef TRITONRL_TOOLS_AUGMENT_INPUTS_INPUT_FUNCTIONS_H_
#define TRITONRL_TOOLS_AUGMENT_INPUTS_INPUT_FUNCTIONS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tritonrl {

// The functions get_inputs() in the response's code blocks, in order and without repetitions. A
// block counts if it holds this function without parameters and nothing else but comments. Text up
// to `</think>` is skipped. DataLoss says why there is none.
absl::StatusOr<std::vector<std::string>> ReadInputFunctions(const std::string& answer);

// `source` with its last top-level get_inputs() replaced by `function`. InvalidArgument if there is
// none.
absl::StatusOr<std::string> ReplaceInputs(const std::string& source, const std::string& function);

}  // namespace tritonrl

#endif  // TRITONRL_TOOLS_AUGMENT_INPUTS_INPUT_FUNCTIONS_H_
