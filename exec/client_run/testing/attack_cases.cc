#include "exec/client_run/testing/attack_cases.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/runfiles.h"
#include "base/status.h"

namespace tritonrl {
namespace {

using Snippets = std::map<std::string, std::string>;

Snippets ParseSnippets(absl::string_view text) {
  Snippets snippets;
  std::string current;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::ConsumePrefix(&line, "# snippet: ")) {
      current = std::string(line);
    } else {
      absl::StrAppend(&snippets[current], line, "\n");
    }
  }
  return snippets;
}

// What the lines of one case say of its reference.
struct Task {
  std::string inputs, forward, layers, more;

  std::string Source() const {
    return absl::StrCat(
        "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\n"
        "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        ",
        layers.empty() ? "pass" : layers, "\n\n    forward = ", forward,
        "\n\n\ndef get_inputs():\n    return [", inputs,
        "]\n\n\ndef get_init_inputs():\n    return []\n", more);
  }
};

// One file's cases, line by line.
class Reader {
 public:
  Reader(absl::string_view file, const Snippets& snippets) : file_(file), snippets_(snippets) {}

  absl::Status Line(absl::string_view line) {
    if (absl::ConsumePrefix(&line, "# case: ")) return Begin(line);
    if (cases_.empty()) return absl::OkStatus();
    AttackCase& current = cases_.back();
    if (absl::ConsumePrefix(&line, "# use: ")) {
      const auto found = snippets_.find(std::string(line));
      if (found == snippets_.end()) return Wrong(absl::StrCat("no snippet named ", line));
      absl::StrAppend(&current.source, found->second, "\n");
    } else if (absl::ConsumePrefix(&line, "# task: ")) {
      const std::pair<std::string, std::string> halves =
          absl::StrSplit(line, absl::MaxSplits(" => ", 1));
      task_.inputs = halves.first;
      task_.forward = halves.second;
    } else if (absl::ConsumePrefix(&line, "# layers: ")) {
      task_.layers = std::string(line);
    } else if (absl::ConsumePrefix(&line, "# more: ")) {
      absl::StrAppend(&task_.more, line, "\n");
    } else if (absl::ConsumePrefix(&line, "# rules: ")) {
      current.rules = std::string(line);
    } else {
      absl::StrAppend(&current.source, line, "\n");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<AttackCase>> Finish() {
    RETURN_IF_ERROR(End());
    return std::move(cases_);
  }

 private:
  absl::Status Wrong(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(file_, ": ", what));
  }

  absl::Status Begin(absl::string_view line) {
    RETURN_IF_ERROR(End());
    const std::pair<std::string, std::string> halves =
        absl::StrSplit(line, absl::MaxSplits(" -> ", 1));
    AttackCase& made = cases_.emplace_back();
    made.file = file_;
    made.name = halves.first;
    if (!halves.second.empty()) made.reasons = absl::StrSplit(halves.second, '|');
    const auto imports = snippets_.find("imports");
    if (imports != snippets_.end()) made.source = imports->second;
    made.rules = "robust";
    task_ = Task();
    return absl::OkStatus();
  }

  absl::Status End() {
    if (cases_.empty()) return absl::OkStatus();
    if (task_.forward.empty()) return Wrong(absl::StrCat(cases_.back().name, " has no task"));
    cases_.back().reference = task_.Source();
    return absl::OkStatus();
  }

  const std::string file_;
  const Snippets& snippets_;
  Task task_;
  std::vector<AttackCase> cases_;
};

}  // namespace

absl::StatusOr<std::vector<AttackCase>> ParseAttackCases(absl::string_view file,
                                                         absl::string_view text,
                                                         absl::string_view snippets) {
  const Snippets parsed = ParseSnippets(snippets);
  Reader reader(file, parsed);
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    RETURN_IF_ERROR(reader.Line(line));
  }
  return reader.Finish();
}

absl::StatusOr<std::vector<AttackCase>> ReadAttackCases() {
  ASSIGN_OR_RETURN(const std::string path, Runfile("exec/client_run/testdata/attacks/snippets.py"));
  ASSIGN_OR_RETURN(const std::string snippets, ReadFile(path));
  ASSIGN_OR_RETURN(std::vector<std::string> names, ListDirectory(DirName(path)));
  std::sort(names.begin(), names.end());
  std::vector<AttackCase> all;
  for (const std::string& file : names) {
    absl::string_view name = file;
    if (!absl::ConsumeSuffix(&name, ".py") || name == "snippets") continue;
    ASSIGN_OR_RETURN(const std::string text, ReadFile(JoinPath(DirName(path), file)));
    ASSIGN_OR_RETURN(std::vector<AttackCase> cases,
                     ParseAttackCases(std::string(name), text, snippets));
    std::move(cases.begin(), cases.end(), std::back_inserter(all));
  }
  return all;
}

std::string ReasonOfResult(const ExecResult& result) {
  if (result.outcome().reason() != Outcome::OK) {
    return absl::AsciiStrToLower(Outcome::Reason_Name(result.outcome().reason()));
  }
  if (result.launches().empty()) return "not_launched";
  if (result.has_constant_output()) return "ignores_inputs";
  return result.ablation_all() == ABLATION_UNCHANGED ? "decoration" : "ok";
}

}  // namespace tritonrl
