#include "tasks/mini_prompt.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/python_syntax.h"

namespace tritonrl {

namespace {

// True for a statement that is only a string, e.g. a documentation string.
bool IsBareString(const PythonNode& statement) {
  return statement.type() == "expression_statement" && statement.child_count() == 1 &&
         statement.child(0).type() == "string";
}

// True for pass, and for a call of super().__init__ in any spelling.
bool IsBoilerplate(const PythonNode& statement) {
  return statement.type() == "pass_statement" || (statement.type() == "expression_statement" &&
                                                  absl::StartsWith(statement.text(), "super("));
}

// Returns the lines of `node` without comments and empty lines; the indentation of the first line
// is removed from all lines.
std::string CompactText(const PythonTree& tree, const PythonNode& node) {
  std::string text;
  size_t at = node.start_byte();
  for (const PythonNode& comment : node.Find("comment")) {
    absl::StrAppend(&text, tree.source().substr(at, comment.start_byte() - at));
    at = comment.end_byte();
  }
  absl::StrAppend(&text, tree.source().substr(at, node.end_byte() - at));
  const size_t indent = node.column() - 1;
  std::string compact;
  bool first = true;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!first) {
      const size_t spaces = std::min(line.find_first_not_of(" \t"), line.size());
      line.remove_prefix(std::min(indent, spaces));
    }
    first = false;
    line = absl::StripTrailingAsciiWhitespace(line);
    if (!line.empty()) absl::StrAppend(&compact, line, "\n");
  }
  return compact;
}

// Appends the statements of a block without documentation, comments and boilerplate.
void AppendBody(const PythonTree& tree, const PythonNode& block, std::string* out) {
  for (const PythonNode& statement : block.named_children()) {
    if (statement.type() == "comment" || IsBareString(statement) || IsBoilerplate(statement)) {
      continue;
    }
    absl::StrAppend(out, CompactText(tree, statement));
  }
}

// Appends the statements of get_inputs, without the word "return".
void AppendInputs(const PythonTree& tree, const PythonNode& block, std::string* out) {
  std::string body;
  AppendBody(tree, block, &body);
  for (absl::string_view line : absl::StrSplit(body, '\n', absl::SkipEmpty())) {
    absl::ConsumePrefix(&line, "return ");
    absl::StrAppend(out, line, "\n");
  }
}

void AppendModel(const PythonTree& tree, const PythonNode& body, std::string* out) {
  for (const char* name : {"__init__", "forward"}) {
    for (const PythonNode& member : body.named_children()) {
      if (member.type() == "function_definition" && member.field("name").text() == name) {
        AppendBody(tree, member.field("body"), out);
      }
    }
  }
}

// The name that a line `Model = NAME` gives, as tasks of KernelBook end with; "" without one.
absl::string_view NamedModel(const PythonNode& statement) {
  if (statement.type() != "expression_statement" || statement.child_count() == 0) return "";
  const PythonNode assignment = statement.child(0);
  if (assignment.type() != "assignment" || assignment.field("left").text() != "Model") return "";
  const PythonNode name = assignment.field("right");
  return !name.null() && name.type() == "identifier" ? name.text() : "";
}

}  // namespace

std::string MiniPrompt(const std::string& source) {
  const PythonTree tree(source);
  std::string constants, model, inputs;
  absl::string_view model_name = "Model";
  for (const PythonNode& statement : tree.root().named_children()) {
    if (const absl::string_view name = NamedModel(statement); !name.empty()) model_name = name;
  }
  for (const PythonNode& statement : tree.root().named_children()) {
    const absl::string_view type = statement.type();
    const absl::string_view name = statement.field("name").text();
    if (type == "class_definition" && name == model_name) {
      AppendModel(tree, statement.field("body"), &model);
    } else if (type == "function_definition" && name == "get_inputs") {
      AppendInputs(tree, statement.field("body"), &inputs);
    } else if (type == "comment" || type == "import_statement" || type == "import_from_statement" ||
               name == "get_init_inputs" || IsBareString(statement) ||
               !NamedModel(statement).empty()) {
      continue;
    } else {
      absl::StrAppend(&constants, CompactText(tree, statement));
    }
  }
  return absl::StrCat(constants, model, inputs);
}

}  // namespace tritonrl
