// The short prompts of the mini policy.
#ifndef TRITONRL_TASKS_MINI_PROMPT_H_
#define TRITONRL_TASKS_MINI_PROMPT_H_

#include <string>

namespace tritonrl {

// Returns the parts of a task's source that are not boilerplate, 25 to 80 tokens for a task of the
// mini suite: the module's constants, the body of __init__, the body of forward and the value of
// get_inputs, without comments and documentation. A source that is not valid Python gives some text
// too.
std::string MiniPrompt(const std::string& source);

}  // namespace tritonrl

#endif  // TRITONRL_TASKS_MINI_PROMPT_H_
