#include "tasks/prompt_format.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "base/utf8.h"
#include "tasks/mini_prompt.h"

namespace tritonrl {

namespace {

constexpr absl::string_view kKnown = "{task}, {name} and {level}";

bool IsWordLetter(char c) { return absl::ascii_islower(c) || c == '_'; }

// The word of a placeholder "{word}" at the start of `text`; empty if there is none.
absl::string_view PlaceholderWord(absl::string_view text) {
  if (text.empty() || text[0] != '{') return "";
  size_t end = 1;
  while (end < text.size() && IsWordLetter(text[end])) ++end;
  return end < text.size() && text[end] == '}' ? text.substr(1, end - 1) : "";
}

int64_t LineOf(absl::string_view text, size_t offset) {
  return 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(offset), '\n');
}

}  // namespace

absl::StatusOr<PromptFormat> PromptFormat::Parse(absl::string_view text, const std::string& name) {
  if (!IsValidUtf8(text)) {
    return absl::InvalidArgumentError(absl::StrCat(name, " is not UTF-8 text"));
  }
  text = absl::StripTrailingAsciiWhitespace(text);
  PromptFormat format;
  format.name_ = name;
  bool has_task = false;
  std::string plain;
  const auto end_text = [&] {
    if (!plain.empty()) format.parts_.push_back({.text = std::exchange(plain, "")});
  };
  for (size_t at = 0; at < text.size();) {
    const absl::string_view rest = text.substr(at);
    const absl::string_view quoted = rest.size() > 1 ? PlaceholderWord(rest.substr(1)) : "";
    if (rest[0] == '{' && !quoted.empty() && rest.substr(quoted.size() + 3, 1) == "}") {
      absl::StrAppend(&plain, "{", quoted, "}");
      at += quoted.size() + 4;
      continue;
    }
    const absl::string_view word = PlaceholderWord(rest);
    if (word.empty()) {
      plain += text[at++];
      continue;
    }
    Part part;
    if (word == "task") {
      part.piece = Piece::kTask;
      has_task = true;
    } else if (word == "name") {
      part.piece = Piece::kName;
    } else if (word == "level") {
      part.piece = Piece::kLevel;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ", line ", LineOf(text, at), ": the placeholder {", word,
                       "} is unknown; use ", kKnown, ", or write {{", word, "}} for the text"));
    }
    end_text();
    format.parts_.push_back(std::move(part));
    at += word.size() + 2;
  }
  end_text();
  if (!has_task) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": none of its ", text.empty() ? 0 : LineOf(text, text.size()),
                     " lines has the placeholder {task}; put it where the task's program belongs"));
  }
  return format;
}

absl::StatusOr<PromptFormat> PromptFormat::Load(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return Parse(text, path);
}

absl::StatusOr<PromptFormat> PromptFormat::FromName(const std::string& name) {
  if (name == "mini") return Mini();
  std::string own;  // path of a file of this program
  if (name == "train" || name == "full") own = "tasks/prompts/train.txt";
  if (name == "eval") own = "tasks/prompts/eval_one_shot.txt";
  if (!own.empty()) {
    ASSIGN_OR_RETURN(const std::string path, Runfile(own));
    ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
    return Parse(text, own);
  }
  const std::string path = UserPath(name);
  if (!FileExists(path)) {
    return absl::NotFoundError(absl::StrCat("the prompt \"", name, "\" is neither mini, train nor ",
                                            "eval, and there is no prompt file ", path));
  }
  return Load(path);
}

std::string PromptFormat::Build(const Task& task) const {
  if (parts_.empty()) return MiniPrompt(task.source);
  std::string prompt;
  for (const Part& part : parts_) {
    switch (part.piece) {
      case Piece::kText:
        prompt += part.text;
        break;
      case Piece::kTask:
        absl::StrAppend(&prompt, absl::StripTrailingAsciiWhitespace(task.source));
        break;
      case Piece::kName:
        prompt += task.id;
        break;
      case Piece::kLevel:
        absl::StrAppend(&prompt, task.level);
        break;
    }
  }
  return prompt + "\n";
}

std::string PromptFormat::FixedText() const {
  std::string text;
  for (const Part& part : parts_) text += part.text;
  if (!parts_.empty()) text += "\n";
  return text;
}

std::string PromptLengths(const PromptFormat& format, const std::vector<Task>& tasks,
                          absl::FunctionRef<int64_t(const std::string&)> count) {
  int64_t longest = 0;
  for (const Task& task : tasks) longest = std::max(longest, count(format.Build(task)));
  return absl::StrCat(format.name(), ", ", count(format.FixedText()),
                      " tokens of fixed text; the longest of ", tasks.size(), " prompts has ",
                      longest, " tokens");
}

std::string EstimatedPromptLengths(const PromptFormat& format, const std::vector<Task>& tasks) {
  constexpr int64_t kBytesPerToken = 4;
  const auto count = [](const std::string& text) {
    return static_cast<int64_t>(text.size()) / kBytesPerToken;
  };
  return PromptLengths(format, tasks, count) + " (estimated: one for each 4 bytes)";
}

}  // namespace tritonrl
