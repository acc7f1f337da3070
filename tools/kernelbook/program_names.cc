// The names that a program gives and imports.
#include <string>

#include "absl/strings/str_cat.h"
#include "tools/kernelbook/program_tokens.h"
#include "tools/kernelbook/python_parts.h"

namespace tritonrl {
namespace {

void CollectPattern(const PythonNode& node, ProgramNames* names, int depth = 0) {
  if (depth > kMaxProgramDepth) return;
  if (Is(node, "identifier")) {
    names->own.insert(std::string(node.text()));
  } else if (Is(node, "attribute")) {
    if (node.field("object").text() == "self")
      names->attributes.insert(std::string(node.field("attribute").text()));
  } else if (Is(node, "typed_parameter")) {
    if (node.child_count() > 0) CollectPattern(node.child(0), names, depth + 1);
  } else if (Is(node, "default_parameter") || Is(node, "typed_default_parameter")) {
    CollectPattern(node.field("name"), names, depth + 1);
  } else if (!Is(node, "subscript")) {
    for (const PythonNode& part : node.named_children()) CollectPattern(part, names, depth + 1);
  }
}

// `import a.b as c`, `from a import b as c`, and the forms without `as`.
void CollectImport(const PythonNode& node, ProgramNames* names) {
  const std::string module(node.field("module_name").text());
  const std::string prefix = module.empty() ? "" : absl::StrCat(module, ".");
  for (const PythonNode& part : node.named_children()) {
    if (part == node.field("module_name")) continue;
    if (Is(part, "aliased_import")) {
      names->imported[std::string(part.field("alias").text())] =
          absl::StrCat(prefix, part.field("name").text());
    } else if (Is(part, "dotted_name")) {
      const std::string name(part.text());
      if (!module.empty()) names->imported[name] = prefix + name;
    }
  }
}

void Collect(const PythonNode& node, ProgramNames* names, int depth = 0) {
  if (depth > kMaxProgramDepth || IsAnnotation(node)) return;
  const absl::string_view type = node.type();
  if (type == "import_statement" || type == "import_from_statement") {
    return CollectImport(node, names);
  }
  if (type == "class_definition" || type == "function_definition") {
    const std::string name(node.field("name").text());
    names->own.insert(name);
    names->attributes.insert(name);
  }
  if (type == "parameters" || type == "lambda_parameters" || type == "as_pattern_target") {
    CollectPattern(node, names);
  } else if (type == "assignment") {
    // `x: int` alone binds nothing.
    if (!node.field("right").null()) CollectPattern(node.field("left"), names);
  } else if (type == "augmented_assignment" || type == "for_statement" || type == "for_in_clause") {
    CollectPattern(node.field("left"), names);
  } else if (type == "named_expression") {
    CollectPattern(node.field("name"), names);
  }
  for (const PythonNode& child : node.named_children()) Collect(child, names, depth + 1);
}

}  // namespace

bool IsAnnotation(const PythonNode& node) { return node.named() && Is(node, "type"); }

ProgramNames NamesOf(const PythonNode& root) {
  ProgramNames names;
  Collect(root, &names);
  return names;
}

}  // namespace tritonrl
