#include "tools/kernelbook/program_form.h"

#include <map>

#include "base/python_syntax.h"
#include "tools/kernelbook/program_tokens.h"
#include "tools/kernelbook/python_parts.h"

namespace tritonrl {
namespace {

PythonNode Definition(const PythonNode& statement) {
  return Is(statement, "decorated_definition") ? statement.field("definition") : statement;
}

bool IsDefinition(const PythonNode& node) {
  return Is(node, "class_definition") || Is(node, "function_definition");
}

void CollectIdentifiers(const PythonNode& node, int depth, std::vector<std::string>* names) {
  if (depth > kMaxProgramDepth || IsAnnotation(node)) return;
  if (Is(node, "identifier")) names->emplace_back(node.text());
  for (const PythonNode& child : node.named_children()) {
    CollectIdentifiers(child, depth + 1, names);
  }
}

// The top-level definitions that the class `entry_point` needs, by place in the program.
std::vector<bool> NeededBy(const std::string& entry_point,
                           const std::vector<PythonNode>& statements) {
  std::map<std::string, size_t> place;
  for (size_t i = 0; i < statements.size(); ++i) {
    const PythonNode definition = Definition(statements[i]);
    if (IsDefinition(definition)) place[std::string(definition.field("name").text())] = i;
  }
  std::vector<bool> needed(statements.size(), false);
  std::vector<std::string> open = {entry_point};
  while (!open.empty()) {
    const auto found = place.find(open.back());
    open.pop_back();
    if (found == place.end() || needed[found->second]) continue;
    needed[found->second] = true;
    CollectIdentifiers(statements[found->second], 0, &open);
  }
  return needed;
}

}  // namespace

ProgramForm FormOf(const std::string& source, const std::string& entry_point) {
  ProgramForm form;
  const PythonTree tree(source);
  if (tree.root().null()) return form;
  const ProgramNames names = NamesOf(tree.root());
  const std::vector<PythonNode> statements = tree.root().named_children();
  ProgramTokens program(names), model(names);
  const std::vector<bool> needed = NeededBy(entry_point, statements);
  for (size_t i = 0; i < statements.size(); ++i) {
    program.Add(statements[i]);
    if (needed[i]) model.Add(statements[i]);
  }
  program.AddEntryPoint(entry_point);
  form.program = program.Hash();
  form.model = model.Hash();
  form.library = model.LibraryHash();
  form.shingles = model.Shingles();
  return form;
}

}  // namespace tritonrl
