#ifndef TRITONRL_TASKS_PROMPT_H_
#define TRITONRL_TASKS_PROMPT_H_

#include <string>

#include "absl/status/statusor.h"
#include "tasks/task.h"

namespace tritonrl {

enum class PromptStyle {
  // For policies of about a million parameters: only what the program computes and on which
  // shapes, 25 to 80 tokens. The text is the source reduced to the body of forward (without
  // comments and documentation), preceded by the module's constants and the body of __init__
  // where there are any, and followed by what get_inputs returns.
  kMini,
  // For language models: instruction, rules of the response format, one worked example, then the
  // task's whole source.
  kFull,
};

// "mini" or "full"; anything else is InvalidArgument.
absl::StatusOr<PromptStyle> ParsePromptStyle(const std::string& name);

// The text the policy sees before its response; it ends with a newline. Computed from the task's
// source alone, so the same file always gives the same prompt.
std::string BuildPrompt(const Task& task, PromptStyle style);

}  // namespace tritonrl

#endif  // TRITONRL_TASKS_PROMPT_H_
