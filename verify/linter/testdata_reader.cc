#include "verify/linter/testdata_reader.h"

#include <map>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/runfiles.h"
#include "base/status.h"

namespace tritonrl {
namespace {

absl::StatusOr<std::string> Load(const std::string& folder, const std::string& file) {
  ASSIGN_OR_RETURN(std::string path, Runfile(JoinPath(folder, file)));
  return ReadFile(path);
}

// The reference program of "INPUTS => LAMBDA".
std::string Reference(absl::string_view task, absl::string_view layers) {
  std::pair<std::string, std::string> halves = absl::StrSplit(task, absl::MaxSplits(" => ", 1));
  return absl::StrCat(
      "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\n"
      "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        ",
      layers.empty() ? "pass" : layers, "\n\n    forward = ", halves.second,
      "\n\n\ndef get_inputs():\n    return [", halves.first,
      "]\n\n\ndef get_init_inputs():\n    return []\n");
}

}  // namespace

absl::StatusOr<std::vector<LintCase>> ReadLintCases(const std::string& file,
                                                    const std::string& folder) {
  ASSIGN_OR_RETURN(std::string snippet_text, Load(folder, "snippets.py"));
  ASSIGN_OR_RETURN(std::string text, Load(folder, file));
  std::map<std::string, std::string> snippets;
  std::string current;
  for (absl::string_view line : absl::StrSplit(snippet_text, '\n')) {
    if (absl::ConsumePrefix(&line, "# snippet: ")) {
      current = std::string(line);
    } else {
      absl::StrAppend(&snippets[current], line, "\n");
    }
  }
  std::vector<LintCase> cases;
  std::string task, layers;
  int line_number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::ConsumePrefix(&line, "# case: ")) {
      std::pair<std::string, std::string> halves = absl::StrSplit(line, absl::MaxSplits(" -> ", 1));
      std::pair<std::string, std::string> expected =
          absl::StrSplit(halves.second, absl::MaxSplits(' ', 1));
      cases.push_back({.name = halves.first, .found = expected.second});
      if (!expected.first.empty()) cases.back().rules = absl::StrSplit(expected.first, '|');
      layers.clear();
      cases.back().source = snippets["imports"];
      line_number = static_cast<int>(
          std::count(cases.back().source.begin(), cases.back().source.end(), '\n'));
      continue;
    }
    if (cases.empty()) continue;
    LintCase& current_case = cases.back();
    if (absl::ConsumePrefix(&line, "# use: ")) {
      auto it = snippets.find(std::string(line));
      if (it == snippets.end()) return absl::NotFoundError(absl::StrCat("no snippet named ", line));
      absl::StrAppend(&current_case.source, it->second, "\n");
      line_number += static_cast<int>(std::count(it->second.begin(), it->second.end(), '\n')) + 1;
      continue;
    }
    if (absl::ConsumePrefix(&line, "# layers: ")) {
      layers = std::string(line);
      // "# task:" may stand in front of it.
      if (!current_case.reference.empty()) current_case.reference = Reference(task, layers);
      continue;
    }
    if (absl::ConsumePrefix(&line, "# task: ")) {
      task = std::string(line);
      current_case.reference = Reference(task, layers);
      continue;
    }
    ++line_number;
    if (absl::StrContains(line, "# BAD")) current_case.line = line_number;
    absl::StrAppend(&current_case.source, line, "\n");
  }
  return cases;
}

}  // namespace tritonrl
