// Builds the prompts of tasks: the short ones of the mini policy, and those of prompt files.
#ifndef TRITONRL_TASKS_PROMPT_FORMAT_H_
#define TRITONRL_TASKS_PROMPT_FORMAT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tasks/loader.h"

namespace tritonrl {

// The form of a run's prompts. A prompt file is the text of a prompt with placeholders:
//
//   {task}   the task's source; needed
//   {name}   the task's id, e.g. "level1/07_var"
//   {level}  the task's level
//
// Every other {word} of lower-case letters and underscores is refused; {{word}} stands for the text
// {word}. Other braces are ordinary text. White space at the end of the file is ignored.
class PromptFormat {
 public:
  // The short prompts of the mini policy (tasks/mini_prompt.h).
  static PromptFormat Mini() { return PromptFormat(); }

  // Reads the text of a prompt file. InvalidArgument names `name` and the line of an unknown
  // placeholder, or says that {task} is missing or that the text is not UTF-8.
  static absl::StatusOr<PromptFormat> Parse(absl::string_view text, const std::string& name);

  // Reads a prompt file. Errors: those of Parse and of reading, with the path.
  static absl::StatusOr<PromptFormat> Load(const std::string& path);

  // A prompt by its name, as flags and configurations give it: "mini"; "train" or "full", the
  // instruction without an example (tasks/prompts/train.txt); "eval", the one with a worked example
  // (tasks/prompts/eval_one_shot.txt); else the path of a prompt file.
  static absl::StatusOr<PromptFormat> FromName(const std::string& name);

  // Returns a task's prompt, which depends only on the task and ends with a newline.
  std::string Build(const Task& task) const;

  // The fixed text of the prompt, without placeholders; empty for the mini policy's prompts.
  std::string FixedText() const;

  // "mini", or the file's path.
  const std::string& name() const { return name_; }

 private:
  enum class Piece { kText, kTask, kName, kLevel };
  struct Part {
    Piece piece = Piece::kText;
    std::string text;  // of kText
  };

  std::string name_ = "mini";
  std::vector<Part> parts_;  // empty: the mini policy's prompts
};

// The lengths of prompts, for the start of a run: "tasks/prompts/train.txt, 156 tokens of fixed
// text; the longest of 64 prompts has 412 tokens". `count` gives the tokens of a text.
std::string PromptLengths(const PromptFormat& format, const std::vector<Task>& tasks,
                          absl::FunctionRef<int64_t(const std::string&)> count);

// The same where there is no tokenizer: a token for each four bytes, and the text says so.
std::string EstimatedPromptLengths(const PromptFormat& format, const std::vector<Task>& tasks);

}  // namespace tritonrl

#endif  // TRITONRL_TASKS_PROMPT_FORMAT_H_
