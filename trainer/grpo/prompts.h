#ifndef TRITONRL_TRAINER_GRPO_PROMPTS_H_
#define TRITONRL_TRAINER_GRPO_PROMPTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/tokenizer/tokenizer.h"
#include "parallel/process_group.h"
#include "tasks/loader.h"
#include "tasks/prompt_format.h"
#include "trainer/config/config.pb.h"

// The tasks of a run with their prompts, and which of them a training step works on.

namespace tritonrl {

struct Verification;

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

// Loads all task files below `folders` (relative paths as FindInputPath resolves them) and builds
// their prompts. A broken file, and a task whose prompt has more than `max_prompt_tokens` tokens,
// is left out and named in `problems`. Errors: a folder that does not exist; no task left at all;
// the same task id in two folders.
absl::StatusOr<PreparedTasks> LoadPreparedTasks(const std::vector<std::string>& folders,
                                                PromptStyle style, const Tokenizer& tokenizer,
                                                int max_prompt_tokens);

struct PromptSamplerOptions {
  uint64_t seed = 0;
  // Chance of level 1, 2, ... as in the paper's mixture p; empty: all tasks alike.
  std::vector<double> level_mixture;
  // Share of prompts that are composed fresh, in [0, 1].
  double generated_share = 0;
  PromptStyle style = PromptStyle::kMini;
};

class PromptSampler {
 public:
  // `tokenizer` must outlive the sampler. InvalidArgument: a level with a chance above 0 of which
  // there is no task.
  static absl::StatusOr<PromptSampler> Make(PromptSamplerOptions options,
                                            std::vector<PreparedTask> tasks,
                                            const Tokenizer* tokenizer);

  // The `count` tasks of a step. No task comes twice in one step as long as its level has others
  // left. Tasks that are composed fresh have the id "generated/<number>".
  std::vector<std::shared_ptr<const PreparedTask>> Draw(int64_t step, int count) const;

 private:
  PromptSampler() = default;

  PromptSamplerOptions options_;
  const Tokenizer* tokenizer_ = nullptr;
  std::vector<std::shared_ptr<const PreparedTask>> tasks_;
  // Pools to draw from with their chances: one for each level of the mixture, or one of all.
  std::vector<std::vector<int>> pools_;
  std::vector<double> chances_;
};

// The tasks that a configuration names.
struct RunTasks {
  PromptSampler prompts;  // from the training tasks
  int training_tasks = 0;
  std::vector<std::shared_ptr<const PreparedTask>> held_out;
  std::vector<std::string> problems;  // as in PreparedTasks
};

// `tokenizer` must outlive the result. All ranks call it together, as the preflight leaves out the
// same tasks on each. The errors are those of LoadPreparedTasks, RemoveUnsoundTasks and
// PromptSampler::Make.
absl::StatusOr<RunTasks> LoadRunTasks(const GrpoHrdConfig& config, const Tokenizer& tokenizer,
                                      const Verification& verification, ProcessGroup* ranks);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_PROMPTS_H_
