#include "tools/augment_inputs/input_functions.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/python_syntax.h"

namespace tritonrl {

namespace {

constexpr absl::string_view kName = "get_inputs";

// The contents of the text's code blocks; an unclosed last one is left out.
std::vector<std::string> CodeBlocks(absl::string_view text) {
  std::vector<std::string> blocks;
  bool inside = false;
  std::string block;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StartsWith(absl::StripLeadingAsciiWhitespace(line), "```")) {
      if (inside) blocks.push_back(block);
      inside = !inside;
      block.clear();
    } else if (inside) {
      absl::StrAppend(&block, absl::StripSuffix(line, "\r"), "\n");
    }
  }
  return blocks;
}

bool IsInputFunction(const PythonNode& node) {
  return node.type() == "function_definition" && node.field("name").text() == kName &&
         node.field("parameters").named_children().empty();
}

// The function that is all of the program; "" if the program is another.
std::string OnlyInputFunction(const std::string& program) {
  const PythonTree tree(program);
  if (tree.root().null() || tree.FirstError().has_value()) return "";
  std::string function;
  for (const PythonNode& node : tree.root().named_children()) {
    if (node.type() == "comment") continue;
    if (!function.empty() || !IsInputFunction(node)) return "";
    function = std::string(node.text());
  }
  return function;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ReadInputFunctions(const std::string& answer) {
  absl::string_view text = answer;
  constexpr absl::string_view kThinkClose = "</think>";
  if (const size_t close = text.rfind(kThinkClose); close != absl::string_view::npos) {
    text.remove_prefix(close + kThinkClose.size());
  }
  const std::vector<std::string> blocks = CodeBlocks(text);
  if (blocks.empty()) return absl::DataLossError("the answer has no code block");
  std::vector<std::string> functions;
  for (const std::string& block : blocks) {
    const std::string function = OnlyInputFunction(block);
    if (function.empty()) continue;
    if (std::find(functions.begin(), functions.end(), function) == functions.end()) {
      functions.push_back(function);
    }
  }
  if (functions.empty()) {
    return absl::DataLossError("no code block of the answer holds get_inputs() alone");
  }
  return functions;
}

absl::StatusOr<std::string> ReplaceInputs(const std::string& source, const std::string& function) {
  const PythonTree tree(source);
  PythonNode place;
  for (PythonNode node : tree.root().named_children()) {
    // A decorator, such as @torch.no_grad(), stays.
    if (node.type() == "decorated_definition") node = node.field("definition");
    if (node.type() == "function_definition" && node.field("name").text() == kName) place = node;
  }
  if (place.null()) return absl::InvalidArgumentError("the task has no function get_inputs()");
  return absl::StrCat(source.substr(0, place.start_byte()), function,
                      source.substr(place.end_byte()));
}

}  // namespace tritonrl
