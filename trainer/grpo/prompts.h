#ifndef TRITONRL_TRAINER_GRPO_PROMPTS_H_
#define TRITONRL_TRAINER_GRPO_PROMPTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/chat/chat_template.h"
#include "model/tokenizer/tokenizer.h"
#include "parallel/process_group.h"
#include "tasks/loader.h"
#include "tasks/prompt_format.h"
#include "tasks/response_style.h"
#include "trainer/config/config.pb.h"
#include "trainer/grpo/task_passes.h"

// The tasks of a run with their prompts, and the draw of a training step's tasks.

namespace tritonrl {

struct Verification;

struct PreparedTask {
  Task task;
  std::string prompt;
  std::vector<int32_t> tokens;  // tokens of the prompt, as a user's turn of the chat template
  std::string problem;          // why there are none; empty: there are
};

struct PreparedTasks {
  std::vector<PreparedTask> tasks;
  std::vector<std::string> problems;  // one sentence for each file or task left out
};

// Builds the prompt of one task, a user's turn of `chat` (null: bare text). Does not check the
// prompt's length.
PreparedTask PrepareTask(Task task, const PromptFormat& format, const Tokenizer& tokenizer,
                         const ChatTemplate* chat = nullptr);

// Loads all task files below `folders` (relative paths as in FindInputPath) and builds their
// prompts. An invalid file, and a task whose prompt has more than `max_prompt_tokens` tokens or
// that the chat template refuses, is left out and named in `problems`. Errors: a folder that does
// not exist; no task is left; the same task id in two folders.
absl::StatusOr<PreparedTasks> LoadPreparedTasks(const std::vector<std::string>& folders,
                                                const PromptFormat& format,
                                                const Tokenizer& tokenizer, int max_prompt_tokens,
                                                const ChatTemplate* chat = nullptr);

// The formats of a configuration's prompts.
struct PromptFormats {
  PromptFormat train, held_out;
};
// Reads the prompt files. Errors name the field, the file and the line.
absl::StatusOr<PromptFormats> LoadPromptFormats(const TasksConfig& config);

// The lengths of prompts, for the start of a run: "tasks/prompts/train.txt, 160 tokens of fixed
// text; the longest of 64 prompts has 412 tokens". The fixed text is without a chat template.
std::string DescribePrompts(const PromptFormat& format, const std::vector<PreparedTask>& tasks,
                            const Tokenizer& tokenizer);

// The style in which the policy's responses are read (tasks/response_style.h). `prompt` is one of
// its prompts, `chat` the template that wrote it (null: none).
absl::StatusOr<ResponseStyleChoice> ChoosePolicyStyle(
    const std::string& response_style, const std::string& code_block, const std::string& model_dir,
    const PreparedTask& prompt, const Tokenizer& tokenizer, const ChatTemplate* chat = nullptr);

struct PromptSamplerOptions {
  uint64_t seed = 0;
  // Probability of level 1, 2, ..., the paper's mixture p; empty: uniform over all tasks.
  std::vector<double> level_mixture;
  // Share of prompts, in [0, 1], for tasks that the generator composes.
  double generated_share = 0;
  // False: TasksConfig.INDEPENDENT.
  bool passes = true;
  PromptFormat format;
  const ChatTemplate* chat = nullptr;  // as in PrepareTask; outlives the sampler
};

// Draws the tasks of each training step. The draw depends only on the options and the step.
class PromptSampler {
 public:
  // `tokenizer` must outlive the sampler. InvalidArgument: a level with a probability above 0 has
  // no task.
  static absl::StatusOr<PromptSampler> Make(PromptSamplerOptions options,
                                            std::vector<PreparedTask> tasks,
                                            const Tokenizer* tokenizer);

  // Draws the `count` tasks of a step; all steps of a run have the same count. A task is drawn
  // again in one step only after all others of its level. Composed tasks have the id
  // "generated/<number>".
  std::vector<std::shared_ptr<const PreparedTask>> Draw(int64_t step, int count) const;

  // Prompts of `epochs` passes over the tasks, rounded up, with the composed tasks among them;
  // 0 if all tasks are composed.
  int64_t PromptsOf(double epochs) const;

  // The inverse: the number of passes over the tasks in the first `prompts` prompts; 0 if all tasks
  // are composed. With TasksConfig.INDEPENDENT only the number of prompts counts.
  double EpochsOf(int64_t prompts) const;

 private:
  using DrawnTasks = std::vector<std::shared_ptr<const PreparedTask>>;

  PromptSampler() = default;
  DrawnTasks DrawPasses(int64_t step, int count) const;
  DrawnTasks DrawIndependent(int64_t step, int count) const;
  // Composed task number `pick`.
  std::shared_ptr<const PreparedTask> Compose(uint64_t pick) const;
  // Composed tasks among the first `prompts` prompts, with TasksConfig.PASSES.
  int64_t ComposedAmong(int64_t prompts) const;

  PromptSamplerOptions options_;
  const Tokenizer* tokenizer_ = nullptr;
  std::vector<std::shared_ptr<const PreparedTask>> tasks_;
  // Pools of tasks and their probabilities: one pool per level of the mixture, or one with all
  // tasks.
  std::vector<std::vector<int>> pools_;
  std::vector<double> chances_;
  std::unique_ptr<TaskPasses> passes_;  // null: all tasks are composed
};

// The tasks of a configuration.
struct RunTasks {
  PromptSampler prompts;  // draws from the training tasks
  int training_tasks = 0;
  int64_t steps = 0;  // GrpoHrdConfig.steps, or the number that its epochs need
  std::vector<std::shared_ptr<const PreparedTask>> held_out;
  std::vector<std::string> problems;        // as in PreparedTasks
  std::vector<std::string> prompt_lengths;  // DescribePrompts, with the tasks' kind in front
};

// Loads the tasks of a configuration. Called by all ranks together, as the preflight removes the
// same tasks on each. `preflight_journal`: the run's file of preflight results. `tokenizer` and
// `chat` must outlive the result. Errors: those of LoadPreparedTasks, RemoveUnsoundTasks and
// PromptSampler::Make; InvalidArgument if epochs are asked for and there is no task file.
absl::StatusOr<RunTasks> LoadRunTasks(const GrpoHrdConfig& config, const Tokenizer& tokenizer,
                                      const ChatTemplate* chat, const Verification& verification,
                                      const std::string& preflight_journal, ProcessGroup* ranks);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_PROMPTS_H_
