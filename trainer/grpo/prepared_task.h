// Tasks as the policy sees them: with their prompt, tokenised once.
#ifndef TRITONRL_TRAINER_GRPO_PREPARED_TASK_H_
#define TRITONRL_TRAINER_GRPO_PREPARED_TASK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/tokenizer/tokenizer.h"
#include "tasks/prompt.h"
#include "tasks/task.h"

namespace tritonrl {

struct PreparedTask {
  Task task;
  std::string prompt;
  std::vector<int32_t> tokens;  // of the prompt
};

struct PreparedTasks {
  std::vector<PreparedTask> tasks;
  std::vector<std::string> problems;  // one sentence for each file or task that was left out
};

// One task. Does not check the prompt's length.
PreparedTask PrepareTask(Task task, PromptStyle style, const Tokenizer& tokenizer);

// Loads all task files below `folders` (relative paths as FindInput resolves them) and builds their
// prompts. A broken file, and a task whose prompt has more than `max_prompt_tokens` tokens, is left
// out and named in `problems`. Errors: a folder that does not exist; no task left at all; the same
// task id in two folders.
absl::StatusOr<PreparedTasks> LoadPreparedTasks(const std::vector<std::string>& folders,
                                                PromptStyle style, const Tokenizer& tokenizer,
                                                int max_prompt_tokens);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_PREPARED_TASK_H_
