#include "trainer/grpo/prepared_task.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "tasks/loader.h"
#include "trainer/policy.h"

namespace tritonrl {

PreparedTask PrepareTask(Task task, PromptStyle style, const Tokenizer& tokenizer) {
  PreparedTask prepared;
  prepared.prompt = BuildPrompt(task, style);
  // A task's text must not be able to write control tokens into the prompt.
  prepared.tokens = tokenizer.Encode(prepared.prompt, /*parse_special=*/false);
  prepared.task = std::move(task);
  return prepared;
}

absl::StatusOr<PreparedTasks> LoadPreparedTasks(const std::vector<std::string>& folders,
                                                PromptStyle style, const Tokenizer& tokenizer,
                                                int max_prompt_tokens) {
  PreparedTasks result;
  std::set<std::string> ids;
  for (const std::string& folder : folders) {
    ASSIGN_OR_RETURN(const std::string path, FindInput(folder));
    ASSIGN_OR_RETURN(TaskSet set, LoadTasks(path));
    for (std::string& problem : set.problems) result.problems.push_back(std::move(problem));
    for (Task& task : set.tasks) {
      const std::string id = task.id;
      PreparedTask prepared = PrepareTask(std::move(task), style, tokenizer);
      if (static_cast<int>(prepared.tokens.size()) > max_prompt_tokens) {
        result.problems.push_back(absl::StrCat(id, ": its prompt has ", prepared.tokens.size(),
                                               " tokens, more than ",
                                               "sampling.max_prompt_tokens = ", max_prompt_tokens));
        continue;
      }
      if (!ids.insert(id).second) {
        return absl::InvalidArgumentError(absl::StrCat("task ", id, " is in two of the folders ",
                                                       absl::StrJoin(folders, ", "),
                                                       "; give a folder that holds both instead"));
      }
      result.tasks.push_back(std::move(prepared));
    }
  }
  if (result.tasks.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no task is left in ", folders.empty() ? "(no folder given)" : absl::StrJoin(folders, ", "),
        result.problems.empty() ? "" : absl::StrCat("; first problem: ", result.problems[0])));
  }
  return result;
}

}  // namespace tritonrl
