#include "verify/linter/forbidden.h"

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

namespace tritonrl::lint {
namespace {

constexpr char kModule[] = "is a module that a kernel has no use for";

class Scan {
 public:
  Scan(const Program& program, LintResult* result) : program_(program), result_(result) {}

  void Imports() {
    std::vector<const Import*> forbidden;
    for (const Import& import : program_.imports()) {
      if (IsForbiddenFunction(import.name)) forbidden.push_back(&import);
    }
    if (forbidden.empty()) return;
    absl::flat_hash_set<absl::string_view> used;
    for (const Node* identifier : program_.identifiers()) {
      if (identifier->field != Field::kAttribute) used.insert(identifier->text);
    }
    for (const Import* import : forbidden) {
      // Names of "import *" are not known.
      if (import->bound.empty() || used.contains(import->bound))
        Add(import->line, import->name, IsForbiddenModule(import->name) ? kModule : kSystem);
    }
  }

  void Attributes() {
    for (const Node* attribute : program_.attributes()) {
      if (attribute->field == Field::kObject && attribute->parent()->kind == Kind::kAttribute)
        continue;
      const std::string full = program_.FullName(attribute);
      if (full.empty() || !IsForbiddenFunction(full)) continue;
      if (IsForbiddenModule(full.substr(0, full.find('.')))) continue;  // its import is found
      Add(attribute->line, full, kSystem);
    }
  }

  void Builtins() {
    if (!program_.MentionsAny(kForbiddenBuiltin)) return;
    for (const Node* identifier : program_.identifiers()) {
      // Attributes, keywords, methods and what the program itself calls so are others.
      const bool named = identifier->field == Field::kName &&
                         (identifier->parent()->kind == Kind::kKeywordArgument ||
                          identifier->parent()->kind == Kind::kFunctionDef);
      if (!Is(kForbiddenBuiltin, identifier->text) || named ||
          identifier->field == Field::kAttribute || program_.Binds(identifier->text))
        continue;
      Add(identifier->line, std::string(identifier->text), "runs text as code");
    }
  }

  // importlib.import_module("ctypes")
  void Named(const Node* node) {
    if (program_.IsMainGuarded(node)) return;
    if (node->kind == Kind::kCall) {
      const Node* arguments = node->Get(Field::kArguments);
      if (program_.FullName(node->Get(Field::kFunction)) == "importlib.import_module" &&
          arguments != nullptr && !arguments->children().empty()) {
        const std::optional<std::string> name = arguments->children()[0]->kind == Kind::kString
                                                    ? PlainString(arguments->children()[0])
                                                    : std::nullopt;
        if (name.has_value() && IsForbiddenModule(*name)) Add(node->line, *name, kModule);
      }
    }
    for (const Node* child : node->children()) Named(child);
  }

 private:
  static constexpr char kSystem[] = "reaches past Triton and torch to the system";

  void Add(int line, const std::string& name, const std::string& why) {
    if (!seen_.emplace(line, name).second) return;
    result_->findings.push_back(
        {LintRule::kForbidden, line, name, absl::StrCat("'", name, "' ", why)});
  }

  const Program& program_;
  LintResult* result_;
  std::set<std::pair<int, std::string>> seen_;
};

}  // namespace

void FindForbidden(const Program& program, LintResult* result) {
  Scan scan(program, result);
  scan.Imports();
  scan.Attributes();
  scan.Builtins();
  if (program.Mentions("import_module")) scan.Named(program.root());
}

}  // namespace tritonrl::lint
